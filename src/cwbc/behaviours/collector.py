"""The environments that learners act in: the copies of all seeds in one batch, reset as they end.

An episode depends on its seed and its actions alone, so a checkpoint stores these, and resuming repeats them.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc import envs
from cwbc.behaviours.policies import scale
from cwbc.system.errors import InputError
from cwbc.system.tensor_files import Tensors, check_tensor

_STATES = "generators"  # of the random numbers, in a checkpoint's description


class Experience(NamedTuple):
    """One step of every copy, [seed, copy]."""

    observations: NDArray[Any]  # [seed, copy, number]
    actions: NDArray[Any]  # [seed, copy, action], within -1 and 1, or [seed, copy] of discrete ones
    rewards: NDArray[np.float32]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    life_lost: NDArray[np.bool_]
    next_observations: NDArray[Any]  # [seed, copy, number], before any reset


class Collector:
    """Copies of an environment for each of several seeds."""

    def __init__(self, environment: str, seeds: tuple[int, ...], copies: int, stack: int = 1) -> None:
        self.simulator = envs.make(environment, len(seeds) * copies)
        self.close = self.simulator.close
        bounds = self.simulator.action_bounds
        self.bounds = None if bounds is None else tuple(bound.astype(np.float32) for bound in bounds)
        self._environment, self._seeds, self._copies, self._stack = environment, seeds, copies, stack
        self._rows = np.arange(len(seeds) * copies)
        self._dtype = np.float32 if self.simulator.image_shape is None else np.uint8

    def reset(self, step: int) -> None:
        """Reset all copies; a training that resumes at a later step does not repeat its first episodes."""
        self._generators = [np.random.default_rng((seed, step)) for seed in self._seeds]
        self._begin([self._next_seed(row) for row in self._rows])

    def _begin(self, seeds: list[int]) -> None:
        """Start an episode in every copy, from these seeds."""
        self._origins = np.array(seeds)  # [row], the seed of its episode
        self._elapsed = np.zeros(len(self._rows), np.int64)  # [row], steps of its episode
        self._taken = collections.deque[NDArray[Any]]()  # the last actions, [row, ...] each
        self.observations = self._flat(self.simulator.reset(self._rows, seeds))  # [seed, copy, number]
        self.is_first = np.ones(self.observations.shape[:2], np.bool_)  # of an episode, [seed, copy]
        # Those before the present ones; the first of an episode is repeated. [seed, copy, frame, number]
        self.previous = np.repeat(self.observations[:, :, None], self._stack, axis=2)

    def uniform(self) -> NDArray[np.float32]:
        """Random actions within -1 and 1, [seed, copy, action]."""
        shape = (self._copies, self.simulator.action_size)
        actions = np.stack([generator.uniform(-1, 1, shape) for generator in self._generators])
        return actions.astype(np.float32)

    def step(self, actions: NDArray[Any]) -> Experience:
        """Act in every copy, [seed, copy, action], or [seed, copy] where actions are discrete."""
        taken = actions.reshape(len(self._rows), *actions.shape[2:])
        if self.bounds is not None:
            taken = scale(taken, *self.bounds)
        outcome = self.simulator.step(self._rows, taken)
        arrived, rewards = self._flat(outcome.observations), self._shaped(outcome.rewards, np.float32)
        if not (np.isfinite(arrived).all() and np.isfinite(rewards).all()):
            raise InputError(f"{self._environment} gave an observation or a reward that is not finite")
        lost = np.zeros(len(self._rows), np.bool_) if outcome.life_lost is None else outcome.life_lost
        terminated, truncated, life_lost = (
            self._shaped(part, np.bool_) for part in (outcome.terminated, outcome.truncated, lost)
        )
        step = Experience(self.observations, actions, rewards, terminated, truncated, life_lost, arrived)
        self._taken.append(taken)
        self._elapsed += 1
        finished = np.flatnonzero(outcome.terminated | outcome.truncated)
        self._elapsed[finished] = 0
        while len(self._taken) > self._elapsed.max():
            self._taken.popleft()
        if len(finished):
            arrived = arrived.copy()  # the step keeps the last observation of an episode
            self._origins[finished] = [self._next_seed(row) for row in finished]
            begun = self.simulator.reset(finished, self._origins[finished].tolist())
            arrived.reshape(len(self._rows), -1)[finished] = begun.reshape(len(finished), -1)
        self.observations, self.is_first = arrived, terminated | truncated
        return step

    def saved(self) -> tuple[Tensors, dict[str, Any]]:
        """What `restore` needs of the running episodes, for a checkpoint and for its description."""
        tensors = {"episodes/seeds": self._origins, "episodes/steps": self._elapsed}
        if self._taken:
            tensors["episodes/actions"] = np.stack(self._taken)
        # As a text: its numbers have 128 bits.
        return tensors, {_STATES: json.dumps([each.bit_generator.state for each in self._generators])}

    def restore(self, path: Path, tensors: Tensors, description: dict[str, Any], step: int) -> None:
        """Continue the episodes of a checkpoint, by repeating them; where there are none, begin new ones."""
        self.reset(step)
        if _STATES not in description:
            return
        for name in ("episodes/seeds", "episodes/steps"):
            check_tensor(path, name, tensors[name], self._rows.shape, np.dtype(np.int64))
        elapsed = tensors["episodes/steps"].copy()
        taken = tensors.get("episodes/actions", np.zeros((0, len(self._rows))))
        if len(taken) != elapsed.max():
            raise InputError(f"{path} has {len(taken)} actions of episodes with {elapsed.max()} steps")
        self._begin(tensors["episodes/seeds"].tolist())
        self.observations = self.observations.copy()  # the simulator may own them
        latest, previous = (
            part.reshape(len(self._rows), *part.shape[2:]) for part in (self.observations, self.previous)
        )
        for left, actions in zip(range(len(taken), 0, -1), taken, strict=True):
            running = np.flatnonzero(elapsed >= left)
            previous[running, :-1], previous[running, -1] = previous[running, 1:], latest[running]
            outcome = self.simulator.step(running, actions[running])
            latest[running] = outcome.observations.reshape(len(running), -1)
            if (outcome.terminated | outcome.truncated).any():  # not determined by the seed
                self.reset(step)
                return
        self._elapsed, self.is_first = elapsed, self._shaped(elapsed == 0, np.bool_)
        self._taken.extend(taken)
        for generator, state in zip(self._generators, json.loads(description[_STATES]), strict=True):
            generator.bit_generator.state = state

    def _next_seed(self, row: Any) -> int:
        return int(self._generators[row // self._copies].integers(2**31))

    def _flat(self, observations: NDArray[Any]) -> NDArray[Any]:
        """Observations of all rows as those of [seed, copy], images in one dimension."""
        return self._shaped(observations.reshape(len(self._rows), -1), self._dtype)

    def _shaped(self, values: NDArray[Any], dtype: Any) -> NDArray[Any]:
        """Values of all rows as those of [seed, copy]."""
        return np.asarray(values, dtype).reshape(len(self._seeds), self._copies, *values.shape[1:])
