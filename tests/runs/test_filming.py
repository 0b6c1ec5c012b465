"""Films of episodes: which of their steps are kept, and what was achieved at each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from toys import ENVIRONMENT

from cwbc.core.simulation import Transition
from cwbc.envs.gymnasium_copies import Generic
from cwbc.runs import filming
from cwbc.runs.filming import Film


class Counting(Generic):
    """Episodes of given lengths, with a reward of 1 at each step; a picture is the number of the step."""

    def __init__(self, *lengths: int) -> None:
        super().__init__(ENVIRONMENT, 1)
        self._lengths = np.array(lengths)

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[Any]:
        self._steps = np.zeros(len(self._lengths), np.int64)
        return np.zeros((len(episodes), 2))

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        self._steps[episodes] += 1
        ended = self._steps[episodes] == self._lengths[episodes]
        ones = np.ones(len(episodes))
        return Transition(np.zeros((len(episodes), 2)), ones, ended, np.zeros_like(ended))

    def picture(self, episode: int) -> NDArray[np.uint8]:
        return np.full((2, 4, 3), self._steps[episode], np.uint8)


def filmed(*lengths: int) -> Film:
    """A film of these episodes to their ends."""
    film, rows = Film(Counting(*lengths)), np.arange(len(lengths))
    film.reset(rows, [0] * len(rows))
    while rows.size:
        outcome = film.step(rows, np.zeros((len(rows), 1)))
        rows = rows[~outcome.terminated]
    return film


def steps_of(film: Film, episode: int) -> list[int]:
    """The steps in the pictures of an episode."""
    return [int(frame[episode].picture[0, 0, 0]) for frame in film.frames]


def test_short_episodes_are_kept_whole_and_stay_when_they_have_ended() -> None:
    film = filmed(3, 5)
    assert steps_of(film, 0) == [0, 1, 2, 3, 3, 3]
    assert steps_of(film, 1) == [0, 1, 2, 3, 4, 5]
    first, second = zip(*film.frames, strict=True)
    assert [shot.achieved for shot in first] == [0, 1, 2, 3, 3, 3]
    assert [shot.has_ended for shot in first] == [False] * 3 + [True] * 3
    assert [shot.has_ended for shot in second] == [False] * 5 + [True]
    assert first[0].picture.shape == (2, 4, 3)


def test_of_long_episodes_steps_are_left_out_evenly_but_not_their_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filming, "FRAMES", 4)
    film = filmed(6, 21)
    assert film.stride == 4
    assert steps_of(film, 1) == [0, 4, 8, 12, 16, 20, 21]
    assert steps_of(film, 0) == [0, 4, 6, 6, 6, 6, 6]
    assert [frame[0].achieved for frame in film.frames] == [0, 4, 6, 6, 6, 6, 6]
    assert len(filmed(7).frames) == 8 > len(filmed(8).frames)
