"""The training of runs: from a dataset and methods to policies, in directories that can be resumed."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cwbc.core import training
from cwbc.core.device import Place
from cwbc.core.diagnostics import training_warnings
from cwbc.core.memory import check_training
from cwbc.core.methods import Method, Training, as_begun, to_json
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.training import Trainee
from cwbc.core.trajectories import Trajectories
from cwbc.runs.checkpointing import Checkpointer
from cwbc.runs.policies import Policies, statistics
from cwbc.runs.run_directory import configuration, locked, read_metrics, track
from cwbc.runs.tracking import Tracking


def train(
    data: Trajectories,
    method: Method,
    settings: Training,
    seeds: tuple[int, ...],
    directory: Path | None = None,
    notes: dict[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    data_on: Place | None = None,
    tracking: Tracking | None = None,
) -> Policies:
    """`train_together` of one method, with its directory locked."""
    directories = None if directory is None else [directory]
    trackings = None if tracking is None else [tracking]
    with contextlib.nullcontext() if directory is None else locked(directory):
        (policies,) = train_together(
            data, [method], settings, seeds, directories, notes, progress, should_stop, data_on, trackings
        )
    return policies


def train_together(
    data: Trajectories,
    methods: Sequence[Method],
    settings: Training,
    seeds: tuple[int, ...],
    directories: Sequence[Path] | None = None,
    notes: dict[str, Any] | None = None,
    progress: Callable[[int], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    data_on: Place | None = None,
    trackings: Sequence[Tracking] | None = None,
    before_writing: Callable[[], None] = lambda: None,
) -> list[Policies]:
    """Train methods of one form in one program; with directories, resume interrupted runs.

    The caller locks the directories.

    Args:
        progress: called with the number of steps done, on average where some are ahead of others.
        should_stop: called between chunks; if it returns true, states are saved, and Interrupted ends it.
        data_on: where the data is stored, with the same result; by default the device if it has room.
        before_writing: called before files are written; may raise, and then they are not.
    """
    for method in methods:
        check_training(PolicySpec.fit(method, data, settings), settings, len(seeds))
    before_writing()
    places: Sequence[Path | None] = directories or [None] * len(methods)
    watched = trackings or [Tracking() for _ in methods]
    runs = [
        _Run.begin(data, method, settings, seeds, place, notes or {}, tracking, before_writing)
        for method, place, tracking in zip(methods, places, watched, strict=True)
    ]
    trainees = [run.trainee for run in runs]
    training.train(data, trainees, settings, progress, should_stop, data_on, before_writing)
    return [run.policies() for run in runs]


@dataclasses.dataclass
class _Run:
    """One method during its training, with its directory if it has one."""

    trainee: Trainee
    about: dict[str, Any]
    metrics: list[dict[str, Any]]  # of all its sessions

    @classmethod
    def begin(
        cls,
        data: Trajectories,
        method: Method,
        settings: Training,
        seeds: tuple[int, ...],
        directory: Path | None,
        notes: dict[str, Any],
        tracking: Tracking,
        before_writing: Callable[[], None],
    ) -> _Run:
        spec, about = PolicySpec.fit(method, data, settings), _about(data)
        state, metrics = training.initialize(spec, settings, seeds), list[dict[str, Any]]()
        if directory is None:
            begun = as_begun(spec.method, settings.steps)
            return cls(Trainee(spec, begun, seeds, state, record=metrics.append), about, metrics)
        description = {
            "design": spec.to_json(),
            "seeds": list(seeds),
            "steps": settings.steps,
            "about": about,
        }
        config = configuration(data, spec, settings, seeds, notes)
        checkpointer = Checkpointer(directory, config, description)
        state, step, seconds = checkpointer.resume(state, statistics(spec))
        spec = dataclasses.replace(spec, actions=checkpointer.actions or spec.actions)
        metrics += read_metrics(directory)
        track(directory, tracking)

        def record(row: dict[str, Any]) -> None:
            metrics.append(row)
            checkpointer.record(row)
            tracking.record(row)

        def save(state: Any, step: int) -> None:
            checkpointer.save(state, step, statistics(spec), before_writing)

        begun = as_begun(spec.method, checkpointer.first_steps)
        return cls(Trainee(spec, begun, seeds, state, step, seconds, record, save), about, metrics)

    def policies(self) -> Policies:
        trainee = self.trainee
        warnings = training_warnings(self.metrics, trainee.seeds, to_json(trainee.method))
        return Policies(trainee.spec, trainee.state.parameters, trainee.seeds, self.about, tuple(warnings))


def _about(data: Trajectories) -> dict[str, Any]:
    return {
        "dataset": data.name,
        "content_hash": data.content_hash,
        "environment": data.environment,
        "lowest_return": data.lowest,
        "best_return": data.best,
        "cwbc": importlib.metadata.version("cwbc"),
    }
