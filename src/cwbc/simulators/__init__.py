"""Many copies of one environment behind one interface: batched MuJoCo where there is one, else Gymnasium."""

from __future__ import annotations

import dataclasses
import importlib
import shlex
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

from cwbc.errors import UnavailableError

if TYPE_CHECKING:
    import gymnasium

    # A Gymnasium id; an environment, in which episodes take turns; or a function that makes a new one.
    Environment = str | gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]

_MAZES = "cwbc.simulators.mazes"  # registers "d4rl/..." with Gymnasium when it is imported
_allowed: set[str] = set()  # modules that were named by a person, not by a file


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


def allow(environment: str | None) -> None:
    """Note that a person, not a file, named an environment: its module may be imported."""
    if environment is not None and ":" in environment:
        _allowed.add(environment.partition(":")[0])


def _may_import(environment: str) -> bool:
    """Whether making an environment imports nothing that only a file has named."""
    module, colon, _ = environment.partition(":")
    return not colon or module in _allowed or module in sys.modules


def make(environment: Environment, count: int, threads: int = 0) -> Simulator:
    """As many copies of a Gymnasium environment as episodes are wanted.

    Args:
        threads: threads for the physics of the batched robots; 0 takes every core.
    """
    # Imported here so that the interface alone needs neither MuJoCo nor Gymnasium.
    from cwbc.simulators import locomotion

    if isinstance(environment, str):
        if not _may_import(environment):
            raise UnavailableError(
                f"{environment!r} was named by a file, which does not choose what is imported; if you trust "
                f"that module, give --env {shlex.quote(environment)} (in Python, environment={environment!r} "
                "or import it before)"
            )
        robot = locomotion.ROBOTS.get(environment)
        if robot is not None:
            return locomotion.Locomotion(robot, count, threads)
    importlib.import_module(_MAZES)  # always, so that a name that is not known can be compared with theirs
    from cwbc.simulators import generic

    return generic.Generic(environment, count)


def is_batched(environment: Environment) -> bool:
    """Whether many copies of an environment cost less than as many single ones."""
    from cwbc.simulators import locomotion

    return isinstance(environment, str) and environment in locomotion.ROBOTS


def takes_turns(environment: Environment) -> TypeGuard[gymnasium.Env[Any, Any]]:
    """Whether there is one copy of an environment alone, in which episodes run one after another."""
    import gymnasium

    return isinstance(environment, gymnasium.Env)


def name_of(environment: Environment) -> str | None:
    """The Gymnasium id of an environment; None for one that was not made by an id."""
    if isinstance(environment, str):
        return environment
    spec = getattr(environment, "spec", None)
    return None if spec is None else str(spec.id)


def describe(environment: Environment) -> str:
    """What messages call an environment."""
    what = type(environment.unwrapped) if takes_turns(environment) else environment
    return name_of(environment) or str(getattr(what, "__name__", what))


def time_limit(environment: str) -> int | None:
    """The longest that an episode of a registered environment can be, or None where that is not known."""
    import gymnasium

    if not _may_import(environment):
        return None
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
