"""Reliable return-conditioned behavioural cloning for offline reinforcement learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from cwbc.api import evaluate, train
    from cwbc.datasets import load
    from cwbc.datasets.arrays import from_arrays
    from cwbc.errors import InputError
    from cwbc.grids.cells import Scale, Variant, grid
    from cwbc.grids.running import run
    from cwbc.methods import METHODS, Method, Training
    from cwbc.methods import parse as method
    from cwbc.policy import Policies, Policy
    from cwbc.results import Sweep
    from cwbc.studies.own import report
    from cwbc.trajectories import Trajectories

__all__ = [
    "METHODS",
    "InputError",
    "Method",
    "Policies",
    "Policy",
    "Scale",
    "Sweep",
    "Training",
    "Trajectories",
    "Variant",
    "evaluate",
    "from_arrays",
    "grid",
    "load",
    "method",
    "report",
    "run",
    "train",
]

_HOMES = {
    "METHODS": ("cwbc.methods", "METHODS"),
    "InputError": ("cwbc.errors", "InputError"),
    "Method": ("cwbc.methods", "Method"),
    "Policies": ("cwbc.policy", "Policies"),
    "Policy": ("cwbc.policy", "Policy"),
    "Scale": ("cwbc.grids.cells", "Scale"),
    "Sweep": ("cwbc.results", "Sweep"),
    "Training": ("cwbc.methods", "Training"),
    "Trajectories": ("cwbc.trajectories", "Trajectories"),
    "Variant": ("cwbc.grids.cells", "Variant"),
    "evaluate": ("cwbc.api", "evaluate"),
    "from_arrays": ("cwbc.datasets.arrays", "from_arrays"),
    "grid": ("cwbc.grids.cells", "grid"),
    "load": ("cwbc.datasets", "load"),
    "method": ("cwbc.methods", "parse"),
    "report": ("cwbc.studies.own", "report"),
    "run": ("cwbc.grids.running", "run"),
    "train": ("cwbc.api", "train"),
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    # Importing jax takes seconds; the package and its help should not.
    if name == "__version__":
        from importlib.metadata import version

        return version("cwbc")
    if name not in _HOMES:
        raise AttributeError(f"module 'cwbc' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
