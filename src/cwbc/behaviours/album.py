"""What is kept of a training: snapshots, each measured while the training goes on, and one checkpoint."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc import checkpoints
from cwbc.behaviours import series
from cwbc.behaviours.behaviour import Behaviour
from cwbc.behaviours.rollouts import measure
from cwbc.behaviours.sac import Settings, State
from cwbc.behaviours.series import EVALUATION_SEED, SNAPSHOT_FILES, Measured, Series, Snapshot
from cwbc.errors import DivergenceError, InputError

CHECKPOINT = "learner.safetensors"
_HISTORY = "replay.npy"  # all transitions that the replay holds, until the training is over
Bounds = tuple[NDArray[np.float32], NDArray[np.float32]]  # lowest and highest action, [action] each
Report = Callable[[int, Snapshot], None]  # told the seed and its newest snapshot

_VERSIONED = ("cwbc", "jax", "mujoco", "gymnasium", "numpy")


class Album:
    """The files of a training: the series `seed-0` and so on, and the checkpoint."""

    def __init__(
        self,
        directory: Path,
        environment: str,
        settings: Settings,
        seeds: tuple[int, ...],
        episodes: int,
        command: str,
        threads: int = 0,
        report: Report | None = None,
    ) -> None:
        self._directory, self._threads, self._report = directory, threads, report
        self._identity: dict[str, Any] = {
            "environment": environment,
            "seeds": list(seeds),
            "episodes": episodes,
            "settings": dataclasses.asdict(settings),
        }
        self._series = [
            Series(
                folder=directory / f"seed-{seed}",
                environment=environment,
                seed=seed,
                episodes=episodes,
                settings=dataclasses.asdict(settings),
                command=command,
                device=jax.devices()[0].device_kind,
                versions=versions(),
                snapshots=(),
            )
            for seed in seeds
        ]
        # One worker: snapshots are measured in their order, beside the training.
        self._worker = ThreadPoolExecutor(1)
        self._pending: list[Future[None]] = []

    def resume(self, fresh: State, steps: int, overwrite: bool) -> tuple[State, int]:
        """The state to go on from and its step: the checkpoint's, or a fresh one at the beginning."""
        path, state, step = self._directory / CHECKPOINT, fresh, 0
        if (why_not := self._obstacle(steps)) and not overwrite:
            raise InputError(f"{why_not}; give another --out, or --overwrite")
        if path.exists() and not why_not:
            tensors, description = checkpoints.read(path)
            state, step = checkpoints.unflatten("state", fresh, tensors), int(description["step"])
        for row, own in enumerate(self._series):
            own.folder.mkdir(parents=True, exist_ok=True)
            # What came after the checkpoint is gone through again, and not in the same way.
            before = () if step == 0 else series.read(own.folder).snapshots
            kept = tuple(snapshot for snapshot in before if snapshot.steps <= step)
            for file in {*own.folder.glob(SNAPSHOT_FILES)} - {own.folder / one.file for one in kept}:
                file.unlink()
            self._series[row] = dataclasses.replace(own, snapshots=kept)
        if step == 0:
            self.checkpoint(state, step)
        return state, step

    def _obstacle(self, steps: int) -> str | None:
        """Why what is in the directory cannot be gone on with."""
        path = self._directory / CHECKPOINT
        if not path.exists():
            taken = [own.folder for own in self._series if (own.folder / series.MANIFEST).exists()]
            return f"{taken[0]} holds behaviours already" if taken else None
        description = checkpoints.read_description(path)
        then = {**description, **description.get("settings", {})}
        now = {**self._identity, **self._identity["settings"]}
        for name in (set(now) & set(then)) - {"settings"}:
            if then[name] != now[name]:
                return f"{path} was made with {name} {json.dumps(then[name])}, not {json.dumps(now[name])}"
        step = int(description["step"])
        if step < steps and step and not (self._directory / _HISTORY).exists():
            return f"{path} is trained to its end, {step:,} steps; it cannot go on without its replay"
        return None

    def history(self, shape: tuple[int, int, int], step: int) -> np.memmap[Any, np.dtype[np.float32]]:
        """What the replays hold, [seed, row, column], on disk: a training that is cut off loses nothing."""
        path, mode = self._directory / _HISTORY, "r+" if step else "w+"
        return np.lib.format.open_memmap(path, mode, np.float32, shape)

    def discard_history(self) -> None:
        """Free the disk when the training is over."""
        (self._directory / _HISTORY).unlink()

    def checkpoint(self, state: State, step: int) -> None:
        """Replace the checkpoint, once all snapshots before it are written."""
        self._settle()
        _check_finite(state.parameters, step)
        tensors = checkpoints.flatten("state", state)
        checkpoints.write(self._directory / CHECKPOINT, tensors, {"step": step, **self._identity})

    def add(self, state: State, step: int, bounds: Bounds) -> None:
        """Take a snapshot of every seed; it is measured and written by and by."""
        actors = jax.device_get(state.parameters["actor"])
        _check_finite(actors, step)
        behaviours = [
            Behaviour.of(jax.tree.map(lambda x, row=row: x[row], actors), *bounds)
            for row in range(len(self._series))
        ]
        self._pending = [future for future in self._pending if not future.done() or future.result()]
        self._pending.append(self._worker.submit(self._measure, step, behaviours))

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

    def _measure(self, step: int, behaviours: list[Behaviour]) -> None:
        first = self._series[0]
        ways = [
            measure(first.environment, behaviours, first.episodes, EVALUATION_SEED, sampled, self._threads)
            for sampled in (False, True)
        ]
        for row, (behaviour, *returns) in enumerate(zip(behaviours, *ways, strict=True)):
            own, snapshot = self._series[row], Snapshot(step, *map(Measured.of, returns))
            behaviour.save(own.folder / snapshot.file)
            self._series[row] = dataclasses.replace(own, snapshots=(*own.snapshots, snapshot))
            self._series[row].write()
            if self._report is not None:
                self._report(own.seed, snapshot)


def steps_done(directory: Path) -> int:
    """The step of the checkpoint in a directory; 0 where there is none."""
    path = directory / CHECKPOINT
    return int(checkpoints.read_description(path)["step"]) if path.exists() else 0


def versions() -> dict[str, str]:
    """What a measured return depends on."""
    return {name: importlib.metadata.version(name) for name in _VERSIONED}


def _check_finite(parameters: Any, step: int) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(parameters))):
        raise DivergenceError(f"the parameters are not finite after step {step}; a lower rate usually helps")
