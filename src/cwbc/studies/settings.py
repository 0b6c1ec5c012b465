"""What the labels of a grid stand for: the method of each, and the settings in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cwbc import runs
from cwbc.grids.cells import Cell as GridCell
from cwbc.methods import to_json
from cwbc.reporting.tables import Cell, Column, Row, Table


def table(cells: Sequence[GridCell]) -> Table:
    """A row per label; a column per setting that is not the same for all that have it."""
    differing = [name for name, values in _values(cells).items() if len(values) > 1 or name == "method"]
    columns = [Column(name) for name in differing]
    rows = []
    for label in dict.fromkeys(cell.label for cell in cells):
        found = _values([cell for cell in cells if cell.label == label])  # as a rule one of each
        rows.append(Row(label, [Cell(" or ".join(found.get(c.name, [])) or None) for c in columns], label))
    return Table("label", columns, rows, title="What the labels stand for")


def shared(cells: Sequence[GridCell]) -> str:
    """The settings that are the same for all that have them."""
    alike = {name: values for name, values in _values(cells).items() if len(values) == 1 and name != "method"}
    return ", ".join(f"{name} {value}" for name, (value,) in alike.items())


def _values(cells: Sequence[GridCell]) -> dict[str, list[str]]:
    """The different values of each setting."""
    values: dict[str, dict[str, None]] = {}
    for cell in cells:
        for name, value in _settings(cell).items():
            values.setdefault(name, {})[value] = None
    return {name: list(found) for name, found in values.items()}


def _settings(cell: GridCell) -> dict[str, str]:
    """All options of a cell's method and training by their names, in words."""
    parts = {"method": to_json(cell.method), "training": to_json(cell.training), "seeds": cell.seeds}
    named = {"method": cell.method.name, **runs.settings(parts), "episodes": cell.episodes}
    return {name: _words(value) for name, value in named.items()}


def _words(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, float):
        return f"{value:g}"
    return f"{value:,}" if isinstance(value, int) else str(value)
