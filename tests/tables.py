"""Tables of logged steps for tests, as columns, and as files of every format."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet
from conftest import write_d4rl


def columns(**changes: Any) -> dict[str, Any]:
    """Three episodes (of 3, 1 and 2 steps) as a table of columns; a change to None leaves one out."""
    values: dict[str, Any] = {
        "episode": np.array([0, 0, 0, 1, 2, 2]),
        "step": np.array([0, 1, 2, 0, 0, 1]),
        "observation_0": np.array([0.5, 1, 2, 3, 4, 5]),
        "observation_1": np.array([-1, -2.5, -3, -4, -5, -6]),
        "action_0": np.linspace(-1, 1, 6),
        "action_1": np.linspace(1, 0.5, 6),
        "reward": np.array([1, 2, 3, 10, -1, 0.5]),
        "terminated": np.array([0, 0, 1, 0, 0, 1], bool),
        "truncated": np.array([0, 0, 0, 1, 0, 0], bool),
    }
    return {name: column for name, column in (values | changes).items() if column is not None}


def write(path: Path, values: dict[str, Any]) -> Path:
    """A file of these columns, in the format that its suffix names."""
    if path.suffix == ".npz":
        np.savez(path, **values)
    elif path.suffix == ".hdf5":
        nothing = dict.fromkeys(("observations", "actions", "rewards", "terminals", "timeouts"))
        write_d4rl(path, **nothing | values)
    elif path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.table(values), path)
    else:
        pyarrow.csv.write_csv(pyarrow.table(values), path)
    return path


FORMATS = ("csv", "parquet", "npz", "hdf5")
