"""The interface of simulators; the environments themselves are in `cwbc.envs`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

_OFFLINE = "offline"


def offline(environment: str | None) -> str:
    """The name, as an environment, of a model that is learned from data of an environment."""
    return _OFFLINE if environment is None else f"{_OFFLINE}/{environment}"


def is_offline(environment: str | None) -> bool:
    """Whether returns are estimates with a learned model, rather than simulated ones."""
    return environment is not None and environment.split("/")[0] == _OFFLINE


@dataclasses.dataclass(frozen=True)
class Transition:
    """One step of several episodes."""

    observations: NDArray[Any]  # [episode, ...]
    rewards: NDArray[np.float64]  # [episode]
    terminated: NDArray[np.bool_]  # [episode]
    truncated: NDArray[np.bool_]  # [episode]
    life_lost: NDArray[np.bool_] | None = None  # [episode] of a game with lives


class Simulator(Protocol):
    """Many copies of one environment; `episodes` are sorted row numbers, so finished ones cost nothing."""

    observation_size: int  # numbers of an observation; images may be flat
    image_shape: tuple[int, ...] | None  # [height, width, channel] of images of bytes; None of vectors
    action_size: int  # dimensions of a continuous action, or the number of discrete ones
    discrete: bool
    action_bounds: tuple[NDArray[Any], NDArray[Any]] | None  # min and max; None when discrete
    horizon: int  # H, the longest an episode can be

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        """Start the given episodes, each from its own seed; their first observations."""
        ...

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step."""
        ...

    def close(self) -> None: ...


class Drawable(Simulator, Protocol):
    """A simulator whose episodes can be seen."""

    def picture(self, episode: int) -> NDArray[np.uint8]:
        """How an episode looks now. [height, width, (red, green, blue)]"""
        ...
