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
from cwbc.cli.session import Session
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import summary_table, write_report
from cwbc.reports.comparison import training_warnings
from cwbc.results import thresholds
from cwbc.results.recommendation import recommend
from cwbc.results.sentences import calibration_in_words, differing_in_words, estimated_in_words, finding
from cwbc.runs.finished import TrainingHistory, check_place, find_runs, provenance, read_sweeps
from cwbc.runs.run_directory import PAGE, RunDirectory
from cwbc.system.console import PlainConsole, output
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

    def run(self, session: Session) -> int:
        """Write the report; 1 where a method is beyond a limit."""
        if not self.runs:
            raise InputError("give at least one run directory")
        each_once: dict[Path, RunDirectory] = {}
        for run in (run for name in self.runs for run in find_runs(Path(name))):
            each_once.setdefault(run.path.resolve(), run)
        found = list(each_once.values())
        out = Path(self.out or (self.runs[0] if len(self.runs) == 1 else "report"))
        if RunDirectory(out).is_run() and found != [RunDirectory(out)]:
            raise InputError(f"{out} is a run with its own results; give another --out")
        check_place(out)
        if out.is_dir() and not os.access(out, os.W_OK):
            raise InputError(f"{out} cannot be written to; give another --out")
        metrics = thresholds.metrics_of(one_dataset(found).task)
        limits = thresholds.parse(self.fail_under, self.fail_over, metrics)
        failures = write(out, found, limits)
        for line in failures:
            session.say(f"failed: {line}")
        if limits and not failures:
            output("within all limits: " + ", ".join(map(str, limits)))
        return 1 if failures else 0


def write(out: Path, runs: list[RunDirectory], limits: Sequence[thresholds.Gate] = ()) -> list[str]:
    """Write the report of several runs and print its summary; returns a line for every limit not met.

    Where `out` is the run itself, it is locked between reading and writing.
    """
    with runs[0].lock() if runs == [RunDirectory(out)] else contextlib.nullcontext():
        dataset, sweeps = one_dataset(runs), read_sweeps(runs)
        thresholds.check_methods(limits, {sweep.method: sweep.takes_target for sweep in sweeps})
        named = {sweep.method: run for sweep, run in zip(sweeps, runs, strict=True)}
        methods = write_report(
            out,
            sweeps,
            dataset,
            provenance(runs, list(named)),
            {name: TrainingHistory.of(run.config(), run.metrics()) for name, run in named.items()},
            {name: run.evaluated_with() for name, run in named.items()},
            {name: run.training_warnings() for name, run in named.items()},
            {name: run.estimates() for name, run in named.items()},
            {name: video for name, run in named.items() if (video := run.video())},
        )
    console = PlainConsole()
    console.print(summary_table(methods))
    lines = [f"training warning: {text}" for text in training_warnings(methods)]
    lines += [*estimated_in_words(methods), finding(methods)]
    lines += [*calibration_in_words(methods), *differing_in_words(methods)]
    if (recommended := recommend(methods)) is not None:
        lines += ["", recommended.sentence(), *(f"- {caveat}" for caveat in recommended.caveats)]
    for line in lines:
        console.print(line, highlight=False, markup=False)
    output(f"report: {out / PAGE}")
    return thresholds.failures(limits, methods)


def one_dataset(runs: list[RunDirectory]) -> DatasetSummary:
    """The dataset that all runs are about."""
    datasets = [run.dataset() for run in runs]
    first = next((index for index, run in enumerate(runs) if run.is_cloned()), 0)
    for run, dataset in zip(runs, datasets, strict=True):
        # Value-based policies are greedy beside others that are sampled: they have no distribution.
        sampled = dataset.sampled_actions if run.is_cloned() else datasets[first].sampled_actions
        if dataclasses.replace(dataset, sampled_actions=sampled) != datasets[first]:
            other = f"{runs[first].path} about {_in_words(datasets[first])}"
            raise InputError(f"{run.path} is about {_in_words(dataset)}, {other}; a report shows one dataset")
    return datasets[first]


def _in_words(dataset: DatasetSummary) -> str:
    """The dataset's name with its hash, which an earlier dataset of the same name does not have."""
    sampled = " with sampled actions" if dataset.sampled_actions else ""
    return f"{dataset.name} ({dataset.content_hash[:8]}…) in {dataset.environment}{sampled}"
