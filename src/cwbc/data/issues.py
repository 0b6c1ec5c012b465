"""Data issues: each error or warning of a dataset once, with the locations where it occurs."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cwbc.system.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

LOCATIONS_STORED = 1000  # of one issue; all of them are counted
Severity = Literal["error", "warning"]


@dataclasses.dataclass(frozen=True)
class Location:
    """Where a value is: in what was read, and in the episodes built from it."""

    row: int
    unit: str = "row"  # "line" in a text file
    episode: str | None = None
    step: int | None = None
    value: str | None = None

    def __str__(self) -> str:
        value = "" if self.value is None else f"{self.value} at "
        step = "" if self.step is None else f", step {self.step}"
        within = "" if self.episode is None else f" (episode {self.episode}{step})"
        return f"{value}{self.unit} {self.row}{within}"


@dataclasses.dataclass(frozen=True)
class Issue:
    """One problem of a dataset: an error, which makes it unusable, or a warning."""

    severity: Severity
    what: str
    remedy: str = ""
    column: str | None = None
    count: int = 0  # of all locations
    locations: tuple[Location, ...] = ()  # the first of them

    def sentence(self, locations: int = 1) -> str:
        """What is wrong, where, and what would be right."""
        shown = self.locations[:locations]
        rest = self.count - len(shown)
        where = ", ".join(map(str, shown)) + (f" and {rest:,} more" if shown and rest else "")
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.what}{': ' if where else ''}{where}{remedy}"

    def to_json(self, locations: int) -> dict[str, Any]:
        """The fields, with the first locations."""
        return dataclasses.asdict(dataclasses.replace(self, locations=self.locations[:locations]))


class DataError(InputError):
    """Unusable data, with all of its issues."""

    def __init__(self, source: str, issues: Iterable[Issue]) -> None:
        self.issues = tuple(issues)
        errors = [issue for issue in self.issues if issue.severity == "error"]
        more = f" (and {len(errors) - 1} more: `cwbc data check` lists all)" if len(errors) > 1 else ""
        super().__init__(f"{source}: {errors[0].sentence()}{more}")


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """Where the steps of a dataset are in what it was read from, so that an issue can name its locations."""

    source: str  # a path or a name
    rows: NDArray[np.int64] | None = None  # [step]; None: the steps are in the order of the source
    unit: str = "row"
    first_row: int = 0
    episodes: Sequence[Any] | None = None  # [episode] their names in the source; None: numbered from 0
    in_order: bool = False  # the source itself orders the steps, so none is duplicated or misplaced
    step_name: str | None = None  # the column with the source's own step numbers, shown instead of ours
    ignored: tuple[str, ...] = ()  # columns that were not used
    reward_name: str = "rewards"
    only_done: bool = False  # no column distinguishes terminated from truncated

    def row(self, step: int) -> int:
        """The row of a step in the source, as people count it."""
        return self.first_row + int(step if self.rows is None else self.rows[step])

    def issue(
        self,
        severity: Severity,
        what: str,
        remedy: str,
        starts: NDArray[np.int64] | None,
        steps: Sequence[int] | NDArray[np.integer[Any]],
        column: str | None = None,
        values: Iterable[object] | None = None,
    ) -> Issue:
        """An issue that occurs at these steps, with their values; without `starts`, they have no episodes."""
        locations = []
        texts = itertools.repeat(None) if values is None else map(str, values)
        for step, text in zip(map(int, steps[:LOCATIONS_STORED]), texts, strict=False):
            label = within = None
            if starts is not None:
                episode = int(starts.searchsorted(step, side="right")) - 1
                label = str(episode if self.episodes is None else self.episodes[episode])
                within = step - int(starts[episode]) if self.step_name is None else None
            locations.append(Location(self.row(step), self.unit, label, within, text))
        return Issue(severity, what, remedy, column, len(steps), tuple(locations))
