"""Where values lie along a side of a chart, which of them are written there, and where labels have room."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Literal, NamedTuple

from matplotlib.ticker import MaxNLocator

Side = Literal["middle", "start", "end"]  # of a text, that is put at a place


@dataclasses.dataclass(frozen=True)
class PixelScale:
    """A range of values laid over a range of pixels."""

    low: float
    high: float
    start: float  # the pixel of the lowest value
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; NaN for what has no place."""
        if self.logarithmic:
            fraction = _ratio(value, self.low) / _ratio(self.high, self.low)
        else:
            fraction = (value - self.low) / (self.high - self.low)
        return self.start + fraction * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round values within the range and how to write them, about `most` of them at most."""
        if most == 0:
            return []
        values = _powers(self.low, self.high, most) if self.logarithmic else []
        if len(values) < 2:
            locator = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])
            values = [float(value) + 0.0 for value in locator.tick_values(self.low, self.high)]
        slack = 1e-9 * (self.high - self.low)
        inside = [v for v in values if self.low - slack <= v <= self.high + slack]
        # As many digits as tell neighbours apart.
        step = min((b - a for a, b in pairwise(inside)), default=1.0)
        largest = max(map(abs, inside), default=1.0) or 1.0
        digits = max(6, math.ceil(math.log10(largest / step)) + 1)
        return [(v, _written(v, digits)) for v in inside]


def _ratio(value: float, to: float) -> float:
    return math.log(value / to) if value > 0 else math.nan


def _powers(low: float, high: float, most: int) -> list[float]:
    """The values 1, 2 and 5 times powers of ten, or as few of these as there is room for."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for factors in ((1, 2, 5), (1, 3), (1,)):
        values = [float(f"{factor}e{decade}") for decade in decades for factor in factors]
        values = [value for value in values if low <= value <= high]
        if len(values) <= most:
            return values
    return values[:: math.ceil(len(values) / most)]


def _written(value: float, digits: int) -> str:
    return f"{value:,.{digits}g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")


class Label(NamedTuple):
    """Where a text goes that belongs to a place."""

    x: float  # the place
    side: Side
    tier: int  # counted from the bottom
    start: float
    end: float

    def meets(self, other: Label) -> bool:
        """Whether both would overlap."""
        return self.tier == other.tier and self.start < other.end + 6 and other.start < self.end + 6


def place_labels(wanted: Sequence[tuple[float, float]], low: float, high: float) -> Sequence[Label]:
    """Labels that do not overlap, rather low than high, and centred rather than beside their places.

    Args:
        wanted: the place of each, in order, and its width.
        low: where the room for them begins; `high`, where it ends.
    """
    choices = []
    for x, width in wanted:
        starts: dict[Side, float] = {"middle": x - width / 2, "start": x + 4, "end": x - width - 4}
        choices.append(
            [
                Label(x, side, tier, start, start + width)
                for tier in range(len(wanted))
                for side, start in starts.items()
                if start >= low and start + width <= high
            ]
        )
    apart = (
        labels
        for labels in product(*choices)
        if not any(one.meets(other) for one, other in combinations(labels, 2))
    )
    return min(apart, key=_strangeness, default=())


def _strangeness(labels: Sequence[Label]) -> int:
    crossed = sum(one.tier == other.tier and one.start > other.start for one, other in pairwise(labels))
    struck = sum(
        one.start < other.x < one.end and one.tier < other.tier for one, other in permutations(labels, 2)
    )
    higher = sum(label.tier for label in labels)
    return 20 * crossed + 10 * higher + 3 * struck + sum(label.side != "middle" for label in labels)
