"""The files of a run during its training: configuration, metrics and the checkpoint to resume from."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbc.runs.run_directory import (
    CONFIG,
    METRICS,
    REPORT,
    RESULTS,
    SUMMARY,
    RunProgress,
    check_resumable,
    check_same,
    check_trainable,
    differences,
    discard_other,
    earlier_evaluation,
    first_steps,
    read_config,
    read_metrics,
    sessions,
    trains_on,
)
from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.files import open_to_append, write_atomically
from cwbc.system.tensor_files import CHECKPOINT

if TYPE_CHECKING:
    from cwbc.core.spaces import ActionSpace


class Checkpointer:
    """Writes the files of a run during its training, and resumes from them."""

    def __init__(self, directory: Path, config: dict[str, Any], description: dict[str, Any]) -> None:
        check_same(directory, config)
        self._directory = directory
        self._checkpoint = directory / CHECKPOINT
        self._metrics = directory / METRICS
        self._config, self._description = config, {**description}
        self.actions: ActionSpace | None = None  # those of the run's first training
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def first_steps(self) -> int:
        """The steps of the run's first training; later commands may have extended it."""
        return first_steps(read_config(self._directory))

    def resume(self, like: Any, statistics: dict[str, Any]) -> tuple[Any, int, float]:
        """The state to resume from, its step and its training time: the checkpoint's, or the initial ones.

        Args:
            statistics: of the observations, by the names of their tensors.
        """
        import jax

        if not self._checkpoint.exists():
            self._start()
            return like, 0, 0.0
        progress, steps = RunProgress.read(self._checkpoint), self._description["steps"]
        is_over = progress.step == steps
        tensors, description = tensor_files.read(
            self._checkpoint, lambda name: not is_over or name.startswith("parameters/")
        )
        self._check_alike(progress, description)
        parameters = tensor_files.unflatten(self._checkpoint, "parameters", like.parameters, tensors)
        rest = {}
        if not is_over:
            check_resumable(self._directory, progress)
            self._check_statistics(tensors, statistics)
            rest = {
                field.name: tensor_files.unflatten(
                    self._checkpoint, field.name, getattr(like, field.name), tensors
                )
                for field in dataclasses.fields(like)
                if field.name != "parameters"
            }
        if not is_over or trains_on(self._directory, steps):
            self._continue(progress.step)
        rows = [row for row in read_metrics(self._directory) if row["step"] <= progress.step]
        write_atomically(self._metrics, "".join(f"{json.dumps(row)}\n" for row in rows))
        state = dataclasses.replace(like, parameters=parameters, **rest)
        state = jax.tree.map(jax.numpy.asarray, state)
        return state, progress.step, rows[-1]["seconds"] if rows else 0.0

    def _start(self) -> None:
        check_trainable(self._directory)
        discard_other(self._directory, self._config)
        self._metrics.unlink(missing_ok=True)
        write_atomically(self._directory / CONFIG, json.dumps(self._config, indent=2) + "\n")

    def _continue(self, step: int) -> None:
        """Add this session to the configuration, and set the evaluation of fewer steps aside."""
        stored = read_config(self._directory)
        now = _with_session(stored, self._config)
        if stored["training"]["steps"] < self._description["steps"]:
            _set_evaluation_aside(self._directory, step)
            now |= {name: self._config[name] for name in ("training", "notes")}
            now["first_steps"] = first_steps(stored)
        if now != stored:
            write_atomically(self._directory / CONFIG, json.dumps(now, indent=2) + "\n")

    def _check_alike(self, progress: RunProgress, description: dict[str, Any]) -> None:
        """Refuse the checkpoint of another run."""
        from cwbc.core.policy_spec import PolicySpec

        place = f"{self._checkpoint}, design"
        was, now = PolicySpec.from_json(description.get("design"), place), self._description["design"]
        # If the logs lack the highest actions, only the environment knows the number of actions.
        counts = (description["design"]["actions"].get("count"), now["actions"].get("count"))
        if counts[0] != counts[1]:
            raise InputError(
                f"{self._directory} was trained for {counts[0]} actions, now there are {counts[1]}; "
                "give another directory (--out), or remove this one to start over"
            )
        if counts[0] is None and was.actions.size == len(now["actions"]["lowest"]):
            # The bounds stay those of the first training: the environment may be known only now.
            now = self._description["design"] = {**now, "actions": was.to_json()["actions"]}
            self.actions = was.actions
        different = differences(_nameless(was.to_json()), _nameless(now))
        if list(progress.seeds) != self._description["seeds"]:
            different["seeds"] = (list(progress.seeds), self._description["seeds"])
        if different:
            changes = "; ".join(f"{name} was {old!r}, now {new!r}" for name, (old, new) in different.items())
            raise InputError(f"{self._checkpoint} is of another run than {CONFIG} beside it: {changes}")

    def _check_statistics(self, tensors: dict[str, Any], statistics: dict[str, Any]) -> None:
        for name, now in statistics.items():
            if name not in tensors or not np.allclose(tensors[name], now, rtol=1e-3, atol=1e-6):
                raise InputError(
                    f"{self._checkpoint} is from a version that normalizes observations differently "
                    f"({name}); remove {self._directory} to start over"
                )

    def save(
        self, state: Any, step: int, statistics: dict[str, Any], before_replacing: Callable[[], None]
    ) -> None:
        """Replace the checkpoint, unless `before_replacing` raises."""
        tensors = {**statistics}  # with the whole state: more steps may follow, even for a finished run
        for field in dataclasses.fields(state):
            tensors |= tensor_files.flatten(field.name, getattr(state, field.name))
        tensor_files.write(self._checkpoint, tensors, {**self._description, "step": step}, before_replacing)

    def record(self, row: dict[str, Any]) -> None:
        """Add a line to the metrics."""
        with open_to_append(self._metrics) as file:
            file.write(f"{json.dumps(row)}\n".encode())


def _nameless(design: dict[str, Any]) -> dict[str, Any]:
    """A policy's spec as plain JSON, without the name of its method."""
    method = {name: value for name, value in design["method"].items() if name != "name"}
    plain: dict[str, Any] = json.loads(json.dumps({**design, "method": method}))
    return plain


def _set_evaluation_aside(directory: Path, step: int) -> None:
    """Move the evaluation after fewer steps into a folder of its own."""
    found = [name for name in (SUMMARY, RESULTS, *REPORT) if (directory / name).exists()]
    if not found:
        return
    folder = earlier_evaluation(directory, step)
    if folder.is_symlink():
        raise InputError(f"{folder} is a symbolic link, and nothing is moved through it; remove it")
    folder.mkdir(exist_ok=True)
    for name in found:  # the summary first: without it, no other file counts as an evaluation
        os.replace(directory / name, folder / name)


def _with_session(stored: dict[str, Any], now: dict[str, Any]) -> dict[str, Any]:
    """The configuration with the versions and hardware of this session added, if they are new."""
    known, (session,) = sessions(stored), sessions(now)
    return {**stored} if session in known else {**stored, "later_sittings": [*known[1:], session]}
