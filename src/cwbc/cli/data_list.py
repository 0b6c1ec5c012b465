"""`cwbc data list`: no dataset is opened, so nothing is imported that reads one."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal

from rich.table import Table
from rich.text import Text

from cwbc.cli.options import Json
from cwbc.cli.session import Session
from cwbc.data import SOURCES, store
from cwbc.system.console import PlainConsole, output

_NUMBERS = ("episodes", "steps", "size")


@dataclasses.dataclass(frozen=True)
class ListDatasets:
    """Show every dataset: those here with their sizes, and the available ones."""

    json: Json = False

    def run(self, session: Session) -> None:
        offers = {source: list(source.offers()) for source in SOURCES if source.key}
        if self.json:
            listed: dict[str, Any] = {"store": str(store.root())}
            for source, offered in offers.items():
                listed[source.key] = [offer.facts or offer.name for offer in offered]
            output(json.dumps(listed, indent=2))
            return
        console = PlainConsole()
        for source, offered in offers.items():
            if offered:
                table = Table(box=None, pad_edge=False)
                for title in source.headings:
                    justify: Literal["left", "right"] = "right" if title in _NUMBERS else "left"
                    table.add_column(title, justify=justify, no_wrap=title != "environment")
                for offer in offered:
                    table.add_row(*map(Text, (offer.name, *offer.cells)))
                console.print(table)
                console.print()
        session.say(f"the store is {store.root()}; `cwbc data import` adds your own")
