"""What `cwbc data list` does: no dataset is opened, so nothing is imported that reads one."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rich.table import Table
from rich.text import Text

from cwbc.cli_data import List
from cwbc.datasets import d4rl, made, store
from cwbc.datasets.minari import places
from cwbc.errors import InputError
from cwbc.plain_text import PlainConsole, output, say


def list_datasets(action: List) -> None:
    """Every dataset, here or obtainable."""
    here = {name: _entry(name) for name in store.names()}
    published = [each for each in d4rl.CATALOGUE if each.name not in here]
    to_make = [name for name in made.CATALOGUE if name not in here]
    local = places.local_names()
    if action.json:
        listed: dict[str, Any] = {"store": str(store.root())}
        listed["here"] = [
            {"name": name, "whole": entry is not None} | (dataclasses.asdict(entry) if entry else {})
            for name, entry in here.items()
        ]
        listed["minari"] = local
        listed["makeable"] = to_make
        listed["obtainable"] = [dataclasses.asdict(each) | {"url": each.url()} for each in published]
        output(json.dumps(listed, indent=2))
        return
    _print_table(
        ("dataset", "episodes", "steps", "size", "environment"),
        [
            (name, f"{e.episodes:,}", f"{e.steps:,}", _size(e.bytes), e.environment or "-")
            if e is not None
            else (name, "damaged", "", "", f"`cwbc data check {name}` says how")
            for name, e in here.items()
        ],
    )
    if local:
        _print_table(
            ("in Minari's own folder", "episodes", "steps"),
            [(name, *("" if n is None else f"{n:,}" for n in places.told(name))) for name in local],
        )
    _print_table(("made in seconds, by `cwbc data make` or where it is used",), [(name,) for name in to_make])
    _print_table(
        ("to be had with `cwbc data download`", "steps", "size"),
        [
            (
                each.name,
                f"{'' if each.exact else 'about '}{each.transitions:,}",
                "" if each.bytes is None else _size(each.bytes),
            )
            for each in published
        ],
    )
    say(f"the store is {store.root()}; `cwbc data import` adds your own")


def _entry(name: str) -> store.Entry | None:
    """A dataset of the store, or None where that is damaged."""
    try:
        entry = store.find(name)
        return entry if entry is not None and entry.looks_whole() else None
    except InputError:
        return None


def _size(count: int) -> str:
    for unit, size in (("kB", 1e3), ("MB", 1e6)):
        if count < 1000 * size:
            return f"{count / size:,.1f} {unit}"
    return f"{count / 1e9:,.2f} GB"


def _print_table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    table = Table(box=None, pad_edge=False)
    for title in titles:
        number = title in ("episodes", "steps", "size")
        table.add_column(title, justify="right" if number else "left", no_wrap=title != "environment")
    for row in rows:
        table.add_row(*map(Text, row))
    PlainConsole().print(table)
    PlainConsole().print()
