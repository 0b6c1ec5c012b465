from __future__ import annotations

import math

import pytest

from cwbc.reports.chart import Axis
from cwbc.reports.svg import PixelScale


def test_a_scale_lays_values_over_pixels() -> None:
    scale = PixelScale(Axis("", limits=(0, 10)), 100, 300)
    assert [scale(value) for value in (0, 5, 10, 15)] == [100, 200, 300, 400]
    assert PixelScale(scale.axis, 300, 100)(2.5) == 250  # upwards, as pixels count down


def test_equal_ratios_are_equal_distances_on_a_logarithmic_scale() -> None:
    scale = PixelScale(Axis("", logarithmic=True, limits=(0.01, 100)), 0, 400)
    assert [scale(value) for value in (0.01, 0.1, 1, 10, 100)] == pytest.approx([0, 100, 200, 300, 400])
    assert math.isnan(scale(0))
    assert math.isnan(scale(-1))


@pytest.mark.parametrize(
    ("low", "high", "logarithmic", "expected"),
    [
        (-1200, 4100, False, ["−1,000", "0", "1,000", "2,000", "3,000", "4,000"]),
        (0.02, 0.6, True, ["0.02", "0.05", "0.1", "0.2", "0.5"]),
        (1e-7, 2, True, ["1e−7", "1e−5", "0.001", "0.1"]),
        # Within one power of ten.
        (0.4, 0.45, True, ["0.4", "0.41", "0.42", "0.43", "0.44", "0.45"]),
        # As many digits as it takes.
        (1_234_561, 1_234_566.5, False, [f"1,234,56{i}" for i in range(1, 7)]),
    ],
)
def test_ticks_are_round_and_inside(low: float, high: float, logarithmic: bool, expected: list[str]) -> None:
    ticks = Axis("", logarithmic, (low, high)).ticks(6)
    assert [words for _, words in ticks] == expected
    assert all(low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9) for value, _ in ticks)
