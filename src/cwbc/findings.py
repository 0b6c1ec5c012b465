"""What checks find, and how it is told: each problem once, with the places where it shows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cwbc.errors import InputError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

PLACES_KEPT = 1000  # of one finding; all of them are counted


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a value stands: in what was read, and in the episodes made from it."""

    row: int
    unit: str = "row"  # "line" where people count the lines of a text
    episode: str | None = None
    step: int | None = None
    value: str | None = None

    def __str__(self) -> str:
        value = "" if self.value is None else f"{self.value} at "
        step = "" if self.step is None else f", step {self.step}"
        within = "" if self.episode is None else f" (episode {self.episode}{step})"
        return f"{value}{self.unit} {self.row}{within}"


@dataclasses.dataclass(frozen=True)
class Finding:
    """One problem of a dataset: an error, which keeps it from being used, or a warning."""

    severity: Literal["error", "warning"]
    what: str
    remedy: str
    column: str | None = None
    count: int = 0  # places in all
    places: tuple[Place, ...] = ()  # the first of them

    def sentence(self, places: int = 1) -> str:
        """What is wrong, where, and what would be right."""
        shown = self.places[:places]
        rest = self.count - len(shown)
        where = ", ".join(map(str, shown)) + (f" and {rest:,} more" if shown and rest else "")
        remedy = f"; {self.remedy}" if self.remedy else ""
        return f"{self.what}{': ' if where else ''}{where}{remedy}"

    def to_json(self, places: int) -> dict[str, Any]:
        """The fields, with the first places."""
        return dataclasses.asdict(dataclasses.replace(self, places=self.places[:places]))


class Rejected(InputError):
    """Data that cannot be used, with everything that was found wrong with it."""

    def __init__(self, source: str, findings: Iterable[Finding]) -> None:
        self.findings = tuple(findings)
        errors = [finding for finding in self.findings if finding.severity == "error"]
        more = f" (and {len(errors) - 1} more: `cwbc data check` lists all)" if len(errors) > 1 else ""
        super().__init__(f"{source}: {errors[0].sentence()}{more}")


@dataclasses.dataclass(frozen=True, eq=False)
class Origin:
    """Where the steps of a dataset stood in what it was read from, so that a finding can name the place."""

    source: str  # a path or a name
    rows: NDArray[np.int64] | None = None  # [step]; None: the steps stood in this order
    unit: str = "row"
    first_row: int = 0
    episodes: Sequence[Any] | None = None  # [episode] their own names; None: they are counted
    in_order: bool = False  # it is known that no step is there twice or out of place
    step_name: str | None = None  # of its own numbers of steps, which another count would contradict
    ignored: tuple[str, ...] = ()  # columns that were not used
    reward_name: str = "rewards"
    only_done: bool = False  # nothing tells which of the ends were limits

    def places(
        self,
        starts: NDArray[np.int64],
        steps: NDArray[np.integer[Any]],
        values: Sequence[str] | None = None,
    ) -> Iterator[Place]:
        """The places of the first of these steps."""
        for number, step in enumerate(steps[:PLACES_KEPT]):
            episode = int(starts.searchsorted(step, side="right")) - 1
            row = int(step if self.rows is None else self.rows[step])
            yield Place(
                row=row + self.first_row,
                unit=self.unit,
                episode=str(episode if self.episodes is None else self.episodes[episode]),
                step=None if self.step_name is not None else int(step - starts[episode]),
                value=None if values is None else values[number],
            )
