"""Finished runs, read from disk: their directories, their evaluations and their provenance."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypedDict

from cwbc.core.diagnostics import training_warnings
from cwbc.core.method_names import NAMES
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.sweeps import COLUMNS, Sweep, read_results
from cwbc.runs import run_directory
from cwbc.runs.histories import TrainingHistory
from cwbc.system.errors import InputError
from cwbc.system.files import is_aside, read_json
from cwbc.system.tensor_files import CHECKPOINT
from cwbc.system.typed_json import decode


class _Summary(TypedDict):
    """The fields of summary.json that are read again."""

    dataset: dict[str, Any]


def check_place(root: Path) -> None:
    """Refuse to write a report into a directory with other files."""
    if not root.exists():
        return
    others = sorted(file.name for file in root.iterdir() if file.is_file() and not is_aside(file))
    ours = _holds(root / run_directory.CONFIG, "runs", "method") or _holds(
        root / run_directory.SUMMARY, "methods"
    )
    if others and not ours and not _is_interrupted(root, others):
        raise InputError(f"{root} holds other files, such as {others[0]}; give another --out")


def _holds(path: Path, *keys: str) -> bool:
    try:
        return any(key in read_json(path) for key in keys)
    except (OSError, InputError, TypeError):
        return False


def _is_interrupted(root: Path, names: list[str]) -> bool:
    """Whether the only files are those of a report that was interrupted before its summary."""
    if run_directory.RESULTS not in names or not {run_directory.RESULTS, *run_directory.REPORT}.issuperset(
        names
    ):
        return False
    with (root / run_directory.RESULTS).open("rb") as file:
        return file.readline().strip() == ",".join(COLUMNS).encode()


def check_results(
    directory: Path, environment: str, targets: tuple[float, ...], episodes: int, overwrite: bool
) -> None:
    """Refuse to replace results evaluated with different settings, unless `overwrite`."""
    if overwrite or not (directory / run_directory.SUMMARY).exists():
        return
    try:
        differences = _differences(directory, environment, targets, episodes)
    except InputError as error:  # damaged results may still be of use to the user
        raise InputError(f"{error}; --overwrite evaluates {directory} again") from error
    if differences:
        path = directory / run_directory.RESULTS
        changes = ", ".join(differences)
        raise InputError(f"{path} was evaluated with different settings: {changes}; --overwrite replaces it")


def is_evaluated(directory: Path, environment: str, targets: tuple[float, ...], episodes: int) -> bool:
    """Whether a run has results with these settings; damaged results do not count."""
    try:
        is_there = (directory / run_directory.SUMMARY).exists()
        return is_there and not _differences(directory, environment, targets, episodes)
    except InputError:
        return False


def _differences(directory: Path, environment: str, targets: tuple[float, ...], episodes: int) -> list[str]:
    """The settings in which the results of a run differ from these."""
    (sweep,) = read_sweeps([directory])
    seeds, was = run_directory.read_config(directory).get("seeds", []), evaluated_on(directory).environment
    evaluated, each = tuple(sweep.targets.tolist()), sweep.returns.shape[2]
    found = []
    if set(sweep.seeds.tolist()) != set(seeds):
        found.append(f"{len(sweep.seeds)} seeds, now {len(seeds)}{_others(sweep.seeds, seeds)}")
    if was != environment:
        found.append(f"in {was}, now in {environment}")
    if sweep.takes_target and evaluated != targets:
        found.append(f"{len(evaluated)} target returns, now {len(targets)}{_others(evaluated, targets)}")
    if each != episodes:
        found.append(f"{each} episodes each, now {episodes}")
    return found


def _others(these: Sized, those: Sized) -> str:
    return " others" if len(these) == len(those) else ""


def evaluated_on(directory: Path) -> DatasetSummary:
    """The dataset of a run's results, with the environment of their evaluation."""
    path = directory / run_directory.SUMMARY
    if not path.exists():
        config = run_directory.read_config(directory)
        if run_directory.steps_done(directory) < config["training"]["steps"]:
            command = config["notes"].get("command", "the command that began it")
            raise InputError(f"{directory} is not trained to its end yet; this resumes it:\n{command}")
        raise InputError(f"{directory} is not evaluated yet; `{evaluate_command(directory)}` does it")
    try:
        summary = read_json(path)
        return DatasetSummary.from_json(decode(_Summary, summary, "summary")["dataset"])
    except (InputError, FileNotFoundError) as error:  # the latter, if it is just replaced
        text = str(error)
        raise InputError(text if text.startswith(str(path)) else f"{path} is damaged: {text}") from error


def evaluate_command(directory: Path) -> str:
    """The command line that evaluates a run."""
    environment = (
        run_directory.read_config(directory)["dataset"]["environment"] or evaluated_in(directory) or "ID"
    )
    # An environment in the run's files is used without --env only if it needs no import.
    is_known = environment != "ID" and ":" not in environment
    return shlex.join(["cwbc", "evaluate", str(directory), *([] if is_known else ["--env", environment])])


def evaluated_in(directory: Path) -> str | None:
    """The environment of a run's evaluation; None where it is missing or damaged."""
    with contextlib.suppress(InputError):
        return evaluated_on(directory).environment if (directory / run_directory.SUMMARY).exists() else None
    return None


def is_run(directory: Path) -> bool:
    """Whether a directory is a run: it has parameters or, where these were removed, results."""
    # os.path: a directory without read permission is no run, and no error.
    is_evaluated_run = os.path.exists(directory / run_directory.SUMMARY) and _holds(
        directory / run_directory.CONFIG, "method"
    )
    return os.path.exists(directory / CHECKPOINT) or is_evaluated_run


