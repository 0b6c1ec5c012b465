"""Grids of small cells on the toy, which differ in their seeds alone, so that one program trains them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from cwbc.grids.cells import Cell, Scale, Variant, grid

TARGETS = (-2.0, 2.0)
EPISODES = 2
STEPS = 200


def toy_cells(dataset: Path | str, count: int, steps: int = STEPS, **options: Any) -> tuple[Cell, ...]:
    """Cells called "rvs 0", "rvs 1", ..., each with the seed of its number."""
    small = {"width": 16, "batch_size": 8, "context": 5, **options}
    scale = Scale("small", steps, 1, EPISODES, precision="float32")
    (cell,) = grid([str(dataset)], [Variant("rvs", "rvs", small)], scale, TARGETS)
    return tuple(dataclasses.replace(cell, label=f"rvs {seed}", seeds=(seed,)) for seed in range(count))


def tables(root: Path) -> dict[str, bytes]:
    """The results of all cells, by directory."""
    return {path.parent.name: path.read_bytes() for path in root.glob("*/results.csv")}
