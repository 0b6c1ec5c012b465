"""Where values lie along a side of a chart, and which of them are written there."""

from __future__ import annotations

import dataclasses
import math

from matplotlib.ticker import MaxNLocator


@dataclasses.dataclass(frozen=True)
class Scale:
    """A range of values laid over a range of pixels."""

    low: float
    high: float
    start: float  # the pixel of the lowest value
    end: float
    logarithmic: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value; NaN for what has no place."""
        if self.logarithmic:
            share = _ratio(value, self.low) / _ratio(self.high, self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, most: int) -> list[tuple[float, str]]:
        """Round values within the range and how to write them, about `most` of them at most."""
        values = _powers(self.low, self.high, most) if self.logarithmic else []
        if len(values) < 2:
            locator = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10])
            values = [float(value) + 0.0 for value in locator.tick_values(self.low, self.high)]
        slack = 1e-9 * (self.high - self.low)
        return [(v, _written(v)) for v in values if self.low - slack <= v <= self.high + slack]


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


def _written(value: float) -> str:
    return f"{value:,.6g}".replace("e-0", "e-").replace("e+0", "e").replace("-", "−")
