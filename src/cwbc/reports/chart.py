"""A chart as a value, from which both the interactive SVG of a page and the picture in a file are drawn."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Literal, NamedTuple

import numpy as np

from cwbc.core.tasks import Landmark
from cwbc.reports.method_styles import Looks, looks_of
from cwbc.results.intervals import Array
from cwbc.system.formatting import PERCENT, amount

FEW = 40  # points that have room for a marker each
DATASET = "the dataset"  # among the names of a chart


@dataclasses.dataclass(frozen=True)
class Axis:
    """One side of a chart."""

    title: str
    logarithmic: bool = False
    limits: tuple[float, float] = (math.nan, math.nan)  # by default just around what is drawn
    written: Callable[[float], str] = amount  # of the values that the pointer reads
    most: int = 6  # ticks; a horizontal axis has as many as there is room for

    def around(self, values: Array, margin: float) -> Axis:
        """The same axis with limits: its own, or the range of the values with a margin."""
        if not math.isnan(self.limits[0]):
            return self
        low, high = padded(np.log10(values[values > 0]) if self.logarithmic else values, margin)
        return dataclasses.replace(self, limits=(10**low, 10**high) if self.logarithmic else (low, high))

    def ticks(self, most: int | None = None) -> list[tuple[float, str]]:
        """Round values within the limits and how to write them, about `most` of them at most."""
        (low, high), most = self.limits, self.most if most is None else most
        if most == 0:
            return []
        values = _powers(low, high, most) if self.logarithmic else []
        if len(values) < 2:
            values = _round_numbers(low, high, most)
        slack = 1e-9 * (high - low)
        inside = [v for v in values if low - slack <= v <= high + slack]
        # As many digits as tell neighbours apart.
        step = min((b - a for a, b in pairwise(inside)), default=1.0)
        largest = max(map(abs, inside), default=1.0) or 1.0
        digits = max(6, math.ceil(math.log10(largest / step)) + 1)
        texts = (f"{value:,.{digits}g}".replace("e-0", "e-").replace("e+0", "e") for value in inside)
        return [(value, text.replace("-", "−")) for value, text in zip(inside, texts, strict=True)]


def _round_numbers(low: float, high: float, most: int) -> list[float]:
    """Multiples of 1, 2, 2.5 or 5 times a power of ten, from below to above: two within, `most` at most."""
    span, middle = high - low, (low + high) / 2
    # Far from 0, they are counted from a round number near them, for the sake of their last digits.
    far = abs(middle) >= 100 * span
    origin = math.copysign(10.0 ** math.floor(math.log10(abs(middle))), middle) if far else 0.0
    low, high = low - origin, high - origin
    power = 10.0 ** math.floor(math.log10(span / most))
    steps = [power * each for each in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 5, 10, 20)]
    count = next(number for number, step in enumerate(steps, 1) if step >= span / most)
    values: list[float] = []
    for step in reversed(steps[:count]):
        first, last = math.floor(low / step), math.ceil(high / step)
        values = [number * step for number in range(first, last + 1)]
        if sum(low <= value <= high for value in values) >= 2:
            break
    return sorted({value + origin for value in values})  # of limits within rounding, some are equal


def _powers(low: float, high: float, most: int) -> list[float]:
    """The values 1, 2 and 5 times powers of ten, or as few of these as there is room for."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
        values = [value for value in values if low <= value <= high]
        if len(values) <= most:
            return values
    return values[:: math.ceil(len(values) / most)]


@dataclasses.dataclass(frozen=True)
class Curve:
    """A named line with a band, NaN where there is none; a single x of NaN is a flat line, for every x."""

    name: str
    x: Array  # [point]
    value: Array  # [point]
    low: Array  # [point]
    high: Array  # [point]

    @property
    def points(self) -> Iterator[tuple[float, ...]]:
        """Each x with its value and the ends of the band."""
        return zip(*(each.tolist() for each in (self.x, self.value, self.low, self.high)), strict=True)

    @property
    def is_marked(self) -> bool:
        """Whether its points have room for a marker each."""
        return len(self.x) <= FEW and not self.is_flat

    @property
    def is_flat(self) -> bool:
        """Whether the one value holds for every x."""
        return len(self.x) == 1 and bool(np.isnan(self.x[0]))

    def spanning(self, ends: tuple[float, float]) -> Curve:
        """The curve to draw between the ends of an axis."""
        if not self.is_flat:
            return self
        value, low, high = (np.repeat(each, 2) for each in (self.value, self.low, self.high))
        return Curve(self.name, np.array(ends), value, low, high)


@dataclasses.dataclass(frozen=True)
class Stairs:
    """A histogram: bars where it is the dataset's or filled, else an outline."""

    name: str
    edges: Sequence[float]  # [bin + 1]
    heights: Sequence[float]  # [bin]
    filled: bool = False

    @property
    def bins(self) -> list[tuple[float, float, float]]:
        """The ends and the height of every bin."""
        return list(zip(self.edges[:-1], self.edges[1:], self.heights, strict=True))


@dataclasses.dataclass(frozen=True)
class EstimateRow:
    """A row with a number of a method; NaN ends where there is no interval."""

    name: str  # of the method
    value: float
    low: float = math.nan
    high: float = math.nan
    label: str = ""  # of the row, where the method has several

    @property
    def title(self) -> str:
        """What stands beside the row."""
        return self.label or self.name


