"""One table or figure of the paper as a value: what is trained for it, what is shown, what is claimed."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from cwbc.errors import unknown
from cwbc.evidence.distributions import Distribution
from cwbc.evidence.measured import Evidence
from cwbc.evidence.naming import Datasets, named
from cwbc.grids.cells import Cell, Scale, Variant, grid
from cwbc.methods import Training
from cwbc.networks import Transformer

if TYPE_CHECKING:
    from cwbc.reporting.interactive import Chart
    from cwbc.reporting.tables import Table

FULL = Scale("paper", steps=None, seeds=10, episodes=10, condition_scale="paper")
STEPS = Training().steps  # of a full run
QUICK = Scale("small", steps=2_000, seeds=2, episodes=3, points=7, condition_scale="paper")
DECIDED = 0.95  # of the resamples that must agree with what was measured for a verdict
LESS = 0.8  # of the dataset's best, asked for beside the sweep: by all items, so that they share cells
_QUICK_BATCH = 16  # of transformers, whose steps cost several times those of an MLP on two cores


Verdict = Literal["supported", "contradicted", "inconclusive"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """Something that a rule decides from what was measured, and again from every resample of the seeds."""

    holds: bool | None  # by its rule; None where that leaves it open
    holds_in: float | None = None  # the fraction of resamples in which it holds; None where there are none
    fails_in: float | None = None  # and in which it fails; the rest leave it open

    @property
    def verdict(self) -> Verdict:
        """A verdict takes both: what was measured, and nearly all resamples."""
        if self.holds is True and (self.holds_in or 0.0) >= DECIDED:
            return "supported"
        if self.holds is False and (self.fails_in or 0.0) >= DECIDED:
            return "contradicted"
        return "inconclusive"


@dataclasses.dataclass(frozen=True)
class Case(Judged):
    """What one dataset says about a claim."""

    dataset: str
    numbers: str


@dataclasses.dataclass(frozen=True)
class Claim(Judged):
    """A sentence of the paper that our run can contradict."""

    text: str  # what the paper says
    reason: str  # the rule that decides it, and the numbers; or why nothing does
    cases: Sequence[Case] = ()  # where each dataset has a say


@dataclasses.dataclass(frozen=True)
class Findings:
    """What came of an item."""

    claims: Sequence[Claim]
    tables: Mapping[str, Table] = dataclasses.field(default_factory=dict)  # by the name of their files
    charts: Sequence[Chart] = ()
    distributions: Sequence[Distribution] = ()


@dataclasses.dataclass(frozen=True)
class Item:
    """A table or figure.

    Args:
        name: what is typed.
        place: where it stands in the paper.
        shows: what it is about, in a line.
        datasets: as in `published`; `quick_datasets` are those of a quick run.
        variants: what is trained on each of them; nothing where the data alone tells.
        claims: what the paper says, decided by rules; the same claims in the same order for any evidence.
        findings: these and all else to make of the outcomes.
        needs_data: whether the findings look at the trajectories.
    """

    name: str
    place: str
    shows: str
    datasets: tuple[str, ...]
    quick_datasets: tuple[str, ...]
    variants: tuple[Variant | str, ...]
    claims: Callable[[Evidence], Sequence[Claim]]
    findings: Callable[[Evidence], Findings]
    needs_data: bool = False

    def names(self, datasets: Datasets, quick: bool) -> tuple[str, ...]:
        """The datasets' names in the store."""
        return tuple(named(each, datasets) for each in (self.quick_datasets if quick else self.datasets))

    def cells(self, names: Sequence[str], scale: Scale) -> tuple[Cell, ...]:
        """Everything that is to be trained on datasets of these names in the store."""
        cells = [dataclasses.replace(cell, shares=(LESS,)) for cell in grid(names, self.variants, scale)]
        return tuple(_lighter(cell) if scale.preset == QUICK.preset else cell for cell in cells)

    def only(self, datasets: Sequence[str] | None, methods: Sequence[str] | None) -> Item:
        """The same item with only these datasets and methods; an unknown one is an error."""
        labels = {each if isinstance(each, str) else each.label: each for each in self.variants}
        for name in datasets or ():
            if name not in self.datasets:
                raise unknown("dataset of this item", name, self.datasets)
        spelled = {_spelled(label): label for label in labels}
        for name in methods or ():
            if _spelled(name) not in spelled:
                raise unknown("method of this item", name, labels)
        wanted = {spelled[_spelled(name)] for name in methods or labels}
        chosen = tuple(name for name in self.datasets if name in datasets) if datasets else None
        return dataclasses.replace(
            self,
            datasets=chosen or self.datasets,
            quick_datasets=chosen or self.quick_datasets,
            variants=tuple(each for label, each in labels.items() if label in wanted),
        )

    def count(self, quick: bool) -> int:
        """How many cells there are."""
        return len(self.variants) * len(self.quick_datasets if quick else self.datasets)


def _spelled(label: str) -> str:
    """What is the same for "alpha=1" and "alpha = 1", for "rvs" and "RvS"."""
    return label.replace(" ", "").lower()


def _lighter(cell: Cell) -> Cell:
    if not isinstance(cell.method.network, Transformer):
        return cell
    return dataclasses.replace(cell, training=dataclasses.replace(cell.training, batch_size=_QUICK_BATCH))