def find_runs(path: Path) -> list[Path]:
    """The run directories at a path: itself, or those directly below it."""
    if not path.is_dir():
        raise InputError(f"no such run: {path} is not a directory")
    if is_run(path):
        return [path]
    found = [child for child in path.iterdir() if is_run(child)]
    if not found and (path / run_directory.CONFIG).exists():
        raise InputError(f"{path} has no checkpoint yet; run the command that began it again")
    if not found and (path / run_directory.CELLS).exists():
        raise InputError(
            f"{path} is a report about a grid; its {run_directory.CELLS} names the directories of runs"
        )
    if not found:
        raise InputError(f"{path} holds no run: it has no {CHECKPOINT}, nor has a directory directly in it")
    return sorted(found, key=lambda d: (NAMES.index(d.name) if d.name in NAMES else len(NAMES), d.name))


def read_sweeps(directories: list[Path]) -> list[Sweep]:
    """The results of several runs, each under a name of its own."""
    sweeps: list[Sweep] = []
    for directory in directories:
        found = read_results(directory / run_directory.RESULTS)
        if len(found) != 1:
            raise InputError(f"{directory / run_directory.RESULTS} holds {len(found)} methods; a run has one")
        # Earlier versions evaluated a method that takes no target at all of them.
        unconditioned = run_directory.read_config(directory)["method"].get("condition", "unknown") is None
        sweeps += [sweep.once() for sweep in found] if unconditioned else found
    methods = [sweep.method for sweep in sweeps]
    for method in {method for method in methods if methods.count(method) > 1}:
        alike = [place for place, name in enumerate(methods) if name == method]
        for place, apart in zip(alike, _apart([directories[place] for place in alike]), strict=True):
            sweeps[place] = dataclasses.replace(sweeps[place], method=f"{method} ({apart})")
    return sweeps


def _apart(directories: list[Path]) -> list[str]:
    """Distinct names for runs of one method: one or two settings, or else their directories."""
    settings = [run_directory.settings(run_directory.read_config(directory)) for directory in directories]
    names = dict.fromkeys(name for each in settings for name in each)
    differing = [name for name in names if len({str(each.get(name)) for each in settings}) > 1]
    named = [", ".join(f"{name} {each.get(name)}" for name in differing) for each in settings]
    is_short = len(differing) <= 2 and len(set(named)) == len(named)
    return named if is_short else [str(directory) for directory in directories]


def read_history(directory: Path) -> TrainingHistory:
    """The training history of a run."""
    return TrainingHistory.of(run_directory.read_config(directory), run_directory.read_metrics(directory))


def read_warnings(directory: Path) -> list[str]:
    """The warnings about a run's training."""
    config = run_directory.read_config(directory)
    return training_warnings(run_directory.read_metrics(directory), config["seeds"], config["method"])


def evaluated_with(directory: Path) -> dict[str, str]:
    """The versions that evaluated a run; empty where they were not stored."""
    try:
        (versions,) = read_json(directory / run_directory.SUMMARY)["measured_with"].values()
        return dict(decode(dict[str, str], versions, "versions"))
    except (OSError, InputError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def provenance(
    directories: list[Path],
    evaluated: Sequence[Mapping[str, str]] | None = None,
    names: Sequence[str] | None = None,
) -> dict[str, str]:
    """The provenance of runs, as text by topic.

    Args:
        evaluated: the versions that evaluated each run; by default those on disk.
        names: of the runs; by default their methods.
    """
    configs = {directory: run_directory.read_config(directory) for directory in directories}
    sessions = [run_directory.sessions(config) for config in configs.values()]
    trained = [[_versions(session["versions"]) for session in each] for each in sessions]
    acted = [_versions(versions) for versions in evaluated or map(evaluated_with, directories)]

    def each(value: Callable[[dict[str, Any]], str]) -> str:
        return _once(value(config) for config in configs.values())

    return {
        "command": each(lambda c: c["notes"].get("command", "")),
        "dataset from": each(lambda c: c["notes"].get("dataset from", "")),
        "preset": each(lambda c: c["notes"].get("preset", "")),
        "steps": each(_steps),
        "training time": "\n".join(
            f"{name}: {_seconds(directory)}"
            for directory, name in zip(directories, names or map(_method, configs.values()), strict=True)
        ),
        "hardware": _counted([[_hardware(session["hardware"]) for session in run] for run in sessions]),
        "versions": _counted(trained),
        "evaluated with": _counted(
            [[v] if v not in known else [] for v, known in zip(acted, trained, strict=True)]
        ),
    }


def _method(config: Mapping[str, Any]) -> str:
    return str(config["method"]["name"])


def _steps(config: Mapping[str, Any]) -> str:
    training = config["training"]
    precision = f", {training['precision']} matmuls" if "precision" in training else ""
    return f"{training['steps']:,}, batch size {training['batch_size']}{precision}"


def _once(lines: Iterable[str]) -> str:
    return "\n".join(line for line in dict.fromkeys(lines) if line)


def _counted(of_runs: Sequence[Iterable[str]]) -> str:
    """Each line once, with the number of its runs where not all have it."""
    every = len(of_runs)
    counts = Counter(line for lines in of_runs for line in dict.fromkeys(lines) if line)
    return "\n".join(
        line if count == every else f"{line} ({count} of {every})" for line, count in counts.items()
    )


def _hardware(hardware: Mapping[str, Any]) -> str:
    return f"{hardware['device']}, {hardware['cores']} cores"


def _versions(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _seconds(directory: Path) -> str:
    seconds = run_directory.training_seconds(directory)
    return "unknown" if seconds is None else f"{seconds:,.0f} s"