Layer = Curve | Stairs | EstimateRow


@dataclasses.dataclass(frozen=True)
class Shade:
    """A range of the horizontal axis, shaded in all panels, by default up to its end."""

    start: float
    end: float = math.inf
    name: str = ""  # in the legend where it has a look, else inside of it
    look: int | None = None


@dataclasses.dataclass(frozen=True)
class Panel:
    """Layers above one horizontal axis; estimates stand in rows and share a panel with nothing else."""

    up: Axis
    layers: Sequence[Layer]
    heading: str = ""  # of a panel below another one
    right: Axis | None = None  # the same values in another unit
    diagonal: str = ""  # the name of the line on which both coordinates are equal, if it is drawn


@dataclasses.dataclass(frozen=True)
class Chart:
    """Panels above each other that share their horizontal axis; all axes have limits."""

    title: str
    across: Axis
    panels: Sequence[Panel]  # the pointer reads the values of the first
    looks: Looks  # of every name in the legend
    caption: str = ""
    marks: Sequence[Landmark] = ()  # vertical lines
    shades: Sequence[Shade] = ()
    file: str = ""  # what its CSV and PNG are called; by default after the title

    @property
    def estimates(self) -> list[EstimateRow]:
        """Its rows, where it is a chart of intervals."""
        return [layer for layer in self.panels[0].layers if isinstance(layer, EstimateRow)]


def line_chart(
    title: str, curves: Sequence[Curve], across: Axis, up: Axis, names: Sequence[str] = (), caption: str = ""
) -> Chart:
    """Lines with bands; a method looks alike in all charts that are given the same names, all of the page."""
    values = np.concatenate([ends for curve in curves for ends in (curve.value, curve.low, curve.high)])
    across = across.around(np.concatenate([curve.x for curve in curves]), 0.01)
    looks = looks_of([curve.name for curve in curves], names)
    return Chart(title, across, [Panel(up.around(values, 0.04), curves)], looks, caption)


def histogram_chart(
    title: str,
    edges: Sequence[float],  # [bin + 1]
    held: Sequence[float],  # [bin]: fractions of the dataset
    drawn: Mapping[str, Sequence[float]],  # [bin] by name: fractions of what is sampled
    across: Axis,
    looks: Mapping[str, int],
    caption: str = "",
) -> Chart:
    """The dataset as bars, and what is sampled from it as outlines; all as fractions."""
    fractions = {DATASET: held, **drawn}
    layers = [Stairs(name, edges, [100 * each for each in of]) for name, of in fractions.items()]
    top = 1.05 * max(max(layer.heights) for layer in layers)
    up = Axis("fraction, %", limits=(0.0, top), written=lambda value: f"{value:.3g}{PERCENT}")
    across = across.around(np.array(edges), 0.01)
    return Chart(title, across, [Panel(up, layers)], {DATASET: None, **looks}, caption)


def interval_chart(
    title: str, estimates: Sequence[EstimateRow], across: Axis, names: Sequence[str] = (), caption: str = ""
) -> Chart:
    """Numbers of methods with their intervals in rows."""
    looks = looks_of([estimate.name for estimate in estimates], names)
    across = across.around(np.array([(e.value, e.low, e.high) for e in estimates]), 0.04)
    rows = Panel(Axis("", limits=(0.0, float(len(estimates)))), estimates)
    return Chart(title, across, [rows], looks, caption)


def padded(values: Array, margin: float) -> tuple[float, float]:
    """The range of the finite values, by default 0 to 1, with a margin, a fraction of it, on both sides."""
    values = values[np.isfinite(values)]
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) or max(1.0, abs(high)) * margin
    return low - room, high + room


Side = Literal["middle", "start", "end"]


class Label(NamedTuple):
    """Where a text goes that belongs to a place."""

    x: float  # the place
    side: Side  # of the text, that is put at the place
    tier: int  # counted from the bottom
    start: float
    end: float

    def meets(self, other: Label) -> bool:
        """Whether both would overlap."""
        return self.tier == other.tier and self.start < other.end + 6 and other.start < self.end + 6


def place_labels(wanted: Sequence[tuple[float, float]], low: float, high: float) -> Sequence[Label]:
    """Labels at places with widths that stay inside and do not overlap, rather low than high, and centred."""
    choices = []
    for x, width in wanted:
        starts: dict[Side, float] = {"middle": x - width / 2, "start": x + 4, "end": x - width - 4}
        inside = {side: start for side, start in starts.items() if low <= start <= high - width}
        tiers = product(range(len(wanted)), inside.items())
        choices.append([Label(x, side, tier, start, start + width) for tier, (side, start) in tiers])
    every = product(*choices)
    placed = (each for each in every if not any(one.meets(other) for one, other in combinations(each, 2)))
    return min(placed, key=_strangeness, default=())


def _strangeness(labels: Sequence[Label]) -> int:
    crossed = sum(one.tier == other.tier and one.start > other.start for one, other in pairwise(labels))
    struck = sum(
        one.start < other.x < one.end and one.tier < other.tier for one, other in permutations(labels, 2)
    )
    higher = sum(label.tier for label in labels)
    return 20 * crossed + 10 * higher + 3 * struck + sum(label.side != "middle" for label in labels)
