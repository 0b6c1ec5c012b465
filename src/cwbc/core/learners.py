"""Learners: an algorithm as a value that initializes a state, updates it on windows, and acts.

Sampling, the training loop, checkpoints, evaluation and reports depend on nothing else of an algorithm.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Protocol, Self

import jax
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.layers import Parameters
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window
    from cwbc.core.trajectories import Trajectories

Metrics = dict[str, jax.Array]  # by name, with "loss"; cloning adds those that `diagnostics` reads
# From the state to what steps carry, one step on a batch, and back to the state.
Update = tuple[Callable[[Any], Any], Callable[[Any, Any], tuple[Any, Metrics]], Callable[[Any], Any]]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Columns:
    """The arrays that a learner reads: a dataset's [step, ...], or those of windows [window, step, ...]."""

    observations: Any  # [..., dimension], or [..., frame, height, width, channel] of windows of images
    actions: Any  # [..., dimension] or [...]
    extra: dict[str, Any]  # [...] by name, such as returns_to_go or rewards


class Learner(Protocol):
    """An algorithm, as the rest of the package uses it: a frozen dataclass that inherits these members.

    Its state is any frozen dataclass that is registered as a pytree, with leaves [seed, ...] where seeds are
    stacked; its field `parameters` is what acts, and `optimizer` counts the steps.
    """

    @property
    def looks_back(self) -> bool:
        """Whether acting reads steps before the present one."""
        return False

    @property
    def is_conditioned(self) -> bool:
        """Whether it takes a target return."""
        return False

    @property
    def needs_target(self) -> bool:
        """Whether an episode cannot begin without a target return."""
        return self.is_conditioned

    @property
    def can_sample(self) -> bool:
        """Whether it samples discrete actions where a history has keys."""
        return False

    @property
    def is_fitted(self) -> bool:
        """Whether every value that depends on the data is filled in."""
        return True

    @property
    def period(self) -> int:
        """How many batches an update takes, each of which counts as a step."""
        return 1

    @property
    def form(self) -> Self:
        """The static part of a compiled program: the same for learners that differ in numbers only."""
        ...

    @property
    def numbers(self) -> Any:
        """All other numbers as a pytree of arrays, which programs take as arguments; after `fit`."""
        ...

    @property
    def reads(self) -> Hashable:
        """A value that is equal for learners with equal `step_columns`, which use one copy of a dataset."""
        ...

    def fit(self, data: Trajectories) -> Self:
        """The same with every value that depends on the data filled in."""
        ...

    def window(self, training: Training) -> int:
        """How many consecutive steps one sample has: K for cloning, 2 for a critic."""
        ...

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        """Columns of every step by name, beside observations and actions. [step]"""
        ...

    def episode_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        """Columns of every episode by name. [episode]"""
        return {}

    def selected(self, data: Trajectories) -> NDArray[np.bool_] | None:
        """Trajectories that it treats differently, sampled as a stratum; None for none. [episode]"""
        return None

    def standardized(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        """Returns-to-go in the unit of its columns, given those in the unit of the rewards."""
        return returns_to_go

    def open_target(self, horizon: int) -> float | None:
        """The target return of an episode that begins without one; None where one has to be given."""
        return None if self.needs_target else 0.0  # which nothing reads

    def limited(self, targets: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        """Target returns as episodes begin with them."""
        return targets

    def initialize(self, spec: PolicySpec, key: jax.Array) -> Any:
        """The state of one seed before the first step."""
        ...

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> Any:
        """A batch of one step, given its windows and random numbers."""
        ...

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        """The functions of one update; what steps carry may be more than the state."""
        ...

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        """The actions of several episodes at one step of their histories. [episode, ...]"""
        ...

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        """About how many floating-point operations an update takes, with so many parameters."""
        ...

    def activations(self, spec: PolicySpec, training: Training) -> int:
        """About how many numbers of a batch the gradient needs."""
        ...
