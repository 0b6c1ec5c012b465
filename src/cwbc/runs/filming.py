"""How episodes look while they are evaluated: a film is a simulator that keeps pictures."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Drawable, Transition

FRAMES = 300  # of a long episode at least, and at most twice as many: others are left out evenly


class Shot(NamedTuple):
    """An episode at one of its steps."""

    compressed: bytes  # minutes of large pictures would else fill the memory
    shape: tuple[int, ...]
    achieved: float  # the return so far
    has_ended: bool

    @property
    def picture(self) -> NDArray[np.uint8]:
        """[height, width, 3]"""
        return np.frombuffer(zlib.decompress(self.compressed), np.uint8).reshape(self.shape)


class Film:
    """A simulator that keeps its pictures; all its episodes begin together."""

    def __init__(self, simulator: Drawable) -> None:
        self.observation_size, self.image_shape = simulator.observation_size, simulator.image_shape
        self.action_size, self.discrete = simulator.action_size, simulator.discrete
        self.action_bounds, self.horizon = simulator.action_bounds, simulator.horizon
        self.stride = 1  # steps between frames
        self._simulator, self._elapsed = simulator, 0
        self._now: list[Shot] = []  # [episode]
        self._frames: list[tuple[Shot, ...]] = []

    @property
    def frames(self) -> list[tuple[Shot, ...]]:
        """The episodes side by side, from their first states to the end of the last one."""
        last = tuple(self._now)
        return self._frames if self._frames[-1] == last else [*self._frames, last]

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        """Start the given episodes, which are all of them."""
        observations = self._simulator.reset(episodes, seeds)
        self._now = [self._shot(episode, 0.0, False) for episode in episodes.tolist()]
        self._frames, self._elapsed, self.stride = [tuple(self._now)], 0, 1
        return observations

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step; those that have ended stay in the picture."""
        outcome = self._simulator.step(episodes, actions)
        self._elapsed += 1
        is_frame = self._elapsed % self.stride == 0
        ended = outcome.terminated | outcome.truncated
        for place, episode in enumerate(episodes.tolist()):
            achieved = self._now[episode].achieved + float(outcome.rewards[place])
            if is_frame or ended[place]:
                self._now[episode] = self._shot(episode, achieved, bool(ended[place]))
            else:
                self._now[episode] = self._now[episode]._replace(achieved=achieved)
        if is_frame:
            self._frames.append(tuple(self._now))
        if len(self._frames) > 2 * FRAMES:
            self._frames, self.stride = self._frames[::2], 2 * self.stride
        return outcome

    def close(self) -> None:
        self._simulator.close()

    def _shot(self, episode: int, achieved: float, has_ended: bool) -> Shot:
        picture = self._simulator.picture(episode)
        return Shot(zlib.compress(picture.tobytes(), 1), picture.shape, achieved, has_ended)
