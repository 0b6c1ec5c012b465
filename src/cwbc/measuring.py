"""From trained policies to the results in their run directory."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from cwbc import evaluation, runs
from cwbc.dataset_summary import DatasetSummary
from cwbc.finished import provenance, read_history
from cwbc.policy import Policies
from cwbc.reporting import write_report
from cwbc.results import Sweep


def measure(
    directory: Path,
    policies: Policies,
    environment: str,
    targets: tuple[float, ...],
    episodes: int,
    progress: Callable[[int], None] | None = None,
    before_writing: Callable[[], None] = lambda: None,
) -> tuple[Sweep, DatasetSummary]:
    """Sweep the asked return, and write what a run directory holds about it.

    Args:
        progress: told the number of timesteps done.
        before_writing: may raise, and then nothing is written.
    """
    sweep = evaluation.evaluate(policies, environment, targets, episodes, progress=progress)
    kept = DatasetSummary.from_json(runs.read_config(directory)["dataset"])
    dataset = dataclasses.replace(kept, environment=environment)
    before_writing()
    histories, versions = {sweep.method: read_history(directory)}, runs.versions()
    origin = provenance([directory], [versions])
    write_report(directory, [sweep], dataset, origin, histories, {sweep.method: versions})
    return sweep, dataset
