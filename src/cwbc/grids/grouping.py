"""Which cells of a grid one program trains."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from cwbc.grids.preparation import Prepared

_LARGEST_GROUP = 16  # more cells in one program are no faster


def groups(prepared: Sequence[Prepared], gpus: int) -> list[list[Prepared]]:
    """Groups of cells that one program trains: with one dataset, training, seeds and form of method.

    Only a GPU trains them faster than one by one. Groups are small enough to give cells to every GPU.
    """
    if not gpus:
        return [[each] for each in prepared]
    alike: dict[Any, list[Prepared]] = {}
    for each in prepared:
        cell = each.cell
        method = (cell.method.form, cell.method.learner.reads)  # its numbers depend on the data
        data = (cell.dataset, each.dataset.content_hash)
        alike.setdefault((data, method, cell.training, cell.seeds), []).append(each)
    most = min(math.ceil(len(prepared) / gpus), _LARGEST_GROUP)
    return [group[i : i + most] for group in alike.values() for i in range(0, len(group), most)]
