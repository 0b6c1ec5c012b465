"""Trained policies to act with: they track their history and remaining return-to-go, and normalize inputs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbc.core.acting import History, act, remaining_after
from cwbc.core.diagnostics import training_warnings
from cwbc.core.layers import Parameters
from cwbc.core.methods import to_json
from cwbc.core.policy_spec import PolicySpec
from cwbc.runs.run_directory import RunDirectory, read_progress
from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.tensor_files import CHECKPOINT
from cwbc.system.typed_json import decode

_ABOUT: dict[str, Any] = {  # the provenance of a run's policies
    "dataset": str,
    "content_hash": str,
    "environment": str | None,
    "lowest_return": float,
    "best_return": float,
}

_act = jax.jit(act, static_argnums=0)


class Policy:
    """One trained policy: `begin(target)`, then `act(observation, reward)` at every step."""

    def __init__(self, spec: PolicySpec, parameters: Parameters, about: dict[str, Any] | None = None) -> None:
        self.spec = spec
        self.parameters = parameters
        self.about = about or {}
        self._history: History | None = None

    def __repr__(self) -> str:
        known = [f"{name}={self.about[name]!r}" for name in ("dataset", "seed") if name in self.about]
        return f"Policy({', '.join([repr(self.spec.method.name), *known])})"

    def begin(self, target: ArrayLike | None = None) -> None:
        """Begin one episode (a number) or several at once (a sequence), each with its target return.

        Without a target, one episode begins: methods that choose their own (+q) and those that take none can.
        """
        if target is None:
            target = self.spec.method.learner.open_target(self.spec.horizon)
            if target is None:
                name = self.spec.method.name
                raise InputError(f"{name} is conditioned on a target return; call begin(target)")
        targets = _numbers(target)
        if targets is None or targets.ndim > 1 or not targets.size or not _fit(targets):
            raise InputError(
                f"a target is a finite number, or a sequence of at least one; got {target!r:.60}"
            )
        self._remaining = self.spec.method.learner.limited(targets, self.spec.horizon)
        self._timestep = 0
        self._history = History.empty(self.spec, targets.size)

    def act(self, observation: ArrayLike, reward: ArrayLike | None = None) -> NDArray[Any]:
        """The action for an observation; `reward` is that of the previous action (none at the first step)."""
        if self._history is None:
            raise InputError("call begin(target) before act(observation)")
        observations = self._observations(observation)
        self._spend(reward)
        self._history, actions = _act(
            self.spec.form,
            self.parameters,
            self._history,
            np.int32(self._timestep),
            self.spec.observations.received(observations.reshape(-1, *self.spec.observations.shape)),
            self.spec.standardized(self._remaining, self._timestep).reshape(-1),
        )
        self._timestep += 1
        return np.asarray(actions).reshape((*self._remaining.shape, *actions.shape[1:]))

    def _observations(self, observation: ArrayLike) -> NDArray[Any]:
        numbers, space = _numbers(observation), self.spec.observations
        expected = (*self._remaining.shape, *space.shape)
        if numbers is None:
            raise InputError(f"an observation is numbers of shape {expected}; got {observation!r:.60}")
        with np.errstate(over="ignore"):
            observations = numbers.astype(np.float32)
        if observations.shape != expected:
            raise InputError(f"the observation has shape {observations.shape}; expected {expected}")
        valid = space.is_valid(observations)
        if not valid.all():  # before anything is remembered: the next observation may be all right
            place = np.argwhere(~valid)[0].tolist()
            raise InputError(f"an observation is {space.values}; got {observations[tuple(place)]} at {place}")
        return observations

    def _spend(self, reward: ArrayLike | None) -> None:
        if self._timestep == 0:
            if reward is not None:
                raise InputError("the first act of an episode takes no reward: there is no previous action")
            return
        if reward is None:
            raise InputError("act needs the reward of the previous action from the second step on")
        rewards = _numbers(reward)
        if rewards is not None and rewards.shape != self._remaining.shape:
            raise InputError(f"the reward has shape {rewards.shape}; expected {self._remaining.shape}")
        if rewards is None or not _fit(rewards) or not _fit(remaining_after(self._remaining, rewards)):
            raise InputError(f"a reward is a finite number; got {reward!r:.60}")
        self._remaining = remaining_after(self._remaining, rewards)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that acting needs to one file."""
        tensors = tensor_files.flatten("parameters", self.parameters)
        tensor_files.write(Path(path), tensors, {"design": self.spec.to_json(), "about": self.about})

    @classmethod
    def load(cls, path: str | os.PathLike[str], seed: int | None = None) -> Policy:
        """The policy of a saved file, or of one seed (by default the first) of a run directory."""
        path = Path(path)
        if not path.exists():
            raise InputError(f"no policy at {path}: no such file or run directory")
        if path.is_dir() or "step" in tensor_files.read_description(path):  # a run, or its checkpoint
            return Policies.load(path).policy(seed)
        loaded = _read(path)
        if seed is not None and loaded.about.get("seed") != seed:
            found = f"the policy of seed {loaded.about['seed']}" if "seed" in loaded.about else "one policy"
            raise InputError(f"{path} holds {found}, not that of seed {seed}; load it without a seed")
        return cls(loaded.spec, loaded.parameters, loaded.about)


