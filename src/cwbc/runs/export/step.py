"""One step of a policy as a graph: from observation, reward and state to the action and the next state."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.core.acting import History, act
from cwbc.core.layers import Parameters
from cwbc.core.policy_spec import PolicySpec
from cwbc.runs.export.graph import Graph, Node, Value
from cwbc.runs.export.jaxprs import traced

STATE = 2  # columns of the state before the history: the remaining return-to-go, the timestep


@dataclasses.dataclass(frozen=True)
class Step:
    """The graph of a step for any number of episodes, each of which has a row of the state."""

    nodes: list[Node]
    inputs: tuple[Value, Value, Value]  # observation, reward, state
    outputs: tuple[Value, Value]  # action, next state

    @classmethod
    def of(cls, spec: PolicySpec, parameters: Parameters) -> Step:
        """The step of a policy: its numbers become constants."""
        graph, space = Graph(), spec.observations
        history = _History(spec)
        observation = Value((-1, *space.shape), np.dtype(space.dtype))
        reward, state = (Value(shape, np.dtype(np.float64)) for shape in ((-1,), (-1, STATE + history.size)))

        def before(_: Any, observation: Any, reward: Any, state: Any) -> Any:
            timestep = state[1].astype(jnp.int32)
            learner = spec.method.learner
            limited = learner.limited(state[0], spec.horizon)
            remaining = jnp.where(timestep == 0, limited, spec.remaining_after(state[0], reward))
            standardized = learner.standardized(remaining, timestep, spec.horizon).astype(jnp.float32)
            received = space.received(observation)
            return remaining, timestep, received, standardized, *history.unpacked(state[STATE:])

        def within(
            parameters: Parameters, timestep: Any, received: Any, standardized: Any, *leaves: Any
        ) -> Any:
            past = history.of(leaves)
            now, actions = act(spec.form, parameters, past, timestep, received[None], standardized[None])
            return actions[0], *history.leaves(now)

        def after(_: Any, remaining: Any, timestep: Any, *leaves: Any) -> Any:
            row = (jnp.ravel(x).astype(remaining.dtype) for x in (remaining, timestep + 1, *leaves))
            return jnp.concatenate(list(row))

        with jax.enable_x64(True):  # the bookkeeping of cwbc.Policy, which is NumPy's
            remaining, timestep, *rest = traced(graph, before, (), [observation, reward, state])
        action, *leaves = traced(graph, within, parameters, [timestep, *rest])
        with jax.enable_x64(True):
            (following,) = traced(graph, after, (), [remaining, timestep, *leaves])
        outputs = action, following
        return cls(graph.needed(outputs), (observation, reward, state), outputs)


class _History:
    """How the history of one episode is stored in a row of numbers."""

    def __init__(self, spec: PolicySpec) -> None:
        # A memory of one step is overwritten before it is read; only frames reach back then.
        self._empty = jax.tree.map(np.asarray, History.empty(spec, 1))
        names = [field.name for field in dataclasses.fields(History)]
        self._names = [name for name in names if spec.memory > 1 or name == "frames"]
        self._names = [name for name in self._names if getattr(self._empty, name) is not None]
        self._like = [getattr(self._empty, name) for name in self._names]
        self.size = sum(each.size for each in self._like)

    def unpacked(self, row: Any) -> list[Any]:
        """The leaves that are stored."""
        leaves, first = [], 0
        for like in self._like:
            leaves.append(row[first : first + like.size].reshape(like.shape[1:]).astype(like.dtype))
            first += like.size
        return leaves

    def of(self, leaves: Any) -> History:
        """The history of one episode."""
        stored = {name: leaf[None] for name, leaf in zip(self._names, leaves, strict=True)}
        return dataclasses.replace(jax.tree.map(jnp.asarray, self._empty), **stored)

    def leaves(self, history: History) -> list[Any]:
        """What is to be stored of a history."""
        return [getattr(history, name)[0] for name in self._names]
