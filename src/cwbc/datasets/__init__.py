"""From what users have to Trajectories."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from cwbc.errors import InputError
from cwbc.trajectories import Trajectories

__all__ = ["load"]


def load(dataset: str | os.PathLike[str], environment: str | None = None) -> Trajectories:
    """The trajectories of a dataset file, checked.

    Args:
        environment: a Gymnasium id; without it, the one that the file or its name tells.
    """
    from cwbc.datasets import hdf5

    path = Path(dataset)
    if not path.exists():
        known = sorted(str(p) for p in path.parent.glob("*.hdf5")) if path.parent.is_dir() else []
        near = difflib.get_close_matches(str(path), known, n=5) or known[:5]
        there = f"; beside it: {', '.join(near)}" if near else ""
        raise InputError(f"unknown dataset {str(dataset)!r}: no such file{there}")
    if path.is_dir():
        raise InputError(f"{path} is a folder; a dataset is an HDF5 file in D4RL's layout")
    return hdf5.read(path, environment)
