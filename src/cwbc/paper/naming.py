"""The paper's datasets by short names, and what they are called in the store."""

from __future__ import annotations

from typing import Literal

from cwbc.paper.published import QUALITIES, ROBOTS

Datasets = Literal["ours", "d4rl"]

WALKERS = ("walker2d-medium-replay", "walker2d-medium", "walker2d-medium-expert")  # the figures' order
REPLAYS = tuple(f"{robot}-medium-replay" for robot in ROBOTS)


def named(dataset: str, datasets: Datasets) -> str:
    """The name in the store of a dataset such as walker2d-medium."""
    robot, quality = dataset.split("-", 1)
    return f"cwbc/{robot}/{quality}-v0" if datasets == "ours" else f"d4rl/{robot}/{quality}-v2"


def quality(dataset: str) -> str | None:
    """medium, medium-replay or medium-expert; None for a dataset of another kind."""
    found = dataset.split("-", 1)[-1]
    return found if found in QUALITIES else None
