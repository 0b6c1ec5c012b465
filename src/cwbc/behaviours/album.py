"""What is kept of a training: snapshots, each measured while the training goes on, and one checkpoint."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import json
import os
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
        threads: int,
        report: Report,
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

    def first_step(self, steps: int, overwrite: bool) -> int:
        """The step that this training goes on from: 0 where it begins, or begins anew."""
        if why_not := self._obstacle(steps):
            if overwrite:
                return 0
            raise InputError(f"{why_not}; give another --out, or --overwrite")
        return int(begun(self._directory).get("step", 0))

    def resume(self, fresh: State, step: int) -> State:
        """The state of the checkpoint, or a fresh one at the beginning; what came later is removed."""
        state = fresh
        if step:
            tensors, _ = checkpoints.read(self._directory / CHECKPOINT)
            state = checkpoints.unflatten(self._directory / CHECKPOINT, "state", fresh, tensors)
        else:
            # First of all: from here on the directory is this training's, whatever else is still in it.
            self.checkpoint(state, step)
            for manifest in self._directory.glob(f"seed-*/{series.MANIFEST}"):
                manifest.unlink()
        kept = {file for row in range(len(self._series)) for file in self._trim(row, step)}
        for file in {*self._directory.glob(f"seed-*/{SNAPSHOT_FILES}")} - kept:
            file.unlink()
        return state

    def _trim(self, row: int, step: int) -> list[Path]:
        """Forget what came after the checkpoint, which is gone through again; the files of what is left."""
        own = self._series[row]
        own.folder.mkdir(parents=True, exist_ok=True)
        if step:
            known = series.read(own.folder).snapshots
            own = dataclasses.replace(own, snapshots=tuple(one for one in known if one.steps <= step))
            own.write()  # before any file goes, so that no manifest names one that is not there
            self._series[row] = own
        return [own.folder / snapshot.file for snapshot in own.snapshots]

    def _obstacle(self, steps: int) -> str | None:
        """Why what is in the directory cannot be gone on with."""
        path = self._directory / CHECKPOINT
        if not path.exists():
            others = sorted(file.name for file in self._directory.iterdir() if not file.name.startswith("."))
            return f"{self._directory} holds other files, such as {others[0]}" if others else None
        try:
            description = checkpoints.read_description(path)
        except InputError as error:
            return str(error)
        then = {**description, **description.get("settings", {})}
        for name, value in (self._identity | self._identity["settings"]).items():
            if name != "settings" and then.get(name) != value:
                return f"{path} was made with {name} {json.dumps(then.get(name))}, not {json.dumps(value)}"
        step = int(description["step"])
        if 0 < step < steps and not (self._directory / _HISTORY).exists():
            return f"{path} is trained to its end, {step:,} steps; it cannot go on without its replay"
        return None

    def history(self, shape: tuple[int, int, int], step: int) -> np.memmap[Any, np.dtype[np.float32]]:
        """What the replays hold, [seed, row, column], on disk: a training that is cut off loses nothing."""
        path = self._directory / _HISTORY
        if step:
            return _kept_history(path, shape)
        path.unlink(missing_ok=True)  # rather than overwritten: a link there would lead elsewhere
        history = np.lib.format.open_memmap(path, "w+", np.float32, shape)
        if hasattr(os, "posix_fallocate"):  # a full disk is told now, rather than by a crash later
            with path.open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, path.stat().st_size)
        return history

    def discard_history(self) -> None:
        """Free the disk when the training is over."""
        (self._directory / _HISTORY).unlink(missing_ok=True)

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
            self._report(own.seed, snapshot)


def _kept_history(path: Path, shape: tuple[int, int, int]) -> np.memmap[Any, np.dtype[np.float32]]:
    """What the replays of an earlier sitting hold."""
    if not path.is_file() or path.is_symlink():
        raise InputError(f"{path} is no plain file; --overwrite starts over")
    try:
        history = np.lib.format.open_memmap(path, "r+")
        found = (history.dtype, history.shape[0], *history.shape[2:])
    except (ValueError, OSError, SyntaxError) as error:
        raise InputError(f"{path} is damaged: {error}; --overwrite starts over") from error
    if found != (np.float32, shape[0], shape[2]):  # its rows are as many as that training could fill
        raise InputError(f"{path} is the replay of another training; --overwrite starts over")
    return history


def begun(directory: Path) -> dict[str, Any]:
    """What the checkpoint in a directory says of itself; nothing where there is none that can be read."""
    try:
        return checkpoints.read_description(directory / CHECKPOINT)
    except InputError:
        return {}


def versions() -> dict[str, str]:
    """What a measured return depends on."""
    return {name: importlib.metadata.version(name) for name in _VERSIONED}


def _check_finite(parameters: Any, step: int) -> None:
    if not all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(jax.device_get(parameters))):
        raise DivergenceError(f"the parameters are not finite after step {step}; a lower rate usually helps")
