"""What every format of a table offers: columns by name, and their rows some at a time."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from cwbc.errors import InputError
from cwbc.findings import Finding, Place, Rejected

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Progress = Callable[[int, int | None], None]  # how much is done, and of how much where that is known

Kind = Literal["real", "whole", "truth", "text", "time", "other"]


@dataclasses.dataclass(frozen=True)
class Column:
    """One column of a table."""

    name: str
    kind: Kind
    width: int | None = None  # of a column that holds a list per row; None: one value per row
    spelled: str = ""  # the type as the format calls it
    remedy: str = ""  # what would be right, where that depends on more than the role


class Table(Protocol):
    """One row per step; each format has its own."""

    source: str
    rows: int
    columns: dict[str, Column]
    unit: str  # what people count: "row", or "line" in a text
    first_row: int

    def read(self, names: Sequence[str], dtype: type | None = None) -> Iterator[list[NDArray[Any]]]:
        """These columns, all rows in their order, some at a time: an array [row] or [row, width] each.

        Args:
            dtype: what they are wanted as, where narrowing early saves memory.
        """
        ...


def refuse(
    table: Table,
    column: Column,
    rows: NDArray[np.intp],
    what: str,
    remedy: str,
    values: Sequence[object] | NDArray[Any] | None = None,
) -> Rejected:
    """An error about some rows of one column."""
    first, unit = table.first_row, table.unit
    places = tuple(
        Place(int(row) + first, unit, value=None if values is None else str(values[i]))
        for i, row in enumerate(rows[:10])
    )
    finding = Finding("error", f"{column.name} {what}", remedy, column.name, len(rows), places)
    return Rejected(table.source, [finding])


def check_count(table: Table, rows: int) -> None:
    """Refuse a table that has fewer rows than it tells: the others would be whatever was in memory."""
    if rows != table.rows:
        raise InputError(f"{table.source} is damaged: it tells of {table.rows:,} rows and has {rows:,}")
