"""A walk whose dynamics are known: an action moves the observation, the reward favours small actions."""

from __future__ import annotations

import numpy as np

from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

STEPS, EDGE = 6, 1.1  # of an episode; where it terminates


def drifting_data(episodes: int = 200) -> Trajectories:
    """Episodes of random actions: o' = o + a / 2, r = 1 - a^2, terminated beyond the edge."""
    random = np.random.default_rng(0)
    rows = []
    for _ in range(episodes):
        place = random.uniform(-1, 1)
        for step in range(STEPS):
            action = random.uniform(-1, 1)
            after = place + action / 2
            over, last = abs(after) > EDGE, step == STEPS - 1
            rows.append((place, action, 1 - action**2, over, last and not over))
            place = after
            if over:
                break
    places, actions, rewards, terminated, truncated = map(np.array, zip(*rows, strict=True))
    return from_arrays(
        "drifting", places[:, None], actions[:, None], rewards, terminated, truncated, time_limit=STEPS
    )
