"""Seeds that achieve far less than the others, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from cwbc.core.tasks import task_for
from cwbc.results.seed_warnings import seed_warnings
from cwbc.results.sweeps import Sweep

SEEDS = (0, 1, 7)


def test_a_seed_that_achieves_far_less_than_the_others_is_named() -> None:
    targets, scores = np.array([1.0, 2.0, 3.0, 4.0]), np.full((3, 4), 80.0)
    scores[1, 3] = 10.0
    task = task_for(None, 0.0, 1000.0)
    (text,) = seed_warnings(sweep(targets, 10 * scores), task)
    assert text == "seed 1 is far below the others at target 4: it achieves 100, the median seed 800."
    (text,) = seed_warnings(sweep(np.array([np.nan]), 10 * scores[:, 3:]), task)
    assert text.startswith("seed 1 is far below the others: it")


@pytest.mark.parametrize("seen", [[80, 80, 65], [80, 50, 10], [80, 10]])
def test_seeds_that_differ_as_the_others_do_are_not(seen: list[float]) -> None:
    scores = np.repeat(np.array(seen)[:, None], 4, axis=1)
    assert seed_warnings(sweep(np.arange(4.0), scores), task_for(None, 0.0, 100.0)) == []


def sweep(targets: np.ndarray, returns: np.ndarray) -> Sweep:
    episodes = returns[:, :, None]
    return Sweep("any", np.array(SEEDS)[: len(returns)], targets, episodes, np.ones(episodes.shape, np.int64))