@dataclasses.dataclass(frozen=True)
class Policies:
    """The result of one training: a policy per seed, stacked."""

    spec: PolicySpec
    parameters: Parameters = dataclasses.field(repr=False)  # [seed, ...]
    seeds: tuple[int, ...]
    about: dict[str, Any] = dataclasses.field(default_factory=dict)
    warnings: tuple[str, ...] = ()  # about their training

    def policy(self, seed: int | None = None) -> Policy:
        """The policy of one seed, by default the first."""
        seed = self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise InputError(f"no seed {seed}; trained were {', '.join(map(str, self.seeds))}")
        row = self.seeds.index(seed)
        parameters = jax.tree.map(lambda x: jax.device_put(np.asarray(x)[row]), self.parameters)
        return Policy(self.spec, parameters, {**self.about, "seed": seed})

    def sweep_in_words(self, targets: int, episodes: int) -> str:
        """An evaluation of these policies, such as "5 target returns, 100 episodes"."""
        how, count = f"{targets} target returns", targets
        if not self.spec.method.is_conditioned or not targets:
            how, count = "without a target" if self.spec.method.is_conditioned else "unconditioned", 1
        return f"{how}, {len(self.seeds) * count * episodes:,} episodes"

    @classmethod
    def load(cls, run: str | os.PathLike[str]) -> Policies:
        """The policies of a run whose training has finished, by its directory or its checkpoint."""
        given = Path(run)
        path = given if given.is_file() else given / CHECKPOINT
        if not path.exists():
            raise InputError(f"{run} holds no trained run: {CHECKPOINT} is missing")
        if "step" not in tensor_files.read_description(path):
            raise InputError(f"{path} is a policy, not a run's checkpoint")
        seeds, step, steps = read_progress(path)
        metrics: list[dict[str, Any]] = []
        if path != given:
            metrics = RunDirectory(given).metrics()
            with contextlib.suppress(InputError):  # the checkpoint is enough where it was copied alone
                steps = max(steps, RunDirectory(given).config()["training"]["steps"])
        if step < steps:
            done = f"{step} of {steps} steps"
            raise InputError(f"{run}: training has stopped at {done}; run the same command to finish it")
        loaded = _read(path, seeds)
        warnings = training_warnings(metrics, seeds, to_json(loaded.spec.method))
        return dataclasses.replace(loaded, warnings=tuple(warnings))


def _read(path: Path, seeds: tuple[int, ...] = ()) -> Policies:
    """The policies of a file, without the optimizer's state; without seeds, one that is not stacked."""
    tensors, description = tensor_files.read(path, lambda name: name.startswith("parameters/"))
    design, about = (
        decode(dict[str, Any], description.get(name), f"{path}, description.{name}")
        for name in ("design", "about")
    )
    for name, kind in _ABOUT.items() if seeds else ():
        decode(kind, about.get(name), f"{path}, about.{name}")
    spec = PolicySpec.from_json(design, f"{path}, design")
    # Before shapes are computed, which takes long for millions of layers.
    layers = getattr(getattr(spec.method.learner, "network", None), "layers", 0)
    if layers > len(tensors):
        raise InputError(
            f"{path}, design.method.network.layers is {layers}, but there are {len(tensors)} tensors"
        )

    def initial(key: jax.Array) -> Parameters:
        return spec.method.learner.initialize(spec, key).parameters

    key = jax.random.key(0)
    keys = jax.random.split(key, len(seeds)) if seeds else key
    try:
        like = jax.eval_shape(jax.vmap(initial) if seeds else initial, keys)
    except (TypeError, ValueError, OverflowError) as error:  # impossible sizes
        raise InputError(f"{path}, design: no network has these sizes: {error}") from error
    parameters = tensor_files.unflatten(path, "parameters", like, tensors)
    return Policies(spec, jax.device_put(parameters), seeds, about)


def _numbers(values: Any) -> NDArray[np.float64] | None:
    """Values as an array, or None where they are no numbers: NumPy would take the text "600" for one."""
    try:
        array = np.asarray(values)
        return None if array.dtype.kind in "USMmcO" else array.astype(np.float64)
    except (TypeError, ValueError):  # such as lists of lists of several lengths
        return None


def _fit(numbers: NDArray[np.float64]) -> bool:
    """Whether numbers are finite in float32, too, which networks compute in."""
    return bool((np.abs(numbers) <= np.finfo(np.float32).max).all())
