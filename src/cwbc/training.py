"""One training loop for every method, and what lives between its chunks: progress, metrics, checkpoints."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc.design import Design
from cwbc.device import Place, default_place
from cwbc.errors import DivergenceError
from cwbc.methods import Method, Training
from cwbc.policy import Policies
from cwbc.runs import Keeper, configuration, track
from cwbc.sampling import Source, in_host_memory, to_device
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
    design = Design.fit(method, data, settings.context)
    description: dict[str, Any] = {
        "design": design.to_json(),
        "seeds": list(seeds),
        "steps": settings.steps,
        "about": _about(data),
    }
    keeper, tracking = None, tracking or Tracking()
    state, step, seconds = initialize(design, settings, seeds), 0, 0.0
    if directory is not None:
        config = configuration(data, design, settings, seeds, notes or {})
        keeper = Keeper(directory, config, description)
        state, step, seconds = keeper.resume(state)
        track(directory, tracking)
    policies = Policies(design, state.parameters, seeds, *data.observation_statistics, description["about"])
    if step == settings.steps:
        return policies
    prepared = to_device if (data_on or default_place(data.nbytes)) == "device" else in_host_memory
    loop = _Loop(policies, settings, prepared(data, design.method), keeper, tracking, progress, should_stop)
    return dataclasses.replace(policies, parameters=loop.run(state, step, seconds).parameters)


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

    policies: Policies  # what is being trained, as it was
    settings: Training
    data: Source
    keeper: Keeper | None
    tracking: Tracking
    progress: Callable[[int], None] | None
    should_stop: Callable[[], bool]

    def run(self, state: State, step: int, seconds_before: float) -> State:
        design, seeds, total = self.policies.design, self.policies.seeds, self.settings.steps
        length = chunk_length(design, self.settings, state)
        saved = time.monotonic()
        since = saved - seconds_before
        pending = None
        while step < total:
            count = min(length, total - step)
            state, losses = run_chunk(design, self.settings, state, self.data, seeds, step, count)
            if pending is not None:  # looked at while the device works on the next chunk
                self._settle(*pending, since)
            pending, step = (step, losses), step + count
            stopping = self.should_stop()
            if stopping or step == total or time.monotonic() - saved >= SAVE_INTERVAL:
                self._settle(*pending, since)
                pending = None
                self._save(state, step)
                saved = time.monotonic()
            if stopping and step < total:
                raise Interrupted
        return state

    def _settle(self, first_step: int, losses: Losses, since: float) -> None:
        values = {name: np.asarray(value) for name, value in losses.items()}
        seconds = time.monotonic() - since
        _check_finite(values, self.policies.seeds, first_step)
        step = first_step + len(values["loss"])
        if self.keeper is not None:
            means = {name: value.mean(axis=0).tolist() for name, value in values.items()}
            row = {"step": step, "seconds": round(seconds, 3), **means}
            self.keeper.record(row)
            self.tracking.record(row)
        if self.progress is not None:
            self.progress(step)

    def _save(self, state: State, step: int) -> None:
        finite = jax.tree.map(lambda x: np.isfinite(x).all(axis=tuple(range(1, x.ndim))), state.parameters)
        bad = np.flatnonzero(~np.all(jax.tree.leaves(finite), axis=0))
        if bad.size:  # a step's loss is that of the parameters before it, so the last update shows only here
            seed = self.policies.seeds[bad[0]]
            raise DivergenceError(f"the parameters of seed {seed} are not finite after step {step - 1}")
        if self.keeper is not None:
            statistics = {
                "observation_mean": self.policies.observation_mean,
                "observation_deviation": self.policies.observation_deviation,
            }
            self.keeper.save(state, step, statistics)


def _check_finite(losses: dict[str, NDArray[np.float32]], seeds: tuple[int, ...], first_step: int) -> None:
    """Stop on the first loss that is not a number."""
    bad = np.argwhere(~np.isfinite(losses["loss"]))
    if len(bad):
        step, row = bad[0]
        raise DivergenceError(
            f"the loss became {losses['loss'][step, row]} for seed {seeds[row]} at step {first_step + step}; "
            "a lower --learning-rate or data without extreme values usually helps"
        )
