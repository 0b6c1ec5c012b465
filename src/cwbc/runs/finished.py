"""Finished runs for reports, which import no jax: where they are, their results, histories and provenance."""

from __future__ import annotations

import dataclasses
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.measured_errors import MeasuredErrors
from cwbc.core.method_names import NAMES
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import Methods
from cwbc.results.paths import MazePath, paths_text
from cwbc.results.recommendation import recommend
from cwbc.results.sweeps import COLUMNS, Sweep, results_text
from cwbc.runs.configuration import sessions, settings
from cwbc.runs.run_directory import (
    CELLS,
    CONFIG,
    ESTIMATES,
    PATHS,
    REPLAYS,
    REPORT,
    RESULTS,
    SUMMARY,
    RunDirectory,
    holds,
)
from cwbc.system.errors import InputError
from cwbc.system.files import is_aside, read_json, read_text, write_together
from cwbc.system.tensor_files import CHECKPOINT


@dataclasses.dataclass(frozen=True)
class TrainingHistory:
    """The prediction losses and errors of one run, and its distribution of sampled trajectories."""

    steps: NDArray[np.int64]  # [row]
    losses: NDArray[np.float64]  # [row, seed], prediction losses: means over the steps since the row before
    weighting: Mapping[str, Any]  # as in config.json
    sampled: tuple[float, ...] | None  # [bin] fractions of sampled trajectories; None where not stored
    errors: MeasuredErrors | None = None  # None where no episodes were held out

    @classmethod
    def of(cls, config: Mapping[str, Any], metrics: list[dict[str, Any]]) -> TrainingHistory:
        """The history from the files of a run, without damaged rows."""
        seeds, steps, losses = len(config["seeds"]), [0], []
        for row in metrics:
            # Without a regularizer the prediction loss is the whole loss, and some versions store only that.
            values, step = row.get("prediction", row.get("loss", ())), row["step"]
            if len(values) == seeds and steps[-1] < step <= config["training"]["steps"]:
                steps.append(step)
                losses.append(values)
        sampled = config["drawn"]
        if sampled and not 0 <= min(sampled) <= max(sampled) <= 1.001:  # no fractions
            sampled = None
        return cls(
            np.array(steps[1:], np.int64),
            np.array(losses, np.float64).reshape(-1, seeds),
            config["method"]["weighting"],
            None if sampled is None else tuple(sampled),
            MeasuredErrors.of([row for row in metrics if row["step"] in steps[1:]], seeds),
        )


def check_place(root: Path) -> None:
    """Refuse to write a report into a directory with other files."""
    if not root.exists():
        return
    others = sorted(file.name for file in root.iterdir() if file.is_file() and not is_aside(file))
    interrupted = {RESULTS} <= set(others) <= {RESULTS, *REPORT}  # a report without its summary
    if interrupted:
        with (root / RESULTS).open("rb") as file:
            interrupted = file.readline().strip() == ",".join(COLUMNS).encode()
    ours = interrupted or holds(root / CONFIG, "runs", "method") or holds(root / SUMMARY, "methods")
    if others and not ours:
        raise InputError(f"{root} holds other files, such as {others[0]}; give another --out")


def find_runs(path: Path) -> list[RunDirectory]:
    """The runs at a path: itself, or those directly below it."""
    if not path.is_dir():
        raise InputError(f"no such run: {path} is not a directory")
    if RunDirectory(path).is_run():
        return [RunDirectory(path)]
    found = [run for run in map(RunDirectory, path.iterdir()) if run.is_run()]
    if not found and (path / CONFIG).exists():
        raise InputError(f"{path} has no checkpoint yet; run the command that began it again")
    if not found and (path / CELLS).exists():
        raise InputError(f"{path} is a report about a grid; its {CELLS} names the directories of runs")
    if not found:
        raise InputError(f"{path} holds no run: it has no {CHECKPOINT}, nor has a directory directly in it")
    order = {name: number for number, name in enumerate(NAMES)}
    return sorted(found, key=lambda run: (order.get(run.path.name, len(NAMES)), run.path.name))


def read_sweeps(runs: Sequence[RunDirectory]) -> list[Sweep]:
    """The results of several runs, each under a name of its own."""
    sweeps = [run.sweep() for run in runs]
    for method, count in Counter(sweep.method for sweep in sweeps).items():
        alike = [place for place, sweep in enumerate(sweeps) if sweep.method == method]
        if count > 1:
            for place, apart in zip(alike, _apart([runs[place] for place in alike]), strict=True):
                sweeps[place] = dataclasses.replace(sweeps[place], method=f"{method} ({apart})")
    return sweeps


