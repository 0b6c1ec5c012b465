"""How trained policies behave at every asked return: seeds x targets x episodes in one batch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc import fitting, simulators
from cwbc.design import Design
from cwbc.device import over_seeds
from cwbc.errors import InputError, require
from cwbc.policy import History, Policies, act
from cwbc.results import Sweep
from cwbc.sampling import normalized
from cwbc.spaces import Discrete


def evaluate(
    policies: Policies,
    environment: str,
    targets: Sequence[float],
    episodes: int = 10,
    seed: int = 0,
    progress: Callable[[int], None] | None = None,
) -> Sweep:
    """Ask every policy for every target return, `episodes` times each.

    Episode e of a policy begins in the same state for every target and method, so that they are compared on
    equal terms.

    Args:
        progress: told the number of timesteps done.
    """
    asked = np.unique(np.asarray(targets, np.float64))
    if not asked.size or not np.isfinite(asked).all():
        raise InputError(f"targets must be at least one finite number; got {list(targets)}")
    require(episodes >= 1, "episodes", episodes, "at least 1")
    require(seed >= 0, "seed", seed, "at least 0")
    shape = (len(policies.seeds), len(asked), episodes)
    simulator = simulators.make(environment, int(np.prod(shape)))
    try:
        size = (policies.design.observation_size, policies.design.actions.size)
        discrete = isinstance(policies.design.actions, Discrete)
        fitting.compare("the policy", *size, discrete, simulator, environment)
        begin_seeds = [
            _begin_seed(seed, s, e) for s in policies.seeds for _ in asked for e in range(episodes)
        ]
        remaining = np.broadcast_to(asked[:, None], shape).reshape(-1).copy()
        returns, lengths = _roll_out(policies, simulator, begin_seeds, remaining, progress)
    finally:
        simulator.close()
    return Sweep(
        method=policies.design.method.name,
        seeds=np.asarray(policies.seeds, np.int64),
        targets=asked,
        returns=returns.reshape(shape),
        lengths=lengths.reshape(shape),
    )


def _roll_out(
    policies: Policies,
    simulator: simulators.Simulator,
    begin_seeds: list[int],
    remaining: NDArray[np.float64],  # [row] what is still asked for
    progress: Callable[[int], None] | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rows, count = len(begin_seeds), len(policies.seeds)
    by_seed = (count, rows // count)
    step, history = _acting(policies.design, *by_seed)
    statistics = (policies.observation_mean, policies.observation_deviation)
    returns, lengths = np.zeros(rows), np.zeros(rows, np.int64)
    active = np.arange(rows)
    observations = np.asarray(simulator.reset(active, begin_seeds), np.float32)
    for timestep in range(simulator.horizon):
        history, actions = step(
            policies.parameters,
            history,
            np.int32(timestep),
            normalized(observations, *statistics).reshape(*by_seed, -1),
            remaining.astype(np.float32).reshape(by_seed),
        )
        chosen = np.asarray(actions).reshape(rows, *actions.shape[2:])
        if simulator.action_bounds is not None:
            chosen = chosen.clip(*simulator.action_bounds)
        outcome = simulator.step(active, chosen[active])
        returns[active] += outcome.rewards
        lengths[active] += 1
        remaining[active] -= outcome.rewards
        observations[active] = outcome.observations
        # Finished episodes leave the batch: they cost no more simulation.
        active = active[~(outcome.terminated | outcome.truncated)]
        if progress is not None:
            progress(timestep + 1)
        if not active.size:
            break
    return returns, lengths


@functools.lru_cache(maxsize=8)
def _program(design: Design) -> Callable[..., tuple[History, jax.Array]]:
    def step(parameters, history, timestep, observations, returns_to_go):  # type: ignore[no-untyped-def]
        return over_seeds(lambda p, h, o, g: act(design, p, h, timestep, o, g))(
            parameters, history, observations, returns_to_go
        )

    return jax.jit(step, donate_argnums=1)


def _acting(
    design: Design, seeds: int, rows: int
) -> tuple[Callable[..., tuple[History, jax.Array]], History]:
    empty = History.empty(design, rows)
    stacked = jax.tree.map(lambda x: jax.numpy.broadcast_to(x, (seeds, *x.shape)), empty)
    return _program(design), stacked


def _begin_seed(evaluation_seed: int, policy_seed: int, episode: int) -> int:
    entropy = np.random.SeedSequence([evaluation_seed, policy_seed, episode])
    return int(entropy.generate_state(1)[0])
