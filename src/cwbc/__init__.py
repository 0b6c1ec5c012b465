"""Reliable return-conditioned behavioural cloning for offline reinforcement learning."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    __version__: str
    from cwbc.api import evaluate, run, train
    from cwbc.core.methods import METHODS, Method, Training, method
    from cwbc.core.trajectories import Trajectories
    from cwbc.data import load
    from cwbc.data.formats.arrays import from_arrays
    from cwbc.grids.cells import Scale, Variant, grid
    from cwbc.reports.grid_report import report
    from cwbc.results.sweeps import Sweep
    from cwbc.runs.policies import Policies, Policy
    from cwbc.system.errors import InputError

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
    "METHODS": ("cwbc.core.methods", "METHODS"),
    "InputError": ("cwbc.system.errors", "InputError"),
    "Method": ("cwbc.core.methods", "Method"),
    "Policies": ("cwbc.runs.policies", "Policies"),
    "Policy": ("cwbc.runs.policies", "Policy"),
    "Scale": ("cwbc.grids.cells", "Scale"),
    "Sweep": ("cwbc.results.sweeps", "Sweep"),
    "Training": ("cwbc.core.methods", "Training"),
    "Trajectories": ("cwbc.core.trajectories", "Trajectories"),
    "Variant": ("cwbc.grids.cells", "Variant"),
    "evaluate": ("cwbc.api", "evaluate"),
    "from_arrays": ("cwbc.data.formats.arrays", "from_arrays"),
    "grid": ("cwbc.grids.cells", "grid"),
    "load": ("cwbc.data", "load"),
    "method": ("cwbc.core.methods", "method"),
    "report": ("cwbc.reports.grid_report", "report"),
    "run": ("cwbc.api", "run"),
    "train": ("cwbc.api", "train"),
}


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


def __getattr__(name: str) -> Any:
    # Importing jax takes seconds; the package and its help should not.
    if name == "__version__":
        from cwbc.system.versions import versions

        return versions("cwbc").get("cwbc", "not installed")  # where only its folder is on the path
    if name not in _HOMES:
        raise AttributeError(f"module 'cwbc' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    return getattr(importlib.import_module(module), attribute)
