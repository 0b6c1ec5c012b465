"""How trained policies behave at every asked return: seeds x targets x episodes in one batch."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc import fitting, memory, simulators
from cwbc.design import Design
from cwbc.device import on_cpu, over_seeds
from cwbc.errors import InputError, require
from cwbc.layers import Parameters
from cwbc.policy import History, Policies, act
from cwbc.results import Sweep
from cwbc.sampling import normalized
from cwbc.spaces import Discrete

_BLOCK = 640  # remembered steps that a CPU works on at a time: more would not stay in its cache


def evaluate(
    policies: Policies,
    environment: simulators.Environment,
    targets: Sequence[float],
    episodes: int = 10,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Condition every policy on every target return, `episodes` times each.

    A method that takes no target is evaluated once, whatever the targets. Episode e of a policy begins in the
    same state for every target and method, so that they are compared on equal terms.

    Args:
        progress: told the number of timesteps done; where episodes take turns, as a fraction of all of them.
    """
    try:
        asked = np.unique(np.array([float(target) for target in targets]))
    except (TypeError, ValueError):
        asked = np.array([])
    if not asked.size or not np.isfinite(asked).all():
        raise InputError(f"targets must be at least one finite number; got {targets!r}")
    takes_target = policies.design.method.condition is not None
    asked = asked if takes_target else np.zeros(1)  # it is not given to the policy
    require(episodes >= 1, "episodes", episodes, "at least 1")
    require(seed >= 0, "seed", seed, "at least 0")
    shape = (len(policies.seeds), len(asked), episodes)
    memory.check_evaluation(policies.design, *shape)
    simulator = simulators.make(environment, int(np.prod(shape)))
    try:
        size = (policies.design.observation_size, policies.design.actions.size)
        discrete = isinstance(policies.design.actions, Discrete)
        fitting.compare("the policy", *size, discrete, simulator, simulators.describe(environment))
        begin_seeds = [
            _begin_seed(seed, s, e) for s in policies.seeds for _ in asked for e in range(episodes)
        ]
        wanted = np.broadcast_to(asked[:, None], shape).reshape(-1)
        if simulators.takes_turns(environment):
            rows = _in_turn(policies, wanted, begin_seeds, simulator, progress)
        else:
            observations = simulator.reset(np.arange(len(begin_seeds)), begin_seeds)
            rows = _Rows.begin(observations, wanted)
            _roll_out(_split(policies, rows, environment), rows, simulator, progress)
    finally:
        simulator.close()
    sweep = Sweep(
        method=policies.design.method.name,
        seeds=np.asarray(policies.seeds, np.int64),
        targets=asked,
        returns=rows.returns.reshape(shape),
        lengths=rows.lengths.reshape(shape),
    )
    return sweep if takes_target else sweep.once()


@dataclasses.dataclass(frozen=True)
class _Rows:
    """Where every episode is; the arrays change as it goes on."""

    observations: NDArray[np.float32]  # [row, dimension] the latest
    remaining: NDArray[np.float64]  # [row] what is still asked for
    returns: NDArray[np.float64]  # [row]
    lengths: NDArray[np.int64]  # [row]
    running: NDArray[np.bool_]  # [row]

    @classmethod
    def begin(cls, observations: NDArray[Any], targets: NDArray[np.float64]) -> _Rows:
        count = len(targets)
        empty = (np.zeros(count), np.zeros(count, np.int64), np.ones(count, np.bool_))
        return cls(observations.astype(np.float32), targets.copy(), *empty)

    def record(self, rows: NDArray[np.int64], outcome: simulators.Transition) -> None:
        """Note what a step led to."""
        self.observations[rows] = outcome.observations
        self.remaining[rows] -= outcome.rewards
        self.returns[rows] += outcome.rewards
        self.lengths[rows] += 1
        self.running[rows] = ~(outcome.terminated | outcome.truncated)


class _Part:
    """Rows that the policies answer together, as many of every seed."""

    def __init__(self, policies: Policies, rows: _Rows, own: NDArray[np.int64]) -> None:
        self._policies, self._rows = policies, rows
        self._own = own  # [seed, row of the seed]
        self.timestep = 0
        self._answer = _program(policies.design.form)
        empty = History.empty(policies.design, own.shape[1])
        self._history = jax.tree.map(lambda x: jnp.broadcast_to(x, (len(own), *x.shape)), empty)

    def act(self) -> tuple[NDArray[np.int64], NDArray[Any]]:
        """The rows that are still running, and the actions that the policies choose for them."""
        policies, rows, own = self._policies, self._rows, self._own
        running = rows.running[own]
        self._history, actions = self._answer(
            policies.parameters,
            self._history,
            np.int32(self.timestep),
            normalized(rows.observations[own], policies.observation_mean, policies.observation_deviation),
            policies.design.standardized(rows.remaining[own], self.timestep),
            running,
        )
        self.timestep += 1
        return own[running], np.asarray(actions)[running]


