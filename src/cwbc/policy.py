"""A trained policy as people use it: it keeps its own history, its target and its normalization."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbc import checkpoints
from cwbc.checkpoints import CHECKPOINT
from cwbc.design import Design
from cwbc.errors import InputError
from cwbc.layers import Parameters
from cwbc.sampling import normalized


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class History:
    """The last steps of several episodes; entries after the current step are not looked at."""

    observations: jax.Array  # [episode, memory, dimension], normalized
    actions: jax.Array  # [episode, memory, size], encoded
    returns_to_go: jax.Array  # [episode, memory], standardized
    timesteps: jax.Array  # [episode, memory]

    @classmethod
    def empty(cls, design: Design, episodes: int) -> History:
        shape = (episodes, design.memory)
        return cls(
            observations=jnp.zeros((*shape, design.observation_size)),
            actions=jnp.zeros((*shape, design.actions.size)),
            returns_to_go=jnp.zeros(shape),
            timesteps=jnp.zeros(shape, jnp.int32),
        )


def act(
    design: Design,
    parameters: Parameters,
    history: History,
    timestep: jax.Array,  # []
    observations: jax.Array,  # [episode, dimension], normalized
    returns_to_go: jax.Array,  # [episode], standardized
) -> tuple[History, jax.Array]:
    """One step of acting for several episodes at the same timestep: the history after it, and the actions."""
    memory = design.memory
    slot = jnp.minimum(timestep, memory - 1)
    full = timestep >= memory

    def appended(entries: jax.Array, entry: jax.Array) -> jax.Array:
        entries = jnp.where(full, jnp.roll(entries, -1, axis=1), entries)
        return entries.at[:, slot].set(entry)

    history = History(
        observations=appended(history.observations, observations),
        actions=appended(history.actions, jnp.zeros(history.actions.shape[2])),
        returns_to_go=appended(history.returns_to_go, returns_to_go),
        timesteps=appended(history.timesteps, timestep),
    )
    parameters = parameters | design.prepared(parameters)
    outputs = design.outputs(
        parameters,
        history.observations,
        history.returns_to_go,
        history.actions,
        history.timesteps,
        asked=slot[None],
    )
    actions = design.actions.choose(outputs[:, 0])
    encoded = history.actions.at[:, slot].set(design.actions.encode(actions))
    return dataclasses.replace(history, actions=encoded), actions


_act = jax.jit(act, static_argnums=0)


class Policy:
    """One trained policy: `begin(target)`, then `act(observation, reward)` at every step."""

    def __init__(
        self,
        design: Design,
        parameters: Parameters,
        observation_mean: NDArray[np.float32],
        observation_deviation: NDArray[np.float32],
        about: dict[str, Any] | None = None,
    ) -> None:
        self.design = design
        self.parameters = parameters
        self.observation_mean = observation_mean
        self.observation_deviation = observation_deviation
        self.about = about or {}
        self._history: History | None = None

    def __repr__(self) -> str:
        told = [f"{name}={self.about[name]!r}" for name in ("dataset", "seed") if name in self.about]
        return f"Policy({', '.join([repr(self.design.method.name), *told])})"

    def begin(self, target: ArrayLike) -> None:
        """Begin one episode (a number) or several at once (a sequence), each asked for its target return."""
        self._remaining = np.asarray(target, np.float64)
        if self._remaining.ndim > 1 or not np.isfinite(self._remaining).all():
            raise InputError(f"a target is a finite number, or a sequence of them; got {target!r}")
        self._timestep = 0
        self._history = History.empty(self.design, self._remaining.size)

    def act(self, observation: ArrayLike, reward: ArrayLike | None = None) -> NDArray[Any]:
        """The action for an observation; `reward` is what the previous action earned (none at the first)."""
        if self._history is None:
            raise InputError("call begin(target) before act(observation)")
        observations = np.asarray(observation, np.float32)
        expected = (*self._remaining.shape, self.design.observation_size)
        if observations.shape != expected:
            raise InputError(f"the observation has shape {observations.shape}; expected {expected}")
        finite = np.isfinite(observations)
        if not finite.all():  # told before anything is remembered: the next observation may be all right
            place = np.argwhere(~finite)[0].tolist()
            raise InputError(f"an observation is finite numbers; got {observations[tuple(place)]} at {place}")
        self._spend(reward)
        self._history, actions = _act(
            self.design.form,
            self.parameters,
            self._history,
            np.int32(self._timestep),
            normalized(observations, self.observation_mean, self.observation_deviation).reshape(
                -1, self.design.observation_size
            ),
            self.design.standardized(self._remaining, self._timestep).reshape(-1),
        )
        self._timestep += 1
        return np.asarray(actions).reshape((*self._remaining.shape, *actions.shape[1:]))

    def _spend(self, reward: ArrayLike | None) -> None:
        if self._timestep == 0:
            if reward is not None:
                raise InputError("the first act of an episode takes no reward: nothing was earned yet")
            return
        if reward is None:
            raise InputError("act needs the reward of the previous action from the second step on")
        rewards = np.asarray(reward, np.float64)
        if rewards.shape != self._remaining.shape:
            raise InputError(f"the reward has shape {rewards.shape}; expected {self._remaining.shape}")
        if not np.isfinite(rewards).all():
            raise InputError(f"a reward is a finite number; got {reward!r}")
        self._remaining = self._remaining - rewards

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that acting needs into one file."""
        tensors = checkpoints.flatten("parameters", self.parameters)
        tensors["observation_mean"] = self.observation_mean
        tensors["observation_deviation"] = self.observation_deviation
        description = {"design": self.design.to_json(), "about": self.about}
        checkpoints.write(Path(path), tensors, description)

    @classmethod
    def load(cls, path: str | os.PathLike[str], seed: int | None = None) -> Policy:
        """The policy of a saved file, or of one seed (by default the first) of a run directory."""
        path = Path(path)
        if path.is_dir():
            return Policies.load(path).policy(seed)
        if not path.exists():
            raise InputError(f"no policy at {path}: no such file or run directory")
        tensors, description = checkpoints.read(path)
        parameters = jax.tree.map(jnp.asarray, checkpoints.nested("parameters", tensors))
        statistics = (tensors["observation_mean"], tensors["observation_deviation"])
        return cls(Design.from_json(description["design"]), parameters, *statistics, description["about"])


