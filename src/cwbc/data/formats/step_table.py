"""The interface of every table format: typed columns by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cwbc.data.issues import DataError, Issue, Location

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# Columns side by side [row, width], or images [row, ...], from their names, the type to convert to (None:
# their own) and a function that is called with the number of values read.
Fetch = Callable[[Sequence[str], type | None, Callable[[int], None]], "NDArray[Any]"]
Kind = Literal["float", "integer", "boolean", "text", "time", "image", "other"]


@dataclasses.dataclass(frozen=True)
class StepColumn:
    """One column of a table."""

    name: str
    kind: Kind
    width: int | None = None  # values per row of a column of lists or images; None: one value per row
    type_name: str = ""  # what the format calls the type
    remedy: str = ""  # what would be right, where that depends on more than the role

    @property
    def contents(self) -> str:
        """The values of the column in words."""
        values = self.type_name or self.kind
        return (
            values
            if self.width is None or self.kind == "image"
            else f"lists of {self.width} values ({values})"
        )


@dataclasses.dataclass(frozen=True, eq=False)
class StepTable:
    """A table with one row per step, whatever its format."""

    source: str
    rows: int
    columns: dict[str, StepColumn]
    fetch: Fetch
    unit: str = "row"  # what people count: "row", or "line" in a text file
    first_row: int = 0

    def values(self, column: StepColumn) -> NDArray[Any]:
        """A column with one value per row. [row]"""
        return self.fetch([column.name], None, lambda count: None).reshape(-1)

    def invalid(
        self,
        column: StepColumn,
        rows: NDArray[np.intp],
        what: str,
        remedy: str,
        values: Sequence[object] | NDArray[Any] | None = None,
    ) -> DataError:
        """An error about some rows of one column."""
        locations = tuple(
            Location(int(row) + self.first_row, self.unit, value=None if values is None else str(values[i]))
            for i, row in enumerate(rows[:10])
        )
        issue = Issue("error", f"{column.name} {what}", remedy, column.name, len(rows), locations)
        return DataError(self.source, [issue])
