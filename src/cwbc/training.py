"""One training loop for every method, and what lives between its chunks: progress, metrics, checkpoints."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.conditioning import Condition
from cwbc.design import Design
from cwbc.device import Place, default_place, on_cpu
from cwbc.diagnostics import training_warnings
from cwbc.errors import DivergenceError
from cwbc.keeper import Keeper
from cwbc.memory import check_training
from cwbc.methods import Method, Training, to_json
from cwbc.policy import Policies
from cwbc.runs import configuration, held, read_metrics, track
from cwbc.sampling import Source, in_host_memory, raised_share, to_device
from cwbc.tracking import Tracking
from cwbc.trajectories import Trajectories
from cwbc.updates import Losses, State, chunk_length, initialize, run_chunk

SAVE_INTERVAL = 30.0  # seconds between checkpoints


class Interrupted(KeyboardInterrupt):
    """Training was asked to stop and has saved its state."""


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
    """Train a method for all seeds; with a directory, go on from where an earlier call was cut off.

    Args:
        progress: told the number of steps done.
        should_stop: asked between chunks; once it says yes, the state is saved and Interrupted is raised.
        data_on: where the data lies meanwhile, with the same result; by default the device if it has room.
        tracking: told of the run that is kept in the directory.
    """
    directories = None if directory is None else [directory]
    trackings = None if tracking is None else [tracking]
    with contextlib.nullcontext() if directory is None else held(directory):
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
    """Train methods of one form (`hyperparameters.form`) in one program, each as `train` does alone.

    Unlike there, it is the caller who keeps other processes out of the directories.

    Args:
        progress: told the number of steps done, on average where some go on before others.
        before_writing: called whenever files are about to be written; may raise, and then they are not.
    """
    for method in methods:
        check_training(Design.fit(method, data, settings.context), settings, len(seeds))
    before_writing()
    places: Sequence[Path | None] = directories or [None] * len(methods)
    watched = trackings or [Tracking() for _ in methods]
    runs = [
        _begun(data, method, settings, seeds, place, notes or {}, tracking)
        for method, place, tracking in zip(methods, places, watched, strict=True)
    ]
    on_device = (data_on or default_place(data.nbytes)) == "device"
    behind = [run for run in runs if run.step < settings.steps]
    for lot in _side_by_side(behind, data) if on_device else [[run] for run in behind]:
        methods = [run.method for run in lot]
        source = to_device(data, *methods) if on_device else in_host_memory(data, *methods)

        def tell(step: int, lot: list[_Run] = lot) -> None:
            for run in lot:
                run.step = step
            if progress is not None:
                progress(sum(run.step for run in runs) // len(runs))

        _Loop(lot, settings, source, tell, should_stop, before_writing).run()
    return [_trained(run) for run in runs]


@dataclasses.dataclass
class _Run:
    """One method while it is trained."""

    method: Method  # fitted to the data, with the warm-up that it began with
    policies: Policies  # as they were
    keeper: Keeper | None
    tracking: Tracking
    state: State
    step: int
    seconds: float
    metrics: list[dict[str, Any]]  # of all its sittings
    statistics: dict[str, Any]  # of the observations, by the names of their tensors


def _trained(run: _Run) -> Policies:
    warnings = training_warnings(run.metrics, run.policies.seeds, to_json(run.method))
    return dataclasses.replace(run.policies, parameters=run.state.parameters, warnings=tuple(warnings))


def _begun(
    data: Trajectories,
    method: Method,
    settings: Training,
    seeds: tuple[int, ...],
    directory: Path | None,
    notes: dict[str, Any],
    tracking: Tracking,
) -> _Run:
    design = Design.fit(method, data, settings.context)
    about = _about(data)
    keeper, metrics = None, []
    state, step, seconds, first_steps = initialize(design, settings, seeds), 0, 0.0, settings.steps
    if directory is not None:
        config = configuration(data, design, settings, seeds, notes)
        description = {
            "design": design.to_json(),
            "seeds": list(seeds),
            "steps": settings.steps,
            "about": about,
        }
        keeper = Keeper(directory, config, description)
        state, step, seconds = keeper.resume(state, _statistics(data))
        design = dataclasses.replace(design, actions=keeper.actions or design.actions)
        first_steps, metrics = keeper.first_steps, read_metrics(directory)
        track(directory, tracking)
    policies = Policies(design, state.parameters, seeds, *data.observation_statistics, about)
    begun = _as_begun(design.method, first_steps)
    return _Run(begun, policies, keeper, tracking, state, step, seconds, metrics, _statistics(data))


def _statistics(data: Trajectories) -> dict[str, Any]:
    return dict(zip(("observation_mean", "observation_deviation"), data.observation_statistics, strict=True))


def _as_begun(method: Method, first_steps: int) -> Method:
    """The method with its warm-up limited to a tenth of the steps that its training was begun with."""
    # Trained on, it would otherwise go back to a lower learning rate, or change it after the fact.
    warmup = min(method.optimizer.warmup_steps, first_steps // 10)
    return dataclasses.replace(method, optimizer=dataclasses.replace(method.optimizer, warmup_steps=warmup))


def _side_by_side(runs: list[_Run], data: Trajectories) -> list[list[_Run]]:
    """Runs that can share a program: at the same step, with one condition and as many kinds of windows."""
    lots: dict[tuple[int, float, Condition | None], list[_Run]] = {}
    for run in runs:
        share = raised_share(data, run.policies.design.method)
        # On a CPU only with the same share: then each result is bit for bit that of a run alone.
        kind = (run.step, share if on_cpu() else 0 < share < 1, run.policies.design.method.condition)
        lots.setdefault(kind, []).append(run)
    return [lots[kind] for kind in sorted(lots, key=lambda kind: kind[:2])]


def _about(data: Trajectories) -> dict[str, Any]:
    return {
        "dataset": data.name,
        "content_hash": data.content_hash,
        "environment": data.environment,
        "lowest_return": data.lowest,
        "best_return": data.best,
        "cwbc": importlib.metadata.version("cwbc"),
    }


@dataclasses.dataclass(frozen=True)
class _Loop:
    """Chunks of training, with what lives between them."""

    runs: list[_Run]  # all at the same step
    settings: Training
    data: Source
    progress: Callable[[int], None]
    should_stop: Callable[[], bool]
    before_writing: Callable[[], None]

    def run(self) -> None:
        policies, step, total = self.runs[0].policies, self.runs[0].step, self.settings.steps
        state = jax.tree.map(lambda *x: jnp.concatenate(x), *(run.state for run in self.runs))
        length = chunk_length(policies.design, self.settings, self.runs[0].state)
        begun = saved = time.monotonic()
        pending = None
        while step < total:
            count = min(length, total - step)
            state, losses = run_chunk(
                policies.design, self.settings, state, self.data, policies.seeds, step, count
            )
            if pending is not None:  # looked at while the device works on the next chunk
                self._settle(*pending, begun)
            pending, step = (step, losses), step + count
            stopping = self.should_stop()
            if stopping or step == total or time.monotonic() - saved >= SAVE_INTERVAL:
                self._settle(*pending, begun)
                pending = None
                self._save(state, step)
                saved = time.monotonic()
            if stopping and step < total:
                raise Interrupted

    def _rows(self) -> list[tuple[_Run, slice]]:
        """Each run with its rows in what all of them share."""
        seeds = len(self.runs[0].policies.seeds)
        return [(run, slice(i * seeds, (i + 1) * seeds)) for i, run in enumerate(self.runs)]

    def _settle(self, first_step: int, losses: Losses, begun: float) -> None:
        values = {name: np.asarray(value) for name, value in losses.items()}
        seconds = (time.monotonic() - begun) / len(self.runs)  # each has its share of them
        step = first_step + len(values["loss"])
        self.before_writing()
        for run, rows in self._rows():
            _check_finite(values["loss"][:, rows], run.policies, first_step)
            means = {name: value[:, rows].mean(axis=0).tolist() for name, value in values.items()}
            row = {"step": step, "seconds": round(run.seconds + seconds, 3), **means}
            run.metrics.append(row)
            if run.keeper is not None:
                run.keeper.record(row)
                run.tracking.record(row)
        self.progress(step)

    def _save(self, state: State, step: int) -> None:
        finite = jax.tree.map(lambda x: np.isfinite(x).all(axis=tuple(range(1, x.ndim))), state)
        healthy = np.all(jax.tree.leaves(finite), axis=0)
        for run, rows in self._rows():
            run.state = jax.tree.map(lambda x, rows=rows: x[rows], state)
            bad = np.flatnonzero(~healthy[rows])
            if bad.size:  # the last update: a step's loss is that of the parameters before it
                seed = run.policies.seeds[bad[0]]
                raise DivergenceError(f"the parameters of seed {seed} are not finite after step {step - 1}")
            if run.keeper is not None:
                run.keeper.save(run.state, step, run.statistics, self.before_writing)


def _check_finite(losses: NDArray[np.float32], policies: Policies, first_step: int) -> None:
    """Stop on the first loss that is not a number. [step, seed]"""
    bad = np.argwhere(~np.isfinite(losses))
    if len(bad):
        step, row = bad[0]
        name, seed = policies.design.method.name, policies.seeds[row]
        raise DivergenceError(
            f"the loss of {name} became {losses[step, row]} for seed {seed} at step {first_step + step}; "
            "a lower learning rate or data without extreme values usually helps"
        )
