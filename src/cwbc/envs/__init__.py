"""Many copies of one environment behind one interface: batched MuJoCo where available, else Gymnasium."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeGuard

from cwbc.system.errors import UnavailableError, need_extra

if TYPE_CHECKING:
    import gymnasium

    from cwbc.core.simulation import Drawable

    # A Gymnasium id; an environment, in which episodes run one after another; or a function that creates one.
    Environment = str | gymnasium.Env[Any, Any] | Callable[[], gymnasium.Env[Any, Any]]

_ATARI = "ALE/"
OWN = ("d4rl/", "cwbc/")  # environments that `registry` registers with Gymnasium when it is imported
_allowed: set[str] = set()  # modules that were named by the user, not by a file


def allow(environment: str | None) -> None:
    """Record that the user, not a file, named an environment: its module may be imported."""
    if environment is not None and ":" in environment:
        _allowed.add(environment.partition(":")[0])


def _may_import(environment: str) -> bool:
    """Whether making an environment imports no module that only a file has named."""
    module, colon, _ = environment.partition(":")
    return not colon or module in _allowed or module in sys.modules


def make(environment: Environment, count: int, drawn: bool = False) -> Drawable:
    """Copies of a Gymnasium environment, one per episode.

    Args:
        drawn: whether pictures of them are wanted; without it, not every simulator has any.
    """
    need_simulators()
    from cwbc.envs import locomotion

    if isinstance(environment, str):
        if not _may_import(environment):
            raise UnavailableError(
                f"{environment!r} was named by a file, which must not choose what is imported; if you trust "
                f"that module, give --env {shlex.quote(environment)} (in Python, environment={environment!r} "
                "or import it before)"
            )
        if robot := locomotion.ROBOTS.get(environment):
            return locomotion.Locomotion(robot, count)
        if environment.startswith(_ATARI):
            from cwbc.envs import atari

            return atari.Atari(environment, count, drawn)
    # Always, so that an unknown name is compared with theirs.
    from cwbc.envs import gymnasium_copies, registry

    if isinstance(environment, str) and environment in registry.ENVIRONMENTS:
        return registry.ENVIRONMENTS[environment].make(count)
    return gymnasium_copies.Generic(environment, count, drawn)


def need_simulators() -> None:
    """Raise an error that names the extra, unless Gymnasium and MuJoCo are installed."""
    for module in ("gymnasium", "mujoco"):  # imported where needed: the interface alone needs neither
        need_extra(module, "mujoco", "environments")


def is_batched(environment: Environment) -> bool:
    """Whether many copies of an environment are simulated together."""
    need_simulators()
    from cwbc.envs import locomotion

    return isinstance(environment, str) and (
        environment in locomotion.ROBOTS or environment.startswith((_ATARI, *OWN))
    )


def is_independent(environment: Environment) -> bool:
    """Whether several threads may step copies of an environment at a time."""
    return isinstance(environment, str) and environment.startswith(_ATARI)


def is_maze(environment: Environment) -> bool:
    """Whether it is a maze of the package, whose observations begin with x and y."""
    if not isinstance(environment, str) or not environment.startswith(OWN):
        return False
    from cwbc.envs.mazes import MAZES

    return environment in MAZES


def takes_turns(environment: Environment) -> TypeGuard[gymnasium.Env[Any, Any]]:
    """Whether there is only one copy of an environment, in which episodes run one after another."""
    imported = sys.modules.get("gymnasium")  # by whoever created an environment
    return imported is not None and isinstance(environment, imported.Env)


def name_of(environment: Environment) -> str | None:
    """The Gymnasium id of an environment; None for one that was created without an id."""
    if isinstance(environment, str):
        return environment
    spec = getattr(environment, "spec", None)
    return None if spec is None else str(spec.id)


def describe(environment: Environment) -> str:
    """The name of an environment in messages."""
    what = type(environment.unwrapped) if takes_turns(environment) else environment
    return name_of(environment) or str(getattr(what, "__name__", what))


def time_limit(environment: str) -> int | None:
    """The time limit of a registered environment, or None where it is not known."""
    try:
        need_simulators()
    except UnavailableError:
        return None
    import gymnasium

    if environment.startswith(_ATARI):
        from cwbc.envs import atari

        return atari.Game.of(environment).horizon
    if not _may_import(environment):
        return None
    module, _, name = environment.rpartition(":")
    if name.startswith(OWN):
        module = "cwbc.envs.registry"
    try:
        if module:  # "module:Name-v0" registers itself when the module is imported
            importlib.import_module(module)
    except Exception:  # of the user's module: making the environment reports it
        return None
    spec = gymnasium.registry.get(name)
    return None if spec is None else spec.max_episode_steps
