"""What has to be right before an item is run: its data is there, and its results can be written."""

from __future__ import annotations

import json
import os
from pathlib import Path

from cwbc.datasets import d4rl, made, store
from cwbc.errors import InputError
from cwbc.experiments import writing
from cwbc.experiments.item import Item
from cwbc.experiments.naming import Datasets
from cwbc.files import is_aside
from cwbc.grids.prepared import LEASES


def check(item: Item, data: Datasets, quick: bool, out: Path, cells: Path) -> None:
    """Refuse what would go wrong after hours; at the end the directories are there."""
    if data == "d4rl":
        _check_present(item, quick)
    elif not quick:
        _check_sizes(item)
    _check_place(out, item)
    _prepare_place(out, "--out")
    if item.variants:
        _prepare_place(cells, "--cells")


def _check_present(item: Item, quick: bool) -> None:
    """Refuse D4RL's datasets that are not here, all at once."""
    missing = [name for name in item.names("d4rl", quick) if store.find(name) is None]
    if missing:
        published = [d4rl.find(name) for name in missing]
        commands = "\n".join(f"cwbc data download {each.d4rl_name}" for each in published if each)
        raise InputError(f"{len(missing)} of D4RL's datasets are not here yet; these get them:\n{commands}")


def _check_sizes(item: Item) -> None:
    """Refuse datasets of ours that are smaller than D4RL's, all at once."""
    small = []
    for name in item.names("ours", quick=False):
        size = made.ordered_size(name)
        if size is not None and size < made.Order.of(name, made.FULL).size:
            small.append(name)
    if small:
        commands = "\n".join(f"cwbc data make {name} --size {made.FULL} --overwrite" for name in small)
        raise InputError(
            f"{len(small)} datasets are here in a smaller size than D4RL's, such as quick runs make them; "
            f"these make them anew:\n{commands}"
        )


def _check_place(out: Path, item: Item) -> None:
    """Refuse to put a report among files that are not those of an earlier one."""
    others = [path for path in out.glob("*") if path.is_file() and not is_aside(path)]
    if (out / LEASES).exists():
        raise InputError(f"{out} holds cells; give another --out")
    if not others:
        return
    try:
        there = json.loads((out / writing.SUMMARY).read_text())["item"]["name"]
    except (OSError, ValueError, TypeError, KeyError):
        raise InputError(f"{out} holds other files, such as {others[0].name}; give another --out") from None
    if there != item.name:
        raise InputError(f"{out} holds the report of {there}; give another --out")


def _prepare_place(place: Path, option: str) -> None:
    """Find out now, not after hours, whether a directory can be written to."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        can_write = os.access(place, os.W_OK)
    except OSError as error:
        raise InputError(
            f"{place} cannot be a directory ({error.strerror}); give another {option}"
        ) from error
    if not can_write:
        raise InputError(f"{place} cannot be written to; give another {option}")
