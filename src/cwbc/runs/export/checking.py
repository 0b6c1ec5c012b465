"""Whether an exported policy acts as it does here, in episodes of random observations and rewards."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from numpy.typing import NDArray

from cwbc.core.device import on_cpu
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Continuous
from cwbc.system.errors import DifferenceError

if TYPE_CHECKING:
    from cwbc.runs.policies import Policy

# From observations, rewards and state of several episodes to their actions and the next state.
Stepper = Callable[[Any, Any, NDArray[np.float64]], tuple[NDArray[Any], NDArray[np.float64]]]

TOLERANCE = 1e-4  # of the range of actions
_EPISODES, _MOST_STEPS = 3, 64
_NEIGHBOURS, _NEAR = 8, 1e-6  # policies beside one, whose parameters differ by this fraction


def largest_difference(
    policy: Policy, steppers: Mapping[str, Stepper], state_size: int, target: float | None
) -> float:
    """The largest difference of actions in units of their range; more than the tolerance is an error."""
    policy, random = copy.copy(policy), np.random.default_rng(0)
    targets, reward_size = _targets(policy, target)
    policy.begin(targets)
    first = np.zeros((_EPISODES, state_size))
    first[:, 0] = targets
    states, same = dict.fromkeys(steppers, first), {name: np.ones(_EPISODES, bool) for name in steppers}
    worst = 0.0
    for timestep in range(min(policy.spec.memory + 4, _MOST_STEPS, policy.spec.horizon)):
        observations = _observations(policy.spec, random)
        rewards = reward_size * random.normal(size=_EPISODES)
        given, before = (rewards if timestep else None), copy.copy(policy)
        with _precisely():
            expected = policy.act(observations, given)
        for name, step in steppers.items():
            actions, states[name] = step(observations, rewards, states[name])
            differences = _differences(policy.spec, actions, expected)
            wrong = same[name] & ~(differences <= TOLERANCE)
            if wrong.any():
                for neighbour in _neighbours(before, random):
                    with _precisely():
                        beside = neighbour.act(observations, given)
                    near = _differences(policy.spec, actions, beside)
                    # A tie, such as of two candidates of +q: an action within rounding, and another episode.
                    same[name] &= ~(wrong & (near <= TOLERANCE))
                if (wrong & same[name]).any():
                    worst = float(np.max(differences[wrong & same[name]]))
                    raise DifferenceError(
                        f"nothing was written: in {name}, actions differ by {worst:.2g} of their range "
                        f"at step {timestep}, more than {TOLERANCE:g}; please report this"
                    )
            worst = max(worst, float(np.max(differences, where=same[name], initial=0.0)))
    return worst


def _precisely() -> contextlib.AbstractContextManager[Any]:
    """Products in float32 on a GPU, too, which would round their factors."""
    return contextlib.nullcontext() if on_cpu() else jax.default_matmul_precision("highest")


def _targets(policy: Policy, target: float | None) -> tuple[NDArray[np.float64], float]:
    """Target returns to begin with, and the size of rewards."""
    lowest, best = (float(policy.about.get(name) or 0.0) for name in ("lowest_return", "best_return"))
    first = best if target is None else target
    size = (best - lowest) or abs(first) or 1.0
    return np.array([first, best, (lowest + best) / 2]), size / policy.spec.horizon


def _observations(spec: PolicySpec, random: np.random.Generator) -> NDArray[np.float32]:
    """Random observations that look like those of the dataset, as far as the policy knows."""
    space = spec.observations
    shape = (_EPISODES, *space.shape)
    if space.dtype == np.uint8:
        return random.integers(0, 256, shape).astype(np.float32)
    mean, std = space.arrays or (0.0, 1.0)
    found = (mean + std * random.normal(size=shape)).astype(np.float32)
    return np.where(space.is_valid(found), found, np.float32(0))


def _differences(
    spec: PolicySpec, actions: NDArray[Any], expected: NDArray[Any]
) -> NDArray[np.float64]:  # [episode]
    size: Any = 1.0
    if isinstance(spec.actions, Continuous):
        size = np.subtract(spec.actions.highest, spec.actions.lowest)
    relative = np.abs(actions.astype(np.float64) - expected) / size
    return relative.reshape(_EPISODES, -1).max(axis=1)


def _neighbours(policy: Policy, random: np.random.Generator) -> Iterator[Policy]:
    """Policies whose parameters differ by rounding."""
    for _ in range(_NEIGHBOURS):
        neighbour = copy.copy(policy)
        neighbour.parameters = jax.tree.map(
            lambda x: x * (1 + _NEAR * random.normal(size=x.shape)).astype(x.dtype), policy.parameters
        )
        yield neighbour
