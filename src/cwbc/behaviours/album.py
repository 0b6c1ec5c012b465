"""What is kept of a training: snapshots, each measured while the training goes on, and one checkpoint."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc import checkpoints
from cwbc.behaviours.behaviour import Behaviour
from cwbc.behaviours.rollouts import measure
from cwbc.behaviours.sac import Metrics, Settings, State
from cwbc.errors import DivergenceError, InputError

CHECKPOINT = "learner.safetensors"
_EVALUATION_SEED = 1_000_003  # the same first states for every snapshot
Bounds = tuple[NDArray[np.float32], NDArray[np.float32]]  # lowest and highest action, [action] each

_VERSIONED = ("cwbc", "jax", "mujoco", "gymnasium", "numpy")


class Album:
    """The files of a training: `seed-0/000012000.safetensors` and so on, and the checkpoint."""

    def __init__(
        self,
        directory: Path,
        environment: str,
        settings: Settings,
        seeds: tuple[int, ...],
        episodes: int,
        threads: int,
        report: Callable[[Behaviour], None] | None,
    ) -> None:
        self._directory, self._environment, self._seeds = directory, environment, seeds
        self._episodes, self._threads, self._report = episodes, threads, report
        self._identity = {
            "environment": environment,
            "seeds": list(seeds),
            "settings": dataclasses.asdict(settings),
        }
        # One worker: snapshots are measured in their order, beside the training.
        self._worker = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []
        for seed in seeds:
            (directory / f"seed-{seed}").mkdir(parents=True, exist_ok=True)

    def resume(self, like: State) -> tuple[State, int]:
        """The state to go on from and its step: the checkpoint's, or the beginning."""
        path = self._directory / CHECKPOINT
        if not path.exists():
            return like, 0
        tensors, description = checkpoints.read(path)
        different = [name for name, value in self._identity.items() if description.get(name) != value]
        if different:
            raise InputError(f"{path} was made with other {' and '.join(different)}; give another directory")
        return checkpoints.unflatten("state", like, tensors), int(description["step"])

    def checkpoint(self, state: State, step: int) -> None:
        """Replace the checkpoint, once all snapshots before it are written."""
        self._settle()
        _check_finite(state.parameters, step)
        tensors = checkpoints.flatten("state", state)
        checkpoints.write(self._directory / CHECKPOINT, tensors, {"step": step, **self._identity})

    def add(self, state: State, step: int, bounds: Bounds, metrics: Metrics | None = None) -> None:
        """Take a snapshot of every seed; it is measured and written by and by."""
        actors = jax.device_get(state.parameters["actor"])
        _check_finite(actors, step)
        about = {"environment": self._environment, "steps": step, "versions": versions()}
        behaviours = []
        for row, seed in enumerate(self._seeds):
            own = jax.tree.map(lambda x, row=row: x[row], actors)
            values = {name: float(value[row]) for name, value in (metrics or {}).items()}
            behaviours.append(Behaviour(own, *bounds, about | {"seed": seed, "metrics": values}).rounded())
        self._pending = [future for future in self._pending if not future.done() or future.result()]
        self._pending.append(self._worker.submit(self._measure, behaviours))

    def close(self) -> None:
        """Wait for the snapshots that are being measured."""
        try:
            self._settle()
        finally:
            self._worker.shutdown()

    def _settle(self) -> None:
        for future in self._pending:
            future.result()
        self._pending = []

    def _measure(self, behaviours: list[Behaviour]) -> None:
        returns = measure(
            self._environment, behaviours, self._episodes, _EVALUATION_SEED, threads=self._threads
        )
        for behaviour, own in zip(behaviours, returns, strict=True):
            numbers = {
                "return": float(own.mean()),
                "deviation": float(own.std()),
                "lowest": float(own.min()),
                "episodes": len(own),
            }
            measured = dataclasses.replace(behaviour, about=behaviour.about | numbers)
            folder = self._directory / f"seed-{behaviour.about['seed']}"
            measured.save(folder / f"{behaviour.about['steps']:09d}.safetensors")
            if self._report is not None:
                self._report(measured)


def versions() -> dict[str, str]:
    """What a measured return depends on."""
    return {name: importlib.metadata.version(name) for name in _VERSIONED}


def _check_finite(parameters: Any, step: int) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(parameters))):
        raise DivergenceError(f"the parameters are not finite after step {step}; a lower rate usually helps")