def _in_turn(
    policies: Policies,
    targets: NDArray[np.float64],  # [row]
    begin_seeds: Sequence[int],
    simulator: simulators.Simulator,
    progress: Callable[[int], None] | None,
) -> _Rows:
    """Run one episode after another, as the only copy of an environment has to."""
    count = len(targets)
    rows = _Rows.begin(np.zeros((count, simulator.observation_size)), targets)
    for row in range(count):
        own, seed = np.array([row]), row * len(policies.seeds) // count
        alone = dataclasses.replace(
            policies,
            parameters=jax.tree.map(lambda x, seed=seed: x[seed : seed + 1], policies.parameters),
            seeds=policies.seeds[seed : seed + 1],
        )
        rows.observations[own] = simulator.reset(own, begin_seeds[row : row + 1])

        def tell(timestep: int, row: int = row) -> None:
            if progress is not None:
                progress((row * simulator.horizon + timestep) // count)

        _roll_out([_Part(alone, rows, own[None])], rows, simulator, tell)
    return rows


def _split(policies: Policies, rows: _Rows, environment: simulators.Environment) -> list[_Part]:
    """All rows in one part; or in two, of which one is simulated while a GPU answers the other."""
    own = np.arange(len(rows.running)).reshape(len(policies.seeds), -1)
    overlapping = not on_cpu() and simulators.is_batched(environment)
    count = min(2, own.shape[1]) if overlapping else 1
    return [_Part(policies, rows, own[:, first::count]) for first in range(count)]


def _roll_out(
    parts: Sequence[_Part],
    rows: _Rows,
    simulator: simulators.Simulator,
    progress: Callable[[int], None] | None,
) -> None:
    """Play all episodes to their ends, the parts in turn."""
    with ThreadPoolExecutor(1) as physics:

        def begin(part: _Part) -> tuple[_Part, NDArray[np.int64], Callable[[], simulators.Transition]]:
            own, actions = part.act()
            if simulator.action_bounds is not None:
                actions = actions.clip(*simulator.action_bounds)
            if len(parts) == 1:  # some environments can only be stepped by the thread that made them
                return part, own, functools.partial(simulator.step, own, actions)
            return part, own, physics.submit(simulator.step, own, actions).result

        under_way = collections.deque(begin(part) for part in parts)
        while under_way:
            part, own, outcome = under_way.popleft()
            rows.record(own, outcome())
            if progress is not None:
                progress(part.timestep)
            # Finished episodes leave the batch: they cost no more simulation.
            if rows.running[own].any() and part.timestep < simulator.horizon:
                under_way.append(begin(part))


@functools.lru_cache(maxsize=8)
def _program(design: Design) -> Callable[..., tuple[History, jax.Array]]:
    def step(parameters, history, timestep, observations, returns_to_go, running):  # type: ignore[no-untyped-def]
        def one_seed(parameters: Parameters, running: jax.Array, *rows: Any) -> tuple[History, jax.Array]:
            def answer(history: History, *now: jax.Array) -> tuple[History, jax.Array]:
                return act(design, parameters, history, timestep, *now)

            return _in_blocks(design, answer, running, rows)

        return over_seeds(one_seed)(parameters, running, history, observations, returns_to_go)

    return jax.jit(step, donate_argnums=1)


def _in_blocks(
    design: Design,
    answer: Callable[..., tuple[History, jax.Array]],
    running: jax.Array,  # [row]
    rows: tuple[Any, ...],  # [row, ...]
) -> tuple[History, jax.Array]:
    """On a CPU, answer some rows at a time, and no block whose episodes are all over; else all at once."""
    count = len(running)
    least = min(count, math.ceil(_BLOCK / design.memory))
    size = next(size for size in range(least, count + 1) if count % size == 0)
    if size == count or not on_cpu():
        return answer(*rows)

    def skip(history: History, *_: jax.Array) -> tuple[History, jax.Array]:
        return history, design.actions.choose(jnp.zeros((size, design.actions.size)))

    blocks = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), (running, rows))
    answers = jax.lax.map(lambda block: jax.lax.cond(block[0].any(), answer, skip, *block[1]), blocks)
    return jax.tree.map(lambda x: x.reshape(count, *x.shape[2:]), answers)


def _begin_seed(evaluation_seed: int, policy_seed: int, episode: int) -> int:
    entropy = np.random.SeedSequence([evaluation_seed, policy_seed, episode])
    return int(entropy.generate_state(1)[0])
