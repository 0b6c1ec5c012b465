"""Any other Gymnasium environment, one copy per episode in a plain loop."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import mujoco
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.envs import describe
from cwbc.envs.observations import dtype, flatten, is_image, size
from cwbc.envs.physics import quiet_mujoco
from cwbc.envs.scenes import Scene
from cwbc.system.errors import InputError, UnavailableError, unknown

if TYPE_CHECKING:
    from cwbc.envs import Environment

_PICTURES = "rgb_array"  # the render mode of pictures


class Generic:
    """Copies of one Gymnasium environment with continuous or discrete actions; observations are flattened."""

    def __init__(self, environment: Environment, count: int, drawn: bool = False) -> None:
        first, name = _make(environment), describe(environment)
        options = _drawing(first, name) if drawn else {}
        if options and isinstance(environment, str):  # how it is drawn is decided when it is made
            first.close()
            first = _make(environment, **options)
        self.horizon = _horizon(name, first)
        observations, actions = first.observation_space, first.action_space
        try:
            self.observation_size, self._dtype = size(observations), dtype(observations)
        except InputError as error:
            raise InputError(f"{name} has observations of which {error}") from error
        # Nearly all are arrays, for which this is the fastest.
        plain = isinstance(observations, spaces.Box)
        self._flatten = np.ravel if plain else functools.partial(flatten, observations)
        is_image = observations.dtype == np.uint8 and len(observations.shape or ()) == 3
        self.image_shape: tuple[int, ...] | None = observations.shape if is_image else None
        if not isinstance(actions, spaces.Box | spaces.Discrete):
            raise InputError(f"{name} has actions in {actions}; only Box and Discrete are supported")
        self._actions, self.discrete = actions, isinstance(actions, spaces.Discrete)
        self.action_size = spaces.flatdim(actions)
        self.action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = None
        if isinstance(actions, spaces.Box):
            self.action_bounds = (actions.low.reshape(-1), actions.high.reshape(-1))
        self._name, self._seen = name, dict[int, Any]()  # the last image that an episode observed
        self._copies = [first, *(_make(environment, **options) for _ in range(count - 1))]
        self._is_ours = not isinstance(environment, gymnasium.Env)  # else the caller closes it
        if self._is_ours and len(set(map(id, self._copies))) < count:
            raise InputError(f"{name} returned one environment twice; give that environment itself instead")

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[np.floating[Any]]:
        """Reset the given episodes, each with its own seed; returns their first observations."""
        observations = np.empty((len(episodes), self.observation_size), self._dtype)
        with quiet_mujoco():
            for row, (episode, seed) in enumerate(zip(episodes, seeds, strict=True)):
                observation, _ = self._copies[episode].reset(seed=int(seed))
                self._seen[int(episode)] = observation
                observations[row] = self._flatten(observation)
        return observations

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        count = len(episodes)
        observations = np.empty((count, self.observation_size), self._dtype)
        rewards = np.empty(count)
        terminated, truncated = np.empty(count, np.bool_), np.empty(count, np.bool_)
        with quiet_mujoco():
            for row, (episode, action) in enumerate(zip(episodes, self._native(actions), strict=True)):
                outcome = self._copies[episode].step(action)
                observation, rewards[row], terminated[row], truncated[row], _ = outcome
                self._seen[int(episode)] = observation
                observations[row] = self._flatten(observation)
        return Transition(observations, rewards, terminated, truncated)

    def picture(self, episode: int) -> NDArray[np.uint8]:
        """The state of a robot, the environment's own picture, or what it observes. [height, width, 3]"""
        copy = self._copies[episode]
        if _has_model(copy):
            return self._scene.picture(copy.unwrapped.data.qpos)
        if copy.render_mode != _PICTURES:
            image = np.atleast_3d(self._seen[episode])
            image = image if image.shape[2] == 3 else image[..., -1:]  # of stacked frames the last
            return np.broadcast_to(image, (*image.shape[:2], 3))
        try:
            return np.array(copy.render(), np.uint8)
        except Exception as error:  # of any module: anything
            raise UnavailableError(f"{self._name} cannot be drawn: {error}") from error

    @functools.cached_property
    def _scene(self) -> Scene:
        return Scene(self._copies[0].unwrapped.model)

    def close(self) -> None:
        for copy in self._copies if self._is_ours else ():
            copy.close()

    def _native(self, actions: NDArray[Any]) -> list[int] | NDArray[Any]:
        """The actions in the environment's own space."""
        if isinstance(self._actions, spaces.Discrete):
            return (actions + int(self._actions.start)).tolist()
        return np.reshape(actions, (len(actions), *self._actions.shape)).astype(self._actions.dtype)


def _has_model(copy: Any) -> bool:
    """Whether an environment has MuJoCo's state, as Gymnasium's robots have."""
    return isinstance(getattr(copy.unwrapped, "model", None), mujoco.MjModel)


def _drawing(copy: Any, name: str) -> dict[str, str]:
    """The options with which an environment is made, so that there are pictures of it."""
    if _has_model(copy):
        return {}
    if _PICTURES in (copy.metadata.get("render_modes") or ()):
        return {"render_mode": _PICTURES}
    if is_image(copy.observation_space):
        return {}
    raise UnavailableError(
        f"{name} cannot be drawn: it is no robot of MuJoCo, "
        f"observes no images and has no render_mode {_PICTURES!r}"
    )


def _make(environment: Environment, **options: Any) -> Any:
    """One copy of an environment."""
    if isinstance(environment, gymnasium.Env):
        return environment
    # An id such as "module:Name-v0" registers itself when it is made; a name without its version would
    # silently select the newest one.
    if isinstance(environment, str) and ":" not in environment and environment not in gymnasium.registry:
        error = unknown("environment", environment, gymnasium.registry)
        raise UnavailableError(f"{error}; one of your own is module:ID, where the module registers it")
    if isinstance(environment, str) and (environment.count(":") > 1 or "" in environment.split(":")):
        raise UnavailableError(f"{environment!r} is no environment; one of your own is module:ID")
    try:
        with quiet_mujoco(), warnings.catch_warnings():
            # The data decides the version: that a newer one exists does not matter.
            warnings.simplefilter("ignore", DeprecationWarning)
            if isinstance(environment, str):
                return gymnasium.make(environment, disable_env_checker=True, **options)
            created: Any = environment()
    except Exception as error:  # of any module: anything
        why = str(error) or repr(error)
        raise UnavailableError(f"environment {describe(environment)!r} cannot be created: {why}") from error
    if not isinstance(created, gymnasium.Env):
        kind = type(created).__name__
        raise InputError(f"{describe(environment)} returned a {kind}; expected a gymnasium.Env")
    return created


def _horizon(name: str, copy: Any) -> int:
    steps = None if copy.spec is None else copy.spec.max_episode_steps
    if steps is None and copy.has_wrapper_attr("_max_episode_steps"):  # TimeLimit, without an id
        steps = copy.get_wrapper_attr("_max_episode_steps")
    if steps is None:
        raise UnavailableError(
            f"{name} sets no limit on the length of an episode; register it with max_episode_steps, as "
            "gymnasium.register and gymnasium.make accept it, or wrap it in gymnasium.wrappers.TimeLimit"
        )
    return int(steps)
