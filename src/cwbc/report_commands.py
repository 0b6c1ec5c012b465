"""What `cwbc report` does: finished runs are read from disk alone, so nothing here needs jax."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path

from cwbc import cli, gates, runs
from cwbc.dataset_summary import DatasetSummary
from cwbc.errors import InputError
from cwbc.finished import (
    check_place,
    find_runs,
    is_run,
    measured_on,
    measured_with,
    provenance,
    read_history,
    read_sweeps,
    read_warnings,
)
from cwbc.plain_text import PlainConsole, output, say
from cwbc.recommendation import recommend
from cwbc.reporting import Summary, summary_table, write_report
from cwbc.reporting.report import training_warnings
from cwbc.reporting.terminal import ReliabilityChart
from cwbc.wording import calibration_in_words, differing_in_words, finding


def report(command: cli.Report) -> int:
    """Write a report of finished runs; 1 where one of them is beyond a limit that was given."""
    if not command.runs:
        raise InputError("give at least one run directory")
    each_once: dict[Path, Path] = {}
    for directory in (directory for name in command.runs for directory in find_runs(Path(name))):
        each_once.setdefault(directory.resolve(), directory)
    found = list(each_once.values())
    out = Path(command.out or (command.runs[0] if len(command.runs) == 1 else "report"))
    if is_run(out) and found != [out]:
        raise InputError(f"{out} is a run and keeps its own results; give another --out")
    check_place(out)
    if out.is_dir() and not os.access(out, os.W_OK):
        raise InputError(f"{out} cannot be written to; give another --out")
    metrics = gates.metrics_of(_one_dataset(found).task) if command.fail_under or command.fail_over else ()
    limits = gates.parse(command.fail_under, command.fail_over, metrics)
    failures = write_held(out, found, limits)
    for line in failures:
        say(f"failed: {line}")
    if limits and not failures:
        output("within all limits: " + ", ".join(map(str, limits)))
    return 1 if failures else 0


def write_held(out: Path, directories: list[Path], limits: Sequence[gates.Gate] = ()) -> list[str]:
    """`write`, and where that is the run itself, nobody measures it between reading and writing."""
    with runs.held(out) if directories == [out] else contextlib.nullcontext():
        return write(out, directories, limits)


def write(out: Path, directories: list[Path], limits: Sequence[gates.Gate] = ()) -> list[str]:
    """Write the report of several runs and print the finding; hands back a line for every limit not kept."""
    dataset = _one_dataset(directories)
    sweeps = read_sweeps(directories)
    gates.check_methods(limits, {sweep.method: sweep.takes_target for sweep in sweeps})
    histories = {
        sweep.method: read_history(directory) for sweep, directory in zip(sweeps, directories, strict=True)
    }
    measured = {
        sweep.method: measured_with(directory) for sweep, directory in zip(sweeps, directories, strict=True)
    }
    origin = provenance(directories, names=[sweep.method for sweep in sweeps])
    warnings = {
        sweep.method: read_warnings(directory) for sweep, directory in zip(sweeps, directories, strict=True)
    }
    summary = write_report(out, sweeps, dataset, origin, histories, measured, warnings)
    show(out, summary, dataset)
    return gates.failures(limits, summary["methods"])


def show(out: Path, summary: Summary, dataset: DatasetSummary) -> None:
    """Print the table and the chart of a report, what was found and what to deploy."""
    console, methods = PlainConsole(), summary["methods"]
    console.print(summary_table(summary))
    console.print(ReliabilityChart(methods, dataset.task, dataset.best))
    lines = [f"training warning: {text}" for text in training_warnings(methods)]
    lines += [finding(methods, dataset), *calibration_in_words(methods), *differing_in_words(methods)]
    if (recommended := recommend(methods, dataset)) is not None:
        lines += ["", recommended.sentence(), *(f"- {caveat}" for caveat in recommended.caveats)]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    console.print(f"report: {out / runs.PAGE}", highlight=False, soft_wrap=True, markup=False)


def _one_dataset(directories: list[Path]) -> DatasetSummary:
    datasets = [measured_on(directory) for directory in directories]
    for directory, dataset in zip(directories, datasets, strict=True):
        if dataset != datasets[0]:
            first = f"{directories[0]} about {_in_words(datasets[0])}"
            raise InputError(
                f"{directory} is about {_in_words(dataset)}, {first}; a report shows one dataset"
            )
    return datasets[0]


def _in_words(dataset: DatasetSummary) -> str:
    """What tells it apart, also from an earlier one of its name."""
    return f"{dataset.name} ({dataset.content_hash[:8]}…) in {dataset.environment}"
