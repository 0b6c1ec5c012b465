"""One training loop for every method, and what lives between its chunks: progress, metrics, checkpoints."""

from __future__ import annotations

import importlib.metadata
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.design import Design
from cwbc.methods import Method, Training
from cwbc.policy import Policies
from cwbc.runs import Keeper, configuration
from cwbc.sampling import DeviceData, to_device
from cwbc.trajectories import Trajectories
from cwbc.updates import Losses, State, chunk_length, initialize, run_chunk

SAVE_INTERVAL = 60.0  # seconds between checkpoints


class DivergenceError(RuntimeError):
    """The loss stopped being a number."""


class Interrupted(Exception):
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
) -> Policies:
    """Train a method for all seeds; with a directory, go on from where an earlier call was cut off.

    Args:
        progress: told the number of steps done.
        should_stop: asked between chunks; once it says yes, the state is saved and Interrupted is raised.
    """
    design = Design.fit(method, data, settings.context)
    header = _header(design, settings, seeds, data)
    keeper = None
    if directory is not None:
        keeper = Keeper(directory, configuration(data, design, settings, seeds, notes or {}))
    state, step = initialize(design, settings, seeds), 0
    if keeper is not None and (found := keeper.resume(state)) is not None:
        state, step = found
    if step < settings.steps:
        loop = _Loop(design, settings, seeds, keeper, header, progress)
        state = loop.run(state, step, to_device(data, design.method), should_stop)
    return Policies(design, state.parameters, seeds, *data.observation_statistics, header["about"])


def _header(design: Design, settings: Training, seeds: tuple[int, ...], data: Trajectories) -> dict[str, Any]:
    mean, deviation = data.observation_statistics
    return {
        "design": design.to_json(),
        "seeds": list(seeds),
        "steps": settings.steps,
        "about": {
            "dataset": data.name,
            "content_hash": data.content_hash,
            "environment": data.environment,
            "lowest_return": data.lowest,
            "best_return": data.best,
            "cwbc": importlib.metadata.version("cwbc"),
        },
        "statistics": {"observation_mean": mean, "observation_deviation": deviation},
    }


class _Loop:
    """Chunks of training, with what lives between them."""

    def __init__(
        self,
        design: Design,
        settings: Training,
        seeds: tuple[int, ...],
        keeper: Keeper | None,
        header: dict[str, Any],
        progress: Callable[[int], None] | None,
    ) -> None:
        self._design, self._settings, self._seeds = design, settings, seeds
        self._keeper, self._header, self._progress = keeper, header, progress
        self._began = self._saved = time.monotonic()

    def run(self, state: State, step: int, data: DeviceData, should_stop: Callable[[], bool]) -> State:
        total = self._settings.steps
        length = chunk_length(self._design, self._settings, state)
        pending = None
        while step < total:
            count = min(length, total - step)
            state, losses = run_chunk(self._design, self._settings, state, data, self._seeds, step, count)
            if pending is not None:  # looked at while the device works on the next chunk
                self._settle(*pending)
            pending, step = (step, losses), step + count
            stopping = should_stop()
            if stopping or step == total or time.monotonic() - self._saved >= SAVE_INTERVAL:
                self._settle(*pending)
                pending = None
                if self._keeper is not None:
                    self._keeper.save(self._header, state, step)
                self._saved = time.monotonic()
            if stopping and step < total:
                raise Interrupted
        return state

    def _settle(self, first_step: int, losses: Losses) -> None:
        values = {name: np.asarray(value) for name, value in losses.items()}
        _check_finite(values, self._seeds, first_step)
        step = first_step + len(values["loss"])
        if self._keeper is not None:
            means = {name: value.mean(axis=0).tolist() for name, value in values.items()}
            seconds = round(time.monotonic() - self._began, 3)
            self._keeper.record({"step": step, "seconds": seconds, **means})
        if self._progress is not None:
            self._progress(step)


def _check_finite(losses: dict[str, NDArray[np.float32]], seeds: tuple[int, ...], first_step: int) -> None:
    """Stop on the first loss that is not a number."""
    bad = np.argwhere(~np.isfinite(losses["loss"]))
    if len(bad):
        step, row = bad[0]
        raise DivergenceError(
            f"the loss became {losses['loss'][step, row]} for seed {seeds[row]} at step {first_step + step}; "
            "a lower --learning-rate or data without extreme values usually helps"
        )
