"""Finished runs as they lie on disk: where they are, what was measured, and how it came about."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypedDict

from cwbc import runs
from cwbc.checkpoints import CHECKPOINT
from cwbc.dataset_summary import DatasetSummary
from cwbc.diagnostics import training_warnings
from cwbc.errors import InputError
from cwbc.files import is_aside, read_json
from cwbc.histories import History
from cwbc.json_values import decode
from cwbc.method_names import NAMES
from cwbc.results import COLUMNS, Sweep, read_results


class _Summary(TypedDict):
    """What is read again of summary.json."""

    dataset: dict[str, Any]


def check_place(root: Path) -> None:
    """Refuse to put a report among files that are not ours."""
    if not root.exists():
        return
    others = sorted(file.name for file in root.iterdir() if file.is_file() and not is_aside(file))
    ours = _holds(root / runs.CONFIG, "runs", "method") or _holds(root / runs.SUMMARY, "methods")
    if others and not ours and not _is_cut_short(root, others):
        raise InputError(f"{root} holds other files, such as {others[0]}; give another --out")


def _holds(path: Path, *keys: str) -> bool:
    try:
        return any(key in read_json(path) for key in keys)
    except (OSError, InputError, TypeError):
        return False


def _is_cut_short(root: Path, names: list[str]) -> bool:
    """Whether there is nothing but a report that a kill left without its summary."""
    if runs.RESULTS not in names or not {runs.RESULTS, *runs.REPORT}.issuperset(names):
        return False
    with (root / runs.RESULTS).open("rb") as file:
        return file.readline().strip() == ",".join(COLUMNS).encode()


def check_results(
    directory: Path, environment: str, targets: tuple[float, ...], episodes: int, overwrite: bool
) -> None:
    """Refuse to replace results that were measured in another way, unless that was asked for."""
    if overwrite or not (directory / runs.SUMMARY).exists():
        return
    try:
        differences = _differences(directory, environment, targets, episodes)
    except InputError as error:  # what is left of them may be of use to somebody
        raise InputError(f"{error}; --overwrite measures {directory} again") from error
    if differences:
        told = f"{directory / runs.RESULTS} was measured otherwise: {', '.join(differences)}"
        raise InputError(f"{told}; --overwrite replaces it")


def is_measured(directory: Path, environment: str, targets: tuple[float, ...], episodes: int) -> bool:
    """Whether a run has results that were measured in just this way; damaged ones are none."""
    try:
        is_there = (directory / runs.SUMMARY).exists()
        return is_there and not _differences(directory, environment, targets, episodes)
    except InputError:
        return False


def _differences(directory: Path, environment: str, targets: tuple[float, ...], episodes: int) -> list[str]:
    """In what the results of a run are others than these."""
    (sweep,) = read_sweeps([directory])
    seeds, was = runs.read_config(directory).get("seeds", []), measured_on(directory).environment
    asked, each = tuple(sweep.targets.tolist()), sweep.returns.shape[2]
    found = []
    if set(sweep.seeds.tolist()) != set(seeds):
        found.append(f"{len(sweep.seeds)} seeds, now {len(seeds)}{_others(sweep.seeds, seeds)}")
    if was != environment:
        found.append(f"in {was}, now in {environment}")
    if sweep.takes_target and asked != targets:
        found.append(f"{len(asked)} target returns, now {len(targets)}{_others(asked, targets)}")
    if each != episodes:
        found.append(f"{each} episodes each, now {episodes}")
    return found


def _others(these: Sized, those: Sized) -> str:
    return " others" if len(these) == len(those) else ""


def measured_on(directory: Path) -> DatasetSummary:
    """The dataset of a run's results, with the environment that they were measured in."""
    path = directory / runs.SUMMARY
    if not path.exists():
        config = runs.read_config(directory)
        if runs.steps_done(directory) < config["training"]["steps"]:
            command = config["notes"].get("command", "the command that began it")
            raise InputError(f"{directory} is not trained to its end yet; this goes on with it:\n{command}")
        raise InputError(f"{directory} is not evaluated yet; `{evaluate_command(directory)}` does it")
    try:
        summary = read_json(path)
        return DatasetSummary.from_json(decode(_Summary, summary, "summary")["dataset"])
    except (InputError, FileNotFoundError) as error:  # the latter, if it is just replaced
        told = str(error)
        raise InputError(told if told.startswith(str(path)) else f"{path} is damaged: {told}") from error


def evaluate_command(directory: Path) -> str:
    """What to type to measure a run."""
    environment = runs.read_config(directory)["dataset"]["environment"] or measured_in(directory) or "ID"
    # Of what the run's files name, only what needs no import is taken without being named again.
    is_told = environment != "ID" and ":" not in environment
    return shlex.join(["cwbc", "evaluate", str(directory), *([] if is_told else ["--env", environment])])


def measured_in(directory: Path) -> str | None:
    """The environment that a run was measured in; None where it was not, or where that is damaged."""
    with contextlib.suppress(InputError):
        return measured_on(directory).environment if (directory / runs.SUMMARY).exists() else None
    return None


