"""A trained policy as people use it: it keeps its own history, its target and its normalization."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from numbers import Number
from pathlib import Path
from typing import Any, TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbc import checkpoints
from cwbc.checkpoints import CHECKPOINT
from cwbc.design import Design
from cwbc.diagnostics import training_warnings
from cwbc.errors import InputError
from cwbc.json_values import decode
from cwbc.layers import Parameters
from cwbc.methods import to_json
from cwbc.runs import RunProgress, read_config, read_metrics
from cwbc.sampling import normalized

_STATISTICS = ("observation_mean", "observation_deviation")


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
        """Begin one episode (a number) or several at once (a sequence), each with its target return."""
        targets = _numbers(target)
        if targets is None or targets.ndim > 1 or not targets.size or not _fit(targets):
            raise InputError(
                f"a target is a finite number, or a sequence of at least one; got {_told(target)}"
            )
        self._remaining = targets
        self._timestep = 0
        self._history = History.empty(self.design, self._remaining.size)

    def act(self, observation: ArrayLike, reward: ArrayLike | None = None) -> NDArray[Any]:
        """The action for an observation; `reward` is what the previous action earned (none at the first)."""
        if self._history is None:
            raise InputError("call begin(target) before act(observation)")
        numbers = _numbers(observation)
        expected = (*self._remaining.shape, self.design.observation_size)
        if numbers is None:
            raise InputError(f"an observation is numbers of shape {expected}; got {_told(observation)}")
        with np.errstate(over="ignore"):
            observations = numbers.astype(np.float32)
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
        rewards = _numbers(reward)
        if rewards is None:
            raise InputError(f"a reward is a number; got {_told(reward)}")
        if rewards.shape != self._remaining.shape:
            raise InputError(f"the reward has shape {rewards.shape}; expected {self._remaining.shape}")
        if not _fit(rewards) or not _fit(self._remaining - rewards):
            raise InputError(f"a reward is a finite number; got {_told(reward)}")
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
        description = checkpoints.read_description(path)
        if "step" in description:  # a run's checkpoint, which is as good as its directory
            return Policies.load(path).policy(seed)
        loaded = _read(path)
        if seed is not None and loaded.about.get("seed") != seed:
            held = f"the policy of seed {loaded.about['seed']}" if "seed" in loaded.about else "one policy"
            raise InputError(f"{path} holds {held}, not that of seed {seed}; load it without a seed")
        return cls(
            loaded.design,
            loaded.parameters,
            loaded.observation_mean,
            loaded.observation_deviation,
            loaded.about,
        )


@dataclasses.dataclass(frozen=True)
class Policies:
    """What one training gave: a policy per seed, stacked."""

    design: Design
    parameters: Parameters = dataclasses.field(repr=False)  # [seed, ...]
    seeds: tuple[int, ...]
    observation_mean: NDArray[np.float32] = dataclasses.field(repr=False)
    observation_deviation: NDArray[np.float32] = dataclasses.field(repr=False)
    about: dict[str, Any] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # what looks wrong in the training that gave them

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
    def load(cls, run: str | os.PathLike[str]) -> Policies:
        """The policies of a run whose training has finished, by its directory or its checkpoint."""
        path = Path(run)
        path = path if path.is_file() else path / CHECKPOINT
        if not path.exists():
            raise InputError(f"{run} holds no trained run: {CHECKPOINT} is missing")
        description = checkpoints.read_description(path)
        if "step" not in description:
            raise InputError(f"{path} is a policy, not a run's checkpoint")
        progress = RunProgress.read(path)
        steps = progress.steps
        if path != Path(run):
            with contextlib.suppress(InputError):  # the checkpoint is enough where it was given away alone
                steps = max(steps, read_config(path.parent)["training"]["steps"])
        if progress.step < steps:
            done = f"{progress.step} of {steps} steps"
            raise InputError(f"{run}: training has stopped at {done}; run the same command to finish it")
        loaded = _read(path, progress.seeds)
        if path == Path(run):
            return loaded
        method = to_json(loaded.design.method)
        warnings = training_warnings(read_metrics(path.parent), loaded.seeds, method)
        return dataclasses.replace(loaded, warnings=tuple(warnings))


class _Described(TypedDict):
    """The description of a policy's file."""

    design: dict[str, Any]
    about: dict[str, Any]


class _About(TypedDict):
    """What a run's policies say about their training."""

    dataset: str
    content_hash: str
    environment: str | None
    lowest_return: float
    best_return: float


def _read(path: Path, seeds: tuple[int, ...] = ()) -> Policies:
    """What acting needs of a file, and nothing else; without seeds, of one policy that is not stacked."""
    tensors, description = checkpoints.read(path, _acts)
    described = decode(_Described, description, f"{path}, description")
    if seeds:
        decode(_About, described["about"], f"{path}, about")
    design = Design.from_json(described["design"], f"{path}, design")
    # Before shapes are made of it, which takes long for millions of layers.
    if design.method.network.layers > len(tensors):
        raise InputError(
            f"{path}, design.method.network.layers is {design.method.network.layers}, "
            f"but there are {len(tensors)} tensors"
        )

    def initial() -> Parameters:
        key = jax.random.key(0)
        if not seeds:
            return design.initialize(key)
        return jax.vmap(design.initialize)(jax.random.split(key, len(seeds)))

    try:
        like = jax.eval_shape(initial)
    except (TypeError, ValueError, OverflowError) as error:  # sizes that no array has
        raise InputError(f"{path}, design: no network has these sizes: {error}") from error
    parameters = checkpoints.unflatten(path, "parameters", like, tensors)
    for name in _STATISTICS:
        if name not in tensors:
            raise InputError(f"{path} lacks the tensor {name}")
        size = (design.observation_size,)
        checkpoints.check_tensor(path, name, tensors[name], size, np.dtype(np.float32))
    mean, deviation = (tensors[name] for name in _STATISTICS)
    if not (deviation > 0).all():
        raise InputError(
            f"{path}: the tensor observation_deviation has {deviation.min()}; expected only more than 0"
        )
    return Policies(design, jax.tree.map(jnp.asarray, parameters), seeds, mean, deviation, described["about"])


def _acts(name: str) -> bool:
    """Whether acting needs a tensor; those of the optimizer are for training alone."""
    return name.startswith("parameters/") or name in _STATISTICS


def _numbers(values: Any) -> NDArray[np.float64] | None:
    """Values as an array, or None where they are no numbers: NumPy would take the text "600" for one."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "O" and not all(isinstance(each, Number) for each in array.flat):
            return None  # such as None, which would become NaN
        return None if array.dtype.kind in "USMmc" else array.astype(np.float64)
    except (TypeError, ValueError):  # lists of lists of several lengths, complex objects
        return None


def _fit(numbers: NDArray[np.float64]) -> bool:
    """Whether numbers are finite for a network, too, which has fewer bits."""
    return bool((np.abs(numbers) <= np.finfo(np.float32).max).all())


def _told(value: Any) -> str:
    told = repr(value)
    return told if len(told) <= 60 else f"{told[:60]}…"
