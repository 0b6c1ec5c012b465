"""What has to be right before an item is run: its data is there, and its results can be written."""

from __future__ import annotations

from pathlib import Path

from cwbc.datasets import d4rl, made, store
from cwbc.errors import InputError
from cwbc.evidence.item import Item
from cwbc.evidence.naming import Datasets
from cwbc.studies import places


def check(item: Item, data: Datasets, quick: bool, out: Path) -> None:
    """Refuse data that is missing or too small, and a place that is taken."""
    if data == "d4rl":
        _check_present(item, quick)
    elif not quick:
        _check_sizes(item)
    places.check(out, item.name, "--out")


def prepare(item: Item, out: Path, cells: Path) -> None:
    """Make the directories, or refuse those that could not be written to after hours."""
    places.prepare(out, "--out")
    if item.variants and not cells.is_dir():  # one that holds all that is asked for is only read
        places.prepare(cells, "--cells")


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
