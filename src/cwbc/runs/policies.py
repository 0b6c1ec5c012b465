"""Trained policies to act with: they track their history and remaining return-to-go, and normalize inputs."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import ArrayLike, NDArray

from cwbc.core.acting import History, act, act_each
from cwbc.core.diagnostics import training_warnings
from cwbc.core.dynamics import Dynamics
from cwbc.core.layers import Parameters
from cwbc.core.methods import to_json
from cwbc.core.policy_spec import ActionChoice, PolicySpec
from cwbc.runs.inputs import far_outside, fit, names_of, numbers, read
from cwbc.system import tensor_files
from cwbc.system.errors import InputError, require
from cwbc.system.formatting import amount
from cwbc.system.tensor_files import CHECKPOINT
from cwbc.system.typed_json import decode

if TYPE_CHECKING:
    from cwbc.runs.export import Export, Format

_ABOUT: dict[str, Any] = {  # the provenance of a run's policies
    "dataset": str,
    "content_hash": str,
    "environment": str | None,
    "lowest_return": float,
    "best_return": float,
}
_RECOMMENDED: dict[str, Any] = {"recommended_target": float, "supported_targets": tuple[float, ...]}

_act = jax.jit(act, static_argnums=0)
_act_each = jax.jit(act_each, static_argnums=0)


class Policy:
    """One trained policy: `begin(target)`, then `act(observation, reward)` at every step."""

    def __init__(self, spec: PolicySpec, parameters: Parameters, about: dict[str, Any] | None = None) -> None:
        self.spec = spec
        self.parameters = parameters
        self.about = about or {}
        self.warn_outside = False  # of observations far outside of the data
        self._history: History | None = None
        self._random = np.random.default_rng(0)  # for sampled actions
        self._warned_of_target = False

    def __repr__(self) -> str:
        known = [f"{name}={self.about[name]!r}" for name in ("dataset", "seed") if name in self.about]
        return f"Policy({', '.join([repr(self.spec.method.name), *known])})"

    @property
    def recommended_target(self) -> float | None:
        """The target return that the run's evaluation recommends; None where there is none."""
        return self.about.get("recommended_target")

    @property
    def observation_names(self) -> tuple[str, ...]:
        """The names of the observations in their order; none where the data had none."""
        return names_of(self.spec.observations)

    def acting(self, actions: ActionChoice | None) -> Policy:
        """The same policy with sampled or greedy actions, which have to be discrete for that."""
        return Policy(self.spec.acting(actions), self.parameters, self.about)

    def begin(
        self, target: ArrayLike | None = None, episodes: ArrayLike | None = None, seed: int | None = None
    ) -> None:
        """Begin one episode (a number) or several at once (a sequence), each with its target return.

        Without a target, one episode begins: methods that choose their own (+q) and those that take none can.

        Args:
            episodes: the numbers of those, among several, that begin anew while the others continue;
                `target` is one number for all of them, or a sequence with one for each.
            seed: of sampled actions: the same seed and observations give the same actions, in this episode
                and those begun later. Without it, the random numbers go on.
        """
        if seed is not None:
            require(seed >= 0, "seed", seed, "at least 0")
            self._random = np.random.default_rng(seed)
        chosen = None if episodes is None else self._chosen(episodes)
        if chosen is not None and not chosen.size:
            return
        targets = self._targets(target)
        if chosen is None:
            self._shape, count = targets.shape, targets.size
            self._remaining = targets.reshape(-1)
            self._timesteps = np.zeros(count, np.int32)
            self._warned = np.zeros((count, *self.spec.observations.shape), bool)
            self._history = History.empty(self.spec, _program_size(count))
            self._sample_keys(np.arange(count))
            return
        if targets.shape not in ((), chosen.shape):
            raise InputError(
                f"{targets.size} targets for {chosen.size} episodes; expected one, or one for each"
            )
        self._remaining, self._timesteps = self._remaining.copy(), self._timesteps.copy()
        self._remaining[chosen], self._timesteps[chosen], self._warned[chosen] = targets, 0, False
        self._sample_keys(chosen)

    def act(self, observation: Any, reward: ArrayLike | None = None) -> NDArray[Any]:
        """The action for an observation; `reward` is that of the previous action (none at the first step).

        Of several episodes, the rewards of those that have just begun are ignored.

        Args:
            observation: numbers in the order of the data; or by name, where the data had names: a mapping
                (several episodes: a list of them, or one with a sequence for each name, as a DataFrame has).
        """
        if self._history is None:
            raise InputError("call begin(target) before act(observation)")
        observations = read(self.spec.observations, observation, self._shape)
        self._check_horizon()
        if self.warn_outside:
            rows = observations.reshape(self._warned.shape)
            for message in far_outside(self.spec.observations, rows, self._warned, bool(self._shape)):
                warnings.warn(message, stacklevel=2)
        self._spend(reward)
        count = self._timesteps.size
        observations = self.spec.observations.received(
            observations.reshape(-1, *self.spec.observations.shape)
        )
        returns_to_go = self.spec.standardized(self._remaining, self._timesteps)
        now: list[Any] = [self._timesteps, observations, returns_to_go]
        if count == 1:
            program, now[0] = _act, self._timesteps[0]
        else:
            program, now = _act_each, [_padded(values) for values in now]
        self._history, actions = program(self.spec.form, self.parameters, self._history, *now)
        self._timesteps = self._timesteps + 1  # not in place: the program may read it still
        return np.asarray(actions)[:count].reshape((*self._shape, *actions.shape[1:]))

    def _sample_keys(self, episodes: NDArray[np.intp]) -> None:
        """New random keys of episodes that begin, if actions are sampled."""
        if self._history is not None and self._history.keys is not None:
            keys = np.array(self._history.keys)
            keys[episodes] = self._random.integers(1 << 32, size=(len(episodes), 2), dtype=np.uint32)
            self._history = dataclasses.replace(self._history, keys=keys)

    def _targets(self, target: ArrayLike | None) -> NDArray[np.float64]:
        if target is None:
            target = self.spec.method.learner.open_target(self.spec.horizon)
            target = self.recommended_target if target is None else target
            if target is None:
                name = self.spec.method.name
                raise InputError(
                    f"{name} is conditioned on a target return, and its run is not evaluated, so none is "
                    "recommended; call begin(target)"
                )
        else:
            self._warn_unsupported(target)
        targets = numbers(target)
        if targets is None or targets.ndim > 1 or not targets.size or not fit(targets):
            raise InputError(
                f"a target is a finite number, or a sequence of at least one; got {target!r:.60}"
            )
        return self.spec.method.learner.limited(targets, self.spec.horizon)

    def _warn_unsupported(self, target: ArrayLike) -> None:
        """Warn once of targets that neither the data nor an evaluation supports."""
        supported, targets = self.about.get("supported_targets"), numbers(target)
        if supported is None or targets is None or self._warned_of_target:
            return
        low, high = supported
        room = 1e-6 * (high - low)
        if (outside := targets[(targets < low - room) | (targets > high + room)]).size:
            self._warned_of_target = True
            text = f"the target {amount(float(outside.flat[0]))} is outside of the supported ones"
            advice = f"{self.recommended_target:,.6g} is recommended"
            warnings.warn(f"{text}, {amount(low)} to {amount(high)}; {advice}", stacklevel=4)

    def _chosen(self, episodes: ArrayLike) -> NDArray[np.intp]:
        if self._history is None:
            raise InputError("call begin(target) for all episodes before some of them begin anew")
        given, count = numbers(episodes), self._timesteps.size
        if (
            given is None
            or given.ndim > 1
            or np.asarray(episodes).dtype == bool
            or not np.isin(given, np.arange(count)).all()
            or len(np.unique(given)) < given.size
        ):
            raise InputError(
                f"episodes are numbers from 0 to {count - 1}, each at most once; got {episodes!r:.60} "
                "(of a mask, numpy.flatnonzero gives them)"
            )
        return given.reshape(-1).astype(np.intp)

    def _check_horizon(self) -> None:
        method, steps = self.spec.method, self.spec.horizon
        if not (method.is_conditioned or method.learner.looks_back):
            return  # it reads no timestep
        if (ended := np.flatnonzero(self._timesteps >= steps)).size:
            which, more = ("the episode", "") if not self._shape else (f"episode {ended[0]}", ", episodes")
            raise InputError(
                f"{which} has had {steps} steps, as many as an episode of the data can have; "
                f"call begin(target{more}) for the next one"
            )

    def _spend(self, reward: ArrayLike | None) -> None:
        goes_on = self._timesteps > 0
        if reward is None:
            if goes_on.any():
                raise InputError("act needs the reward of the previous action from the second step on")
            return
        if not self._shape and not goes_on.any():
            raise InputError("the first act of an episode takes no reward: there is no previous action")
        rewards = numbers(reward)
        if rewards is not None and rewards.shape != self._shape:
            raise InputError(f"the reward has shape {rewards.shape}; expected {self._shape}")
        if rewards is not None:
            rewards = np.where(goes_on, rewards.reshape(-1), 0.0)
            remaining = self.spec.remaining_after(self._remaining, rewards)
        if rewards is None or not fit(rewards) or not fit(remaining):
            raise InputError(f"a reward is a finite number; got {reward!r:.60}")
        self._remaining = remaining

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything that acting needs to one file."""
        tensors = tensor_files.flatten("parameters", self.parameters)
        tensor_files.write(Path(path), tensors, {"design": self.spec.to_json(), "about": self.about})

    def export(
        self,
        path: str | os.PathLike[str],
        format: Format = "onnx",
        target: float | None = None,
        overwrite: bool = False,
    ) -> Export:
        """Write an ONNX file, or weights and a module for NumPy alone, compared with this policy before.

        Args:
            target: the target return to begin with, which is written to the file's description.
        """
        from cwbc.runs.export import export  # ten modules that acting does not need

        return export(self, Path(path), format, target, overwrite)

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

    def only(self, seed: int | None = None) -> Policies:
        """Those of one seed, by default the first."""
        seed = self.seeds[0] if seed is None else seed
        if seed not in self.seeds:
            raise InputError(f"no seed {seed}; trained were {', '.join(map(str, self.seeds))}")
        row = self.seeds.index(seed)
        parameters = jax.tree.map(lambda x: np.asarray(x)[row : row + 1], self.parameters)
        return dataclasses.replace(self, parameters=parameters, seeds=(seed,))

    def policy(self, seed: int | None = None) -> Policy:
        """The policy of one seed, by default the first."""
        only = self.only(seed)
        parameters = jax.tree.map(lambda x: jax.device_put(x[0]), only.parameters)
        return Policy(self.spec, parameters, {**self.about, "seed": only.seeds[0]})

    def acting(self, actions: ActionChoice | None) -> Policies:
        """The same policies with sampled or greedy actions, which have to be discrete for that."""
        return dataclasses.replace(self, spec=self.spec.acting(actions))

    def sweep_in_words(self, targets: int, episodes: int) -> str:
        """An evaluation of these policies, such as "5 target returns, 100 episodes"."""
        how, count = f"{targets} target returns", targets
        if not self.spec.method.is_conditioned or not targets:
            how, count = "without a target" if self.spec.method.is_conditioned else "unconditioned", 1
        return f"{how}, {len(self.seeds) * count * episodes:,} episodes"

    @classmethod
    def load(cls, run: str | os.PathLike[str]) -> Policies:
        """The policies of a run whose training has finished, by its directory or its checkpoint."""
        # Here, so that acting from a file needs no more packages than its network does.
        from cwbc.runs.run_directory import RunDirectory, read_progress

        given = Path(run)
        path = given if given.is_file() else given / CHECKPOINT
        if not path.exists():
            below = [str(each.parent) for each in sorted(path.parent.glob(f"*/{CHECKPOINT}"))]
            hint = f"; give one of those in it: {', '.join(below)}" if below else ""
            raise InputError(f"{run} holds no trained run: {CHECKPOINT} is missing{hint}")
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
        if isinstance(loaded.spec.method.learner, Dynamics):
            raise InputError(f"{run} holds models of the data for offline evaluation, no policies")
        if path != given:
            loaded.about.update(RunDirectory(given).recommendation())
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
    for name, kind in _RECOMMENDED.items():
        if name in about:
            decode(kind, about[name], f"{path}, about.{name}")
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


def _program_size(episodes: int) -> int:
    """Episodes that a program acts for: powers of two, so that not every number of them is compiled."""
    return 1 << (episodes - 1).bit_length()


def _padded(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows [episode, ...], and zeros up to the size of a program."""
    missing = _program_size(len(rows)) - len(rows)
    return np.concatenate([rows, np.zeros((missing, *rows.shape[1:]), rows.dtype)])
