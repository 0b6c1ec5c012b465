"""Many copies of one environment behind one interface: batched MuJoCo where there is one, else Gymnasium."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_MAZES = "cwbc.simulators.mazes"  # registers "d4rl/..." with Gymnasium when it is imported


@dataclasses.dataclass(frozen=True)
class Transition:
    """What one step gave, for the episodes that were stepped."""

    observations: NDArray[np.floating[Any]]  # [episode, dimension]
    rewards: NDArray[np.float64]  # [episode]
    terminated: NDArray[np.bool_]  # [episode]
    truncated: NDArray[np.bool_]  # [episode]


class Simulator(Protocol):
    """Many copies of one environment; `episodes` are sorted row numbers, so finished ones cost nothing."""

    observation_size: int
    action_size: int  # dimensions of a continuous action, or the number of discrete ones
    discrete: bool
    action_bounds: tuple[NDArray[Any], NDArray[Any]] | None  # lowest and highest; None when discrete
    horizon: int  # H, the longest an episode can be

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[np.floating[Any]]:
        """Begin the given episodes anew, each from its own seed; their first observations."""
        ...

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        ...

    def close(self) -> None: ...


def make(environment: str, count: int, threads: int = 0) -> Simulator:
    """As many copies of a Gymnasium environment as episodes are wanted.

    Args:
        threads: threads for the physics of the batched robots; 0 takes every core.
    """
    # Imported here so that the interface alone needs neither MuJoCo nor Gymnasium.
    from cwbc.simulators import locomotion

    robot = locomotion.ROBOTS.get(environment)
    if robot is not None:
        return locomotion.Locomotion(robot, count, threads)
    importlib.import_module(_MAZES)  # always, so that a name that is not known can be compared with theirs
    from cwbc.simulators import generic

    return generic.Generic(environment, count)


def is_batched(environment: str) -> bool:
    """Whether many copies of an environment cost less than as many single ones."""
    from cwbc.simulators import locomotion

    return environment in locomotion.ROBOTS


def time_limit(environment: str) -> int | None:
    """The longest that an episode of a registered environment can be, or None where that is not known."""
    import gymnasium

    module, _, name = environment.rpartition(":")
    if name.startswith("d4rl/"):
        module = _MAZES
    try:
        if module:  # "module:Name-v0" registers itself when the module is imported
            importlib.import_module(module)
    except Exception:  # a module of the user's, or none: making the environment tells what is wrong with it
        return None
    spec = gymnasium.registry.get(name)
    return None if spec is None else spec.max_episode_steps
