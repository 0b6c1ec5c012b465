"""Which cells of a grid one program trains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cwbc.core.training_loop import step_operations
from cwbc.grids.preparation import Prepared

_LARGEST_GROUP = 16  # more cells in one program are no faster
_BUSY = 4e10  # operations of a step that keep a GPU busy; with fewer, another dataset costs little


def groups(prepared: Sequence[Prepared], gpus: int) -> list[list[Prepared]]:
    """Groups of cells that one program trains: with one training, one set of seeds and one form of policy.

    Only a GPU trains them faster than one by one; those of several datasets only where steps are small.
    Groups are small enough to give cells to every GPU.
    """
    if not gpus:
        return [[each] for each in prepared]
    alike: dict[Any, list[Prepared]] = {}
    for each in prepared:
        cell = each.cell
        work = len(cell.seeds) * step_operations(each.spec, cell.training)
        data = (cell.dataset, each.dataset.content_hash) if work > _BUSY else None
        alike.setdefault((data, each.spec.form, cell.training, cell.seeds), []).append(each)
    most = min(math.ceil(len(prepared) / gpus), _LARGEST_GROUP)
    return [group[i : i + most] for group in alike.values() for i in range(0, len(group), most)]
