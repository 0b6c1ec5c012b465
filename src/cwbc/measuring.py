"""From trained policies to the results in their run directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from cwbc import evaluation, runs
from cwbc.dataset_summary import DatasetSummary
from cwbc.finished import provenance, read_history, read_warnings
from cwbc.policy import Policies
from cwbc.reporting import Summary, write_measured, write_report
from cwbc.results import Sweep


def measure(
    directory: Path,
    policies: Policies,
    environment: str,
    targets: tuple[float, ...],
    episodes: int,
    progress: Callable[[int], None] | None = None,
    before_writing: Callable[[], None] = lambda: None,
    illustrated: bool = True,
) -> tuple[Sweep, DatasetSummary, Summary]:
    """Sweep the asked return, and write what a run directory holds about it.

    Args:
        progress: told the number of timesteps done.
        before_writing: may raise, and then nothing is written.
        illustrated: whether pictures, tables and a page are drawn as well.
    """
    sweep = evaluation.evaluate(policies, environment, targets, episodes, progress=progress)
    kept = DatasetSummary.from_json(runs.read_config(directory)["dataset"])
    dataset = dataclasses.replace(kept, environment=environment)
    versions = runs.versions()
    measured_with, warnings = {sweep.method: versions}, {sweep.method: read_warnings(directory)}
    if illustrated:
        before_writing()
        histories = {sweep.method: read_history(directory)}
        origin = provenance([directory], [versions])
        summary = write_report(directory, [sweep], dataset, origin, histories, measured_with, warnings)
    else:
        summary = write_measured(directory, [sweep], dataset, measured_with, before_writing, warnings)
    return sweep, dataset, summary
