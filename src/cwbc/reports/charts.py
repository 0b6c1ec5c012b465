"""A chart as a value, from which both the interactive SVG of a page and the picture in a file are drawn."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from cwbc.core.tasks import Landmark
from cwbc.reports.looks import Looks, looks_of
from cwbc.results.intervals import Array
from cwbc.system.formatting import PERCENT, amount

FEW = 40  # points that have room for a marker each
DATASET = "the dataset"  # among the names of a chart


@dataclasses.dataclass(frozen=True)
class Axis:
    """One side of a chart."""

    title: str
    logarithmic: bool = False
    limits: tuple[float, float] | None = None  # by default just around what is drawn
    written: Callable[[float], str] = amount  # of the values that the pointer reads
    ticks: int = 6  # at most; for a horizontal axis, as many as there is room for

    @property
    def ends(self) -> tuple[float, float]:
        """The limits of an axis that has some."""
        assert self.limits is not None
        return self.limits

    def around(self, values: Sequence[Array], margin: float) -> Axis:
        """The same axis with limits: its own, or the range of the values with a margin."""
        if self.limits is not None:
            return self
        known = np.concatenate([np.ravel(each) for each in values]) if values else np.empty(0)
        known = known[np.isfinite(known) & (known > 0 if self.logarithmic else True)]
        if known.size == 0:
            limits = (0.1, 1.0) if self.logarithmic else (0.0, 1.0)
        elif self.logarithmic:
            low, high = padded(np.log10(known), margin)
            limits = (10**low, 10**high)
        else:
            limits = padded(known, margin)
        return dataclasses.replace(self, limits=limits)


@dataclasses.dataclass(frozen=True)
class Curve:
    """A named line with a band, NaN where there is none; a single x of NaN is a flat line, for every x."""

    name: str
    x: Array  # [point]
    value: Array  # [point]
    low: Array  # [point]
    high: Array  # [point]

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


@dataclasses.dataclass(frozen=True)
class EstimateRow:
    """A row with a number of a method; NaN ends where there is no interval, `published` by others."""

    name: str
    value: float
    low: float = math.nan
    high: float = math.nan
    published: float | None = None
    of: str = ""  # the method, where it has several numbers

    @property
    def method(self) -> str:
        """The name that it is hidden by."""
        return self.of or self.name


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

    @property
    def keys(self) -> dict[str, str]:
        """What the legend explains beside the names: the class of each line in the style sheet."""
        diagonals = {panel.diagonal: "equal" for panel in self.panels if panel.diagonal}
        return diagonals | ({"published": "published"} if _published(self.estimates) else {})


def line_chart(
    title: str,
    curves: Sequence[Curve],
    across: Axis,
    up: Axis,
    names: Sequence[str] = (),
    caption: str = "",
) -> Chart:
    """Lines with bands, such as losses or performance profiles.

    Args:
        names: every name of the page, in order: a method looks alike in all charts that are given the same.
    """
    values = [ends for curve in curves for ends in (curve.value, curve.low, curve.high)]
    across = across.around([curve.x for curve in curves], 0.01)
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
    across = across.around([np.array(edges)], 0.01)
    return Chart(title, across, [Panel(up, layers)], {DATASET: None, **looks}, caption)


def interval_chart(
    title: str,
    estimates: Sequence[EstimateRow],
    across: Axis,
    names: Sequence[str] = (),
    caption: str = "",
) -> Chart:
    """Numbers of methods with their intervals in rows, and beside them what was published."""
    looks = looks_of([estimate.method for estimate in estimates], names)
    ends = np.array([(e.value, e.low, e.high) for e in estimates])
    across = across.around([ends, np.array(_published(estimates))], 0.04)
    return Chart(
        title, across, [Panel(Axis("", limits=(0.0, float(len(estimates)))), estimates)], looks, caption
    )


def padded(values: Array, margin: float) -> tuple[float, float]:
    """The range of the finite values with a margin, a fraction of it, on both sides."""
    values = values[np.isfinite(values)]
    low, high = float(values.min()), float(values.max())
    room = margin * (high - low) or max(1.0, abs(high)) * margin
    return low - room, high + room


def bins(stairs: Stairs) -> list[tuple[float, float]]:
    """The ends of every bin."""
    return list(itertools.pairwise(stairs.edges))


def _published(estimates: Sequence[EstimateRow]) -> list[float]:
    return [estimate.published for estimate in estimates if estimate.published is not None]