def is_run(directory: Path) -> bool:
    """Whether it holds one run: its parameters or, where somebody left these behind, its results."""
    # os.path: what may not be looked into is none, and no error.
    is_measured_run = os.path.exists(directory / runs.SUMMARY) and _holds(directory / runs.CONFIG, "method")
    return os.path.exists(directory / CHECKPOINT) or is_measured_run


def find_runs(path: Path) -> list[Path]:
    """The run directories at a path: itself, or those directly below it."""
    if not path.is_dir():
        raise InputError(f"no such run: {path} is not a directory")
    if is_run(path):
        return [path]
    found = [child for child in path.iterdir() if is_run(child)]
    if not found and (path / runs.CONFIG).exists():
        raise InputError(f"{path} has no checkpoint yet; run the command that began it again")
    if not found and (path / runs.CELLS).exists():
        raise InputError(f"{path} is a report about a grid; its {runs.CELLS} names the directories of runs")
    if not found:
        raise InputError(f"{path} holds no run: it has no {CHECKPOINT}, nor has a directory directly in it")
    return sorted(found, key=lambda d: (NAMES.index(d.name) if d.name in NAMES else len(NAMES), d.name))


def read_sweeps(directories: list[Path]) -> list[Sweep]:
    """The results of several runs, each under a name of its own."""
    sweeps: list[Sweep] = []
    for directory in directories:
        found = read_results(directory / runs.RESULTS)
        if len(found) != 1:
            raise InputError(f"{directory / runs.RESULTS} holds {len(found)} methods; a run has one")
        # Earlier versions evaluated a method that takes no target at all of them.
        unconditioned = runs.read_config(directory)["method"].get("condition", "unknown") is None
        sweeps += [sweep.once() for sweep in found] if unconditioned else found
    methods = [sweep.method for sweep in sweeps]
    for method in {method for method in methods if methods.count(method) > 1}:
        alike = [place for place, name in enumerate(methods) if name == method]
        for place, apart in zip(alike, _apart([directories[place] for place in alike]), strict=True):
            sweeps[place] = dataclasses.replace(sweeps[place], method=f"{method} ({apart})")
    return sweeps


def _apart(directories: list[Path]) -> list[str]:
    """What tells runs of one method apart: a setting or two, or else where they lie."""
    settings = [runs.settings(runs.read_config(directory)) for directory in directories]
    names = dict.fromkeys(name for each in settings for name in each)
    differing = [name for name in names if len({str(each.get(name)) for each in settings}) > 1]
    told = [", ".join(f"{name} {each.get(name)}" for name in differing) for each in settings]
    is_short = len(differing) <= 2 and len(set(told)) == len(told)
    return told if is_short else [str(directory) for directory in directories]


def read_history(directory: Path) -> History:
    """How a run was trained."""
    return History.of(runs.read_config(directory), runs.read_metrics(directory))


def read_warnings(directory: Path) -> list[str]:
    """What looks wrong in a run's training."""
    config = runs.read_config(directory)
    return training_warnings(runs.read_metrics(directory), config["seeds"], config["method"])


def measured_with(directory: Path) -> dict[str, str]:
    """The versions that a run's results were measured with; none where they were not kept."""
    try:
        (versions,) = read_json(directory / runs.SUMMARY)["measured_with"].values()
        return dict(decode(dict[str, str], versions, "versions"))
    except (OSError, InputError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def provenance(
    directories: list[Path],
    measured: Sequence[Mapping[str, str]] | None = None,
    names: Sequence[str] | None = None,
) -> dict[str, str]:
    """How runs came about, for people to read.

    Args:
        measured: the versions that each was measured with, by default those on disk.
        names: how each is called, by default by its method.
    """
    configs = {directory: runs.read_config(directory) for directory in directories}
    sittings = [runs.sittings(config) for config in configs.values()]
    trained = [[_versions(sitting["versions"]) for sitting in each] for each in sittings]
    acted = [_versions(versions) for versions in measured or map(measured_with, directories)]

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
        "hardware": _counted([[_hardware(sitting["hardware"]) for sitting in run] for run in sittings]),
        "versions": _counted(trained),
        "measured with": _counted(
            [[v] if v not in known else [] for v, known in zip(acted, trained, strict=True)]
        ),
    }


def _method(config: Mapping[str, Any]) -> str:
    return str(config["method"]["name"])


def _steps(config: Mapping[str, Any]) -> str:
    training = config["training"]
    products = f", {training['precision']} products" if "precision" in training else ""
    return f"{training['steps']:,} of {training['batch_size']} windows{products}"


def _once(lines: Iterable[str]) -> str:
    return "\n".join(line for line in dict.fromkeys(lines) if line)


def _counted(of_runs: Sequence[Iterable[str]]) -> str:
    """Each line once, with how many runs have it where not all do."""
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
    seconds = runs.training_seconds(directory)
    return "unknown" if seconds is None else f"{seconds:,.0f} s"
