"""Behaviour policies: trained online with SAC or PQN, stored as snapshots that generate datasets."""

from pathlib import Path

ZOO = Path(__file__).parent / "zoo"  # the snapshots that come with the package
TASKS = ("hopper", "walker2d", "halfcheetah")  # the robots whose snapshots come with the package
MAZES = ("umaze", "medium", "large")  # of the point, which needs no snapshots
ANT = "ant"  # the walker of the ant mazes, where its snapshots come with the package
ANT_MAZES = ("umaze", "umaze-diverse", "medium-play", "medium-diverse", "large-play", "large-diverse")
GAMES = ("breakout", "qbert", "pong", "seaquest")  # of the paper, where their snapshots come with the package
QUALITIES = ("random", "medium", "medium-replay", "medium-expert", "expert")  # of the robots' datasets
REPLAY = "replay"  # the quality of the games' datasets


def is_shipped(task: str) -> bool:
    """Whether the snapshots of a task come with this version of the package."""
    return (ZOO / task / "manifest.json").is_file()