def _apart(runs: list[RunDirectory]) -> list[str]:
    """Distinct names for runs of one method: one or two settings, or else their directories."""
    found = [settings(run.config()) for run in runs]
    names = dict.fromkeys(name for each in found for name in each)
    differing = [name for name in names if len({str(each.get(name)) for each in found}) > 1]
    named = [", ".join(f"{name} {each.get(name)}" for name in differing) for each in found]
    is_short = len(differing) <= 2 and len(set(named)) == len(named)
    return named if is_short else [str(run.path) for run in runs]


def provenance(runs: Sequence[RunDirectory], names: Sequence[str] | None = None) -> dict[str, str]:
    """The provenance of runs, as text by topic; `names` are their methods by default."""
    configs = [run.config() for run in runs]
    names = names or [config["method"]["name"] for config in configs]
    sittings = [sessions(config) for config in configs]
    seconds = [run.training_seconds() for run in runs]
    times = ["unknown" if each is None else f"{each:,.0f} s" for each in seconds]
    hardware = [
        ["{device}, {cores} cores".format(**session["hardware"]) for session in each] for each in sittings
    ]
    trained = [[_versions(session["versions"]) for session in each] for each in sittings]
    evaluated = [_versions(run.evaluated_with()) for run in runs]
    others = [{one} - set(known) for one, known in zip(evaluated, trained, strict=True)]
    steps = [
        f"{training['steps']:,}, batch size {training['batch_size']}"
        + (f", {training['precision']} matmuls" if "precision" in training else "")
        for training in (config["training"] for config in configs)
    ]
    notes = ("command", "dataset from", "preset")

    def once(lines: Iterable[str]) -> str:
        return "\n".join(filter(None, dict.fromkeys(lines)))

    return {
        **{topic: once(config["notes"].get(topic, "") for config in configs) for topic in notes},
        "steps": once(steps),
        "training time": "\n".join(f"{name}: {time}" for name, time in zip(names, times, strict=True)),
        "hardware": _counted(hardware),
        "versions": _counted(trained),
        "evaluated with": _counted(others),
    }


def _versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _counted(of_runs: Sequence[Iterable[str]]) -> str:
    """Each line once, with the number of its runs where not all have it."""
    counts = Counter(line for lines in of_runs for line in dict.fromkeys(lines) if line)
    every = len(of_runs)
    return "\n".join(line if n == every else f"{line} ({n} of {every})" for line, n in counts.items())


def write_results(
    directory: Path,
    methods: Methods,
    evaluated_with: Mapping[str, dict[str, str]],
    report: Mapping[str, str | bytes | None] | None = None,
    before_replacing: Callable[[], None] = lambda: None,
    estimates: Estimates | None = None,
    paths: Sequence[MazePath] = (),
) -> None:
    """Write results.csv and summary.json, and a report beside them; if that fails, all old files stay.

    Without `report`, that of other results is removed. Nothing is written if `before_replacing` raises.
    `evaluated_with` has versions by method; `estimates` are those of an offline evaluation, `paths` those of
    one in a maze.
    """
    dataset, recommended = next(iter(methods.values())).dataset, recommend(methods)
    results = results_text([method.sweep for method in methods.values()], dataset.task)
    summary = {
        "dataset": dataset.to_json(),
        "task": dataset.task.to_json(),  # what the scores mean
        "recommendation": recommended and recommended.to_json(),
        "methods": {name: method.to_json() for name, method in methods.items()},
        "measured_with": {name: versions for name, versions in evaluated_with.items() if versions},
    }
    try:
        known = read_json(directory / SUMMARY)["dataset"] == summary["dataset"]
        is_new = not known or read_text(directory / RESULTS) != results
    except (OSError, InputError, KeyError, TypeError):
        is_new = True
    contents: dict[str, str | bytes | None] = {RESULTS: results}
    # These are about other results.
    contents |= dict.fromkeys((ESTIMATES, REPLAYS, PATHS, *REPORT)) if is_new else {}
    if estimates:
        replays = estimates.replays
        contents |= {ESTIMATES: estimates.to_csv(), REPLAYS: replays.to_csv() if replays else None}
    contents |= {PATHS: paths_text(paths)} if paths else {}
    # The summary is written last: where it exists, the other files are complete.
    contents |= {**(report or {}), SUMMARY: json.dumps(summary, indent=2, allow_nan=False) + "\n"}
    files = {directory / name: content for name, content in contents.items()}
    # Results that are there already must survive an interruption; others must not keep their summary.
    write_together(files, before_replacing, withdrawn=[directory / SUMMARY] if is_new else [])
