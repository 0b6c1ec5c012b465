"""A table or figure of the paper as a value: what is trained, which claims are judged, what is shown."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cwbc.core.methods import Training, parse
from cwbc.grids.cells import Cell, Scale, Variant, grid
from cwbc.paper.published import WALKERS, Datasets, named
from cwbc.paper.rules import Rule
from cwbc.paper.verdicts import Claim
from cwbc.reports.chart import Chart
from cwbc.reports.tables import ReportTable
from cwbc.results.evidence import Evidence
from cwbc.system.errors import unknown

FEW = 5  # seeds of methods whose training costs most
FULL = Scale("paper", steps=None, seeds=10, episodes=10, condition_scale="paper")
STEPS = Training().steps  # of cloned methods at the paper's sizes, but for games
UPDATES = 300_000  # of value-based methods in a full run, a third of what their authors take
QUICK = Scale("small", steps=2_000, seeds=2, episodes=3, points=7, condition_scale="paper")
LESS = 0.8  # of the dataset's best: a target of all items on robots, so that they share cells
_QUICK_BATCH = 16  # of transformers, whose steps cost several times those of an MLP on two cores
Options = Mapping[str, Any]  # of a method, by name


@dataclasses.dataclass(frozen=True)
class Exhibits:
    """What an item shows beside its claims."""

    tables: Mapping[str, ReportTable]  # by the name of their files
    charts: Sequence[Chart] = ()
    distributions: Mapping[str, Chart] = dataclasses.field(default_factory=dict)  # of returns, by dataset


def small_batches(dataset: str, method: str, quick: bool) -> Options:
    """The options of a method that a preset does not have."""
    return {"batch_size": _QUICK_BATCH} if quick and parse(method).learner.looks_back else {}


@dataclasses.dataclass(frozen=True)
class Benchmark:
    """What the items on one kind of task share."""

    full: Scale
    quick: Scale
    steps: int  # of cloned methods in a full run
    options: Callable[[str, str, bool], Options]  # of a dataset in the store, a method, and a quick run
    fractions: tuple[float, ...]  # of the dataset's best: targets beside the sweep
    sources: tuple[Datasets, ...]  # of the data
    scores: str  # the remark about them
    recipes: str  # by which our datasets are generated
    spread: str = "± is the std over seeds, as in the paper"


LOCOMOTION = Benchmark(
    FULL,
    QUICK,
    STEPS,
    small_batches,
    (LESS,),
    ("ours", "d4rl"),
    "Scores are normalized as in D4RL; the target return is 1x expert unless stated otherwise.",
    "by D4RL's recipes with other behaviour policies",
)


@dataclasses.dataclass(frozen=True)
class Item:
    """A table or figure."""

    name: str  # on the command line
    place: str  # its number in the paper
    shows: str  # its content in one line
    variants: tuple[Variant | str, ...]  # trained on each dataset; none if the data alone decides the claims
    rules: Mapping[str, Rule]  # that decide its claims, by the paper's sentences
    exhibits: Callable[[Evidence], Exhibits]
    datasets: tuple[str, ...] = WALKERS  # short names, as in `published`
    quick_datasets: tuple[str, ...] = WALKERS  # those of a quick run
    needs_data: bool = False  # whether rules or exhibits use the trajectories
    full_only: tuple[str, ...] = ()  # methods that a quick run leaves out, unless they are named
    costly: tuple[str, ...] = ()  # methods that have FEW seeds in a full run, unless a number is given
    benchmark: Benchmark = LOCOMOTION

    def claims(self, evidence: Evidence) -> list[Claim]:
        """The claims as their rules decide them."""
        return [
            test(Claim(text, f"Rule: {words}.", holds=None), evidence)
            for text, (words, test) in self.rules.items()
        ]

    def names(self, datasets: Datasets, quick: bool) -> tuple[str, ...]:
        """The datasets' names in the store."""
        return tuple(named(each, datasets) for each in (self.quick_datasets if quick else self.datasets))

    def cells(self, names: Sequence[str], scale: Scale, seeds_are_given: bool = False) -> tuple[Cell, ...]:
        """Everything to train on datasets with these names in the store.

        Methods that need no target are evaluated without one.
        """
        cells, quick = [], scale.preset == self.benchmark.quick.preset
        for name, variant in itertools.product(names, self._trained(quick)):
            variant = Variant(variant, variant) if isinstance(variant, str) else variant
            options = {**self.benchmark.options(name, variant.method, quick), **variant.options}
            (cell,) = grid(name, dataclasses.replace(variant, options=options), scale)
            training, learner = cell.training, cell.method.learner
            if scale.steps is None:
                most = self.benchmark.steps if training.steps == STEPS else UPDATES
                training = dataclasses.replace(training, steps=min(training.steps, most))
            if cell.label in self.costly and not seeds_are_given:
                cell = dataclasses.replace(cell, seeds=cell.seeds[:FEW])
            about: dict[str, Any] = {"targets": (), "points": None}
            if learner.needs_target:
                about = {"fractions": self.benchmark.fractions}
            cells.append(dataclasses.replace(cell, training=training, **about))
        return tuple(cells)

    def _trained(self, quick: bool) -> tuple[Variant | str, ...]:
        left_out = self.full_only if quick else ()
        return tuple(each for each in self.variants if _label(each) not in left_out)

    def only(self, datasets: Sequence[str] | None, methods: Sequence[str] | None) -> Item:
        """The same item with only these datasets and methods; an unknown one is an error."""
        # Without spaces and capitals: "alpha=1" is "alpha = 1", "RvS" is "rvs".
        variants = {_label(each).replace(" ", "").lower(): each for each in self.variants}
        known_datasets = tuple(dict.fromkeys((*self.datasets, *self.quick_datasets)))
        for kind, names, known in (("dataset", datasets, known_datasets), ("method", methods, variants)):
            for name in names or ():
                if name not in known:
                    raise unknown(f"{kind} of this item", name, known)
        chosen = tuple(name for name in known_datasets if name in datasets) if datasets else None
        return dataclasses.replace(
            self,
            datasets=chosen or self.datasets,
            quick_datasets=chosen or self.quick_datasets,
            variants=tuple(variants[name] for name in variants if name in (methods or variants)),
            full_only=() if methods else self.full_only,
        )

    def count(self, quick: bool) -> int:
        """The number of cells."""
        return len(self._trained(quick)) * len(self.quick_datasets if quick else self.datasets)


def _label(variant: Variant | str) -> str:
    return variant if isinstance(variant, str) else variant.label