@dataclasses.dataclass(frozen=True)
class Policies:
    """What one training gave: a policy per seed, stacked."""

    design: Design
    parameters: Parameters = dataclasses.field(repr=False)  # [seed, ...]
    seeds: tuple[int, ...]
    observation_mean: NDArray[np.float32] = dataclasses.field(repr=False)
    observation_deviation: NDArray[np.float32] = dataclasses.field(repr=False)
    about: dict[str, Any] = dataclasses.field(default_factory=dict)

    def policy(self, seed: int | None = None) -> Policy:
        """The policy of one seed, by default the first."""
        seed = self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise InputError(f"no seed {seed}; trained were {', '.join(map(str, self.seeds))}")
        row = self.seeds.index(seed)
        parameters = jax.tree.map(lambda x: x[row], self.parameters)
        about = {**self.about, "seed": seed}
        return Policy(self.design, parameters, self.observation_mean, self.observation_deviation, about)

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Policies:
        """The policies of a run directory whose training has finished."""
        path = Path(directory) / CHECKPOINT
        if not path.exists():
            raise InputError(f"{directory} holds no trained run: {CHECKPOINT} is missing")
        tensors, description = checkpoints.read(path)
        if "step" not in description:
            raise InputError(f"{path} is a policy, not a run's checkpoint")
        if description["step"] < description["steps"]:
            done = f"{description['step']} of {description['steps']} steps"
            raise InputError(
                f"{directory}: training has stopped at {done}; run the same command to finish it"
            )
        return cls(
            Design.from_json(description["design"]),
            jax.tree.map(jnp.asarray, checkpoints.nested("parameters", tensors)),
            tuple(description["seeds"]),
            tensors["observation_mean"],
            tensors["observation_deviation"],
            description["about"],
        )
