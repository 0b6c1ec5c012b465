"""The files of a run while it is trained: where it resumes from, and what it leaves for the next command."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbc import checkpoints
from cwbc.checkpoints import CHECKPOINT
from cwbc.errors import InputError
from cwbc.files import open_to_append, write_atomically
from cwbc.runs import (
    CONFIG,
    METRICS,
    REPORT,
    RESULTS,
    SUMMARY,
    RunProgress,
    check_resumable,
    check_same,
    differences,
    discard_other,
    earlier_evaluation,
    first_steps,
    read_config,
    read_metrics,
    sittings,
    trains_on,
)

if TYPE_CHECKING:
    from cwbc.spaces import ActionSpace
    from cwbc.updates import State


class Keeper:
    """The files of a run while it is trained."""

    def __init__(self, directory: Path, config: dict[str, Any], description: dict[str, Any]) -> None:
        check_same(directory, config)
        self._directory = directory
        self._checkpoint = directory / CHECKPOINT
        self._metrics = directory / METRICS
        self._config, self._description = config, {**description}
        self.actions: ActionSpace | None = None  # those that the run began with
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def first_steps(self) -> int:
        """The steps that the run was begun with; later commands may have asked for more."""
        return first_steps(read_config(self._directory))

    def resume(self, like: State, statistics: dict[str, Any]) -> tuple[State, int, float]:
        """The state to resume from, its step and the seconds it took: the checkpoint's, or the first.

        Args:
            statistics: of the observations, by the names of their tensors.
        """
        import jax

        if not self._checkpoint.exists():
            self._start()
            return like, 0, 0.0
        progress, steps = RunProgress.read(self._checkpoint), self._description["steps"]
        is_over = progress.step == steps
        tensors, description = checkpoints.read(
            self._checkpoint, lambda name: not (is_over and name.startswith("optimizer/"))
        )
        self._check_alike(progress, description)
        parameters = checkpoints.unflatten(self._checkpoint, "parameters", like.parameters, tensors)
        optimizer = like.optimizer
        if not is_over:
            check_resumable(self._directory, progress)
            self._check_statistics(tensors, statistics)
            optimizer = checkpoints.unflatten(self._checkpoint, "optimizer", like.optimizer, tensors)
        if not is_over or trains_on(self._directory, steps):
            self._continue(progress.step)
        rows = [row for row in read_metrics(self._directory) if row["step"] <= progress.step]
        write_atomically(self._metrics, "".join(f"{json.dumps(row)}\n" for row in rows))
        state = dataclasses.replace(like, parameters=parameters, optimizer=optimizer)
        state = jax.tree.map(jax.numpy.asarray, state)
        return state, progress.step, rows[-1]["seconds"] if rows else 0.0

    def _start(self) -> None:
        if any((self._directory / name).exists() for name in (SUMMARY, RESULTS)):
            raise InputError(
                f"{self._directory} holds results without the parameters that they were measured with, "
                "so nothing can go on there; remove it to train anew"
            )
        discard_other(self._directory, self._config)
        self._metrics.unlink(missing_ok=True)
        write_atomically(self._directory / CONFIG, json.dumps(self._config, indent=2) + "\n")

    def _continue(self, step: int) -> None:
        """Note this sitting in the configuration; an evaluation of fewer steps is not that of the run now."""
        kept = read_config(self._directory)
        now = _with_sitting(kept, self._config)
        if kept["training"]["steps"] < self._description["steps"]:
            _set_evaluation_aside(self._directory, step)
            now |= {name: self._config[name] for name in ("training", "notes")}
            now["first_steps"] = first_steps(kept)
        if now != kept:
            write_atomically(self._directory / CONFIG, json.dumps(now, indent=2) + "\n")

    def _check_alike(self, progress: RunProgress, description: dict[str, Any]) -> None:
        """Refuse the checkpoint of another run."""
        from cwbc.design import Design

        place = f"{self._checkpoint}, design"
        was, now = Design.from_json(description.get("design"), place), self._description["design"]
        # Of logs that leave out the highest actions, only an environment tells how many there are.
        counts = (description["design"]["actions"].get("count"), now["actions"].get("count"))
        if counts[0] != counts[1]:
            raise InputError(
                f"{self._directory} was trained for {counts[0]} actions, now there are {counts[1]}; "
                "give another directory (--out), or remove this one to begin anew"
            )
        if counts[0] is None and was.actions.size == len(now["actions"]["lowest"]):
            # Bounds are those that it began with: whether the environment's are known may change.
            now = self._description["design"] = {**now, "actions": was.to_json()["actions"]}
            self.actions = was.actions
        different = differences(_nameless(was.to_json()), _nameless(now))
        if list(progress.seeds) != self._description["seeds"]:
            different["seeds"] = (list(progress.seeds), self._description["seeds"])
        if different:
            told = "; ".join(f"{name} was {old!r}, now {new!r}" for name, (old, new) in different.items())
            raise InputError(f"{self._checkpoint} is of another run than {CONFIG} beside it: {told}")

    def _check_statistics(self, tensors: dict[str, Any], statistics: dict[str, Any]) -> None:
        for name, now in statistics.items():
            if name not in tensors or not np.allclose(tensors[name], now, rtol=1e-3, atol=1e-6):
                raise InputError(
                    f"{self._checkpoint} was begun by a version that normalizes observations otherwise "
                    f"({name}); remove {self._directory} to start over"
                )

    def save(
        self, state: State, step: int, statistics: dict[str, Any], before_replacing: Callable[[], None]
    ) -> None:
        """Replace the checkpoint, unless `before_replacing` raises."""
        tensors = checkpoints.flatten("parameters", state.parameters) | statistics
        tensors |= checkpoints.flatten("optimizer", state.optimizer)  # of a finished run, too: to train on
        checkpoints.write(self._checkpoint, tensors, {**self._description, "step": step}, before_replacing)

    def record(self, row: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        with open_to_append(self._metrics) as file:
            file.write(f"{json.dumps(row)}\n".encode())


def _nameless(design: dict[str, Any]) -> dict[str, Any]:
    """A design without what its method is called, in which lists and tuples are the same."""
    method = {name: value for name, value in design["method"].items() if name != "name"}
    plain: dict[str, Any] = json.loads(json.dumps({**design, "method": method}))
    return plain


def _set_evaluation_aside(directory: Path, step: int) -> None:
    """Move what was evaluated after fewer steps into a folder of its own."""
    found = [name for name in (SUMMARY, RESULTS, *REPORT) if (directory / name).exists()]
    if not found:
        return
    folder = earlier_evaluation(directory, step)
    if folder.is_symlink():
        raise InputError(f"{folder} is a symbolic link, and nothing is moved through it; remove it")
    folder.mkdir(exist_ok=True)
    for name in found:  # the summary first: without it, the rest is no evaluation
        os.replace(directory / name, folder / name)


def _with_sitting(kept: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The configuration with this sitting's versions and hardware added, if they are new to it."""
    known, (sitting,) = sittings(kept), sittings(now)
    return {**kept} if sitting in known else {**kept, "later_sittings": [*known[1:], sitting]}
