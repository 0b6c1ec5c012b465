"""What the training of behaviour policies needs of an algorithm; SAC and PQN are the two."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Protocol, Self

import jax
import jax.numpy as jnp

from cwbc.behaviours.collector import Collector
from cwbc.behaviours.policies import LearnedActor
from cwbc.core.simulation import Simulator


class OnlineLearner(Protocol):
    """The hyper-parameters of an algorithm: a frozen dataclass. Arrays of a state begin with [seed]."""

    depends_on_steps: ClassVar[tuple[str, ...]]  # fields whose defaults depend on --steps

    @classmethod
    def sized(cls, simulator: Simulator, steps: int, options: Mapping[str, Any]) -> Self:
        """The learner of an environment for a training of so many steps; options replace its defaults."""
        ...

    @property
    def copies(self) -> int:
        """Copies of the environment that each seed steps together."""
        ...

    @property
    def stack(self) -> int:
        """How many frames of images the policy reads."""
        ...

    @property
    def keeps_replay(self) -> bool:
        """Whether it learns from a replay, which is removed at the end of a training."""
        ...

    def check(self, environment: str, simulator: Simulator) -> None:
        """Refuse an environment that it cannot learn."""
        ...

    def is_due(self, before: int, step: int) -> bool:
        """Whether a snapshot is taken after a step, where the last chance was after another."""
        ...

    def initialize(self, simulator: Simulator, keys: jax.Array, steps: int) -> tuple[Any, Any]:
        """The state, with a field `parameters`, and the replays, [seed, step, ...], before the first step."""
        ...

    def states(
        self, collector: Collector, keys: jax.Array, state: Any, replay: Any, first: int, steps: int
    ) -> Iterator[tuple[int, Any, Any]]:
        """The steps done, the state and the replays, again and again; the next one uses these up."""
        ...

    def actors(self, simulator: Simulator, state: Any, step: int) -> list[LearnedActor]:
        """The policy of each seed after a step."""
        ...


def keys_of(seeds: tuple[int, ...]) -> jax.Array:
    """A random key for each seed."""
    return jax.vmap(jax.random.key)(jnp.asarray(seeds, jnp.uint32))
