"""Reader for HDF5 files in D4RL's layout, without the d4rl package."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
from numpy.typing import NDArray

from cwbc.errors import InputError
from cwbc.simulators import time_limit
from cwbc.trajectories import Trajectories, from_flat

KEYS = ("observations", "actions", "rewards", "terminals", "timeouts")

# D4RL's v2 data was recorded with mujoco-py; Gymnasium's v4 rules are the closest to it.
_ENVIRONMENTS = {"hopper": "Hopper-v4", "walker2d": "Walker2d-v4", "halfcheetah": "HalfCheetah-v4"}


def read(path: Path, environment: str | None = None) -> Trajectories:
    """The episodes of a D4RL-layout file; a trailing one without an end is kept out and counted."""
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty; expected an HDF5 file with {', '.join(KEYS)}")
    try:
        with h5py.File(path, "r") as file:
            observations, actions, rewards, terminals, timeouts = _arrays(path, file)
            named = file.attrs.get("env")
    except (InputError, PermissionError):
        raise
    except (OSError, RuntimeError, KeyError, TypeError, ValueError) as error:  # h5py's, for damaged files
        raise InputError(f"{path} cannot be read as HDF5 (truncated, or another format): {error}") from error
    if isinstance(named, bytes):
        named = named.decode(errors="ignore")
    environment = environment or (str(named) if named else _environment_of(path.stem))
    return from_flat(
        path.stem,
        observations,
        actions,
        rewards,
        terminals,
        timeouts,
        environment=environment,
        time_limit=time_limit(environment) if environment else None,
    )


def _arrays(path: Path, file: h5py.File) -> list[NDArray[Any]]:
    missing = [key for key in KEYS if not isinstance(file.get(key), h5py.Dataset)]
    if missing:
        raise InputError(
            f"{path}: missing {', '.join(map(repr, missing))}; found {sorted(map(str, file.keys()))}, "
            f"expected one array each for {', '.join(KEYS)}"
        )
    shapes = {key: file[key].shape for key in KEYS}
    rows = shapes["rewards"][0] if shapes["rewards"] else 0
    if rows == 0:
        raise InputError(f"{path}: 'rewards' has no rows")
    for key, shape in shapes.items():
        if not shape or shape[0] != rows:
            raise InputError(f"{path}: '{key}' has {shape[0] if shape else 0} rows, 'rewards' has {rows}")
    _check_dimensions(path, shapes, file)
    # float64 files are narrowed while reading, so that the wide copy never exists.
    return [_narrow(file[key])[()] for key in KEYS]


def _check_dimensions(path: Path, shapes: dict[str, tuple[int, ...]], file: h5py.File) -> None:
    if len(shapes["observations"]) != 2:
        raise InputError(
            f"{path}: 'observations' has shape {shapes['observations']}; expected [step, dimension]"
        )
    integer = file["actions"].dtype.kind in "iu"
    if len(shapes["actions"]) != (1 if integer else 2):
        wanted = "[step] for integer actions" if integer else "[step, dimension] for real actions"
        raise InputError(f"{path}: 'actions' has shape {shapes['actions']}; expected {wanted}")
    for key in ("rewards", "terminals", "timeouts"):
        if np.prod(shapes[key]) != shapes[key][0]:
            raise InputError(f"{path}: '{key}' has shape {shapes[key]}; expected one value per step")
    for key in KEYS:
        if file[key].dtype.kind not in "fiub":
            raise InputError(f"{path}: '{key}' holds {file[key].dtype}; expected numbers")


def _narrow(dataset: h5py.Dataset) -> Any:
    return dataset.astype(np.float32) if dataset.dtype == np.float64 else dataset


def _environment_of(stem: str) -> str | None:
    return _ENVIRONMENTS.get(stem.replace("_", "-").split("-")[0].lower())
