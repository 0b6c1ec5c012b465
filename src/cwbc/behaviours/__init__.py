"""Behaviour policies: trained online with SAC or PQN, stored as snapshots that generate datasets."""

from pathlib import Path

TASKS = ("hopper", "walker2d", "halfcheetah")  # the robots whose snapshots come with the package
QUALITIES = ("random", "medium", "medium-replay", "medium-expert", "expert")  # of their datasets
GAMES = ("breakout", "qbert", "pong", "seaquest")  # of the paper
REPLAY = "replay"  # the quality of their datasets
ZOO = Path(__file__).parent / "zoo"  # the snapshots that come with the package


def is_shipped(task: str) -> bool:
    """Whether the snapshots of a robot or of a game come with the package."""
    return (ZOO / task / "manifest.json").is_file()
