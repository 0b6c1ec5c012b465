"""A table or figure of the paper as a value: what is trained, which claims are judged, what is shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from cwbc.core.methods import Training
from cwbc.grids.cells import Cell, Scale, Variant, grid
from cwbc.paper.distributions import Distribution
from cwbc.paper.naming import WALKERS, Datasets, named
from cwbc.results.evidence import Evidence
from cwbc.system.errors import unknown

if TYPE_CHECKING:
    from cwbc.reports.charts import Chart
    from cwbc.reports.tables import ReportTable

FULL = Scale("paper", steps=None, seeds=10, episodes=10, condition_scale="paper")
STEPS = Training().steps  # of a full run
QUICK = Scale("small", steps=2_000, seeds=2, episodes=3, points=7, condition_scale="paper")
DECIDED = 0.95  # of the resamples must agree with the observed scores for a verdict
LESS = 0.8  # of the dataset's best: a target of all items beside the sweep, so that they share cells
_QUICK_BATCH = 16  # of transformers, whose steps cost several times those of an MLP on two cores


Verdict = Literal["supported", "contradicted", "inconclusive"]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Judged:
    """Something that a rule decides for the observed scores and for every resample of the seeds."""

    holds: bool | None  # by its rule; None where that leaves it open
    holds_in: float | None = None  # the fraction of resamples in which it holds; None where there are none
    fails_in: float | None = None  # and in which it fails; the rest leave it open

    @property
    def verdict(self) -> Verdict:
        """Supported or contradicted where the observed scores and nearly all resamples agree."""
        if self.holds is True and (self.holds_in or 0.0) >= DECIDED:
            return "supported"
        if self.holds is False and (self.fails_in or 0.0) >= DECIDED:
            return "contradicted"
        return "inconclusive"


@dataclasses.dataclass(frozen=True)
class Case(Judged):
    """A claim on one dataset."""

    dataset: str
    numbers: str


@dataclasses.dataclass(frozen=True)
class Claim(Judged):
    """A sentence of the paper that our run can contradict."""

    text: str  # what the paper says
    reason: str  # the rule that decides it, and the numbers; or why nothing does
    cases: Sequence[Case] = ()  # where it is judged on single datasets


@dataclasses.dataclass(frozen=True)
class Findings:
    """What came of an item."""

    claims: Sequence[Claim]
    tables: Mapping[str, ReportTable] = dataclasses.field(default_factory=dict)  # by the name of their files
    charts: Sequence[Chart] = ()
    distributions: Sequence[Distribution] = ()


@dataclasses.dataclass(frozen=True)
class Item:
    """A table or figure.

    Args:
        name: its name on the command line.
        place: its number in the paper.
        shows: its content in one line.
        variants: the methods that are trained on each dataset; none if the data alone decides the claims.
        rules: each gives a claim, always the same one, whatever the evidence.
        exhibits: the tables and charts, to which `findings` adds the claims.
        datasets: short names, as in `published`; `quick_datasets` are those of a quick run.
        needs_data: whether rules or exhibits use the trajectories.
    """

    name: str
    place: str
    shows: str
    variants: tuple[Variant | str, ...]
    rules: tuple[Callable[[Evidence], Claim], ...]
    exhibits: Callable[[Evidence], Findings]
    datasets: tuple[str, ...] = WALKERS
    quick_datasets: tuple[str, ...] = WALKERS
    needs_data: bool = False

    def claims(self, evidence: Evidence) -> list[Claim]:
        """The claims as their rules decide them."""
        return [rule(evidence) for rule in self.rules]

    def findings(self, evidence: Evidence) -> Findings:
        """The claims, tables and charts."""
        return dataclasses.replace(self.exhibits(evidence), claims=self.claims(evidence))

    def names(self, datasets: Datasets, quick: bool) -> tuple[str, ...]:
        """The datasets' names in the store."""
        return tuple(named(each, datasets) for each in (self.quick_datasets if quick else self.datasets))

    def cells(self, names: Sequence[str], scale: Scale) -> tuple[Cell, ...]:
        """Everything to train on datasets with these names in the store."""
        cells = [dataclasses.replace(cell, fractions=(LESS,)) for cell in grid(names, self.variants, scale)]
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
        """The number of cells."""
        return len(self.variants) * len(self.quick_datasets if quick else self.datasets)


def _spelled(label: str) -> str:
    """A label without spaces and capitals: "alpha=1" is "alpha = 1", "RvS" is "rvs"."""
    return label.replace(" ", "").lower()


def _lighter(cell: Cell) -> Cell:
    if not cell.method.learner.looks_back:
        return cell
    return dataclasses.replace(cell, training=dataclasses.replace(cell.training, batch_size=_QUICK_BATCH))
