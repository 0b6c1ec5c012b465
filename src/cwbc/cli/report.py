"""`cwbc report`: finished runs are read from disk alone, so nothing here needs jax."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional, arg

from cwbc.cli.options import Directory
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import summary_table, write_report
from cwbc.reports.comparison import training_warnings
from cwbc.results import thresholds
from cwbc.results.evaluated import Methods
from cwbc.results.recommendation import recommend
from cwbc.results.sentences import calibration_in_words, differing_in_words, finding
from cwbc.runs import run_directory
from cwbc.runs.finished import (
    check_place,
    evaluated_on,
    evaluated_with,
    find_runs,
    is_run,
    provenance,
    read_history,
    read_sweeps,
    read_warnings,
)
from cwbc.system.console import PlainConsole, output, say
from cwbc.system.errors import InputError

Limits = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    arg(metavar="[METHOD:]METRIC=X,...", help_behavior_hint="(can be repeated)"),
]


@dataclasses.dataclass(frozen=True)
class ReportRuns:
    """Tables and charts from finished runs, read from disk only."""

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN ...", help_behavior_hint="")]
    """Run directories, or ones that hold several."""
    out: Directory = None
    """Directory of the report (default: the run's own, or `report` for several)."""
    fail_under: Limits = ()
    """Exit with 1 where the value of a method (not its interval) is below: ood_retention=0.9,at_expert=50.
    Each limit holds for all methods, or for one: rvs+cwbc:ood_retention=0.9.
    Of ood_retention, monotonicity, at_dataset_best, at_expert, at_twice_expert, best_point; where no expert
    is published, at_best_plus_range takes the place of at_expert and at_twice_expert."""
    fail_over: Limits = ()
    """The same where it is above, for metrics that are better when lower: calibration_error=5."""

    def run(self, command_line: str) -> int:
        """Write the report; 1 where a method is beyond a limit."""
        return _report(self)


def _report(command: ReportRuns) -> int:
    if not command.runs:
        raise InputError("give at least one run directory")
    each_once: dict[Path, Path] = {}
    for directory in (directory for name in command.runs for directory in find_runs(Path(name))):
        each_once.setdefault(directory.resolve(), directory)
    found = list(each_once.values())
    out = Path(command.out or (command.runs[0] if len(command.runs) == 1 else "report"))
    if is_run(out) and found != [out]:
        raise InputError(f"{out} is a run with its own results; give another --out")
    check_place(out)
    if out.is_dir() and not os.access(out, os.W_OK):
        raise InputError(f"{out} cannot be written to; give another --out")
    metrics = (
        thresholds.metrics_of(_one_dataset(found).task) if command.fail_under or command.fail_over else ()
    )
    limits = thresholds.parse(command.fail_under, command.fail_over, metrics)
    failures = write_locked(out, found, limits)
    for line in failures:
        say(f"failed: {line}")
    if limits and not failures:
        output("within all limits: " + ", ".join(map(str, limits)))
    return 1 if failures else 0


def write_locked(out: Path, directories: list[Path], limits: Sequence[thresholds.Gate] = ()) -> list[str]:
    """Write a report; where `out` is the run itself, it is locked between reading and writing."""
    with run_directory.locked(out) if directories == [out] else contextlib.nullcontext():
        return write(out, directories, limits)


def write(out: Path, directories: list[Path], limits: Sequence[thresholds.Gate] = ()) -> list[str]:
    """Write the report of several runs and print its summary; returns a line for every limit not met."""
    dataset = _one_dataset(directories)
    methods = draw(out, directories, dataset, limits)
    show(out, methods)
    return thresholds.failures(limits, methods)


def draw(
    out: Path, directories: list[Path], dataset: DatasetSummary, limits: Sequence[thresholds.Gate] = ()
) -> Methods:
    """Write the report of several runs on one dataset."""
    sweeps = read_sweeps(directories)
    thresholds.check_methods(limits, {sweep.method: sweep.takes_target for sweep in sweeps})
    runs = {sweep.method: directory for sweep, directory in zip(sweeps, directories, strict=True)}
    return write_report(
        out,
        sweeps,
        dataset,
        provenance(directories, names=list(runs)),
        {name: read_history(directory) for name, directory in runs.items()},
        {name: evaluated_with(directory) for name, directory in runs.items()},
        {name: read_warnings(directory) for name, directory in runs.items()},
    )


def show(out: Path, methods: Methods) -> None:
    """Print the table of a report, its summary and the recommendation."""
    console = PlainConsole()
    console.print(summary_table(methods))
    lines = [f"training warning: {text}" for text in training_warnings(methods)]
    lines += [finding(methods), *calibration_in_words(methods), *differing_in_words(methods)]
    if (recommended := recommend(methods)) is not None:
        lines += ["", recommended.sentence(), *(f"- {caveat}" for caveat in recommended.caveats)]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    console.print(f"report: {out / run_directory.PAGE}", highlight=False, soft_wrap=True, markup=False)


def _one_dataset(directories: list[Path]) -> DatasetSummary:
    datasets = [evaluated_on(directory) for directory in directories]
    for directory, dataset in zip(directories, datasets, strict=True):
        if dataset != datasets[0]:
            first = f"{directories[0]} about {_in_words(datasets[0])}"
            raise InputError(
                f"{directory} is about {_in_words(dataset)}, {first}; a report shows one dataset"
            )
    return datasets[0]


def _in_words(dataset: DatasetSummary) -> str:
    """The dataset's name with its hash, which an earlier dataset of the same name does not have."""
    return f"{dataset.name} ({dataset.content_hash[:8]}…) in {dataset.environment}"
