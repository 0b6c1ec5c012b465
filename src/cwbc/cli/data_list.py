"""`cwbc data list`: no dataset is opened, so nothing is imported that reads one."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from rich.table import Table
from rich.text import Text

from cwbc.cli.options import Flag
from cwbc.data import SOURCES, store
from cwbc.system.console import PlainConsole, output, say


@dataclasses.dataclass(frozen=True)
class ListDatasets:
    """Show every dataset: those here with their sizes, and the available ones."""

    json: Flag = False
    """Print JSON, for programs."""

    def run(self, command_line: str) -> None:
        """Show every dataset that is stored or available."""
        offers = {source: list(source.offers()) for source in SOURCES if source.key}
        if self.json:
            listed: dict[str, Any] = {"store": str(store.root())}
            for source, offered in offers.items():
                listed[source.key] = [offer.facts or offer.name for offer in offered]
            output(json.dumps(listed, indent=2))
            return
        for source, offered in offers.items():
            _print_table(source.headings, [(offer.name, *offer.cells) for offer in offered])
        say(f"the store is {store.root()}; `cwbc data import` adds your own")


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
