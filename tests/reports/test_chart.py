from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import numpy as np
import pytest
from pages import Read, html

from cwbc.reports.chart import Axis, Chart, Curve, EstimateRow, histogram_chart, interval_chart, line_chart

NAN = math.nan
CURVES = [
    Curve(
        "a<b",
        np.array([0.0, 1.0, 2.0, 3.0]),
        np.array([1.0, NAN, 3.0, 4.0]),
        np.array([0.5, NAN, 2.0, 3.5]),
        np.array([1.5, NAN, 4.0, 4.5]),
    ),
    Curve("c", np.array([1.0, 2.5]), np.array([10.0, 100.0]), np.full(2, NAN), np.full(2, NAN)),
]
LINES = line_chart("Some lines", CURVES, Axis("step"), Axis("loss", logarithmic=True), caption="why & what")


def scales(chart: Chart) -> list[dict[str, Any]]:
    return [json.loads(found["data-scales"]) for found in Read(html(chart)).having("data-scales")]


def place(scale: list[Any], value: float) -> float:
    start, end, low, high, logarithmic = scale
    share = math.log(value / low) / math.log(high / low) if logarithmic else (value - low) / (high - low)
    return float(start + share * (end - start))


def paths(chart: Chart, kind: str) -> list[str]:
    return [found["d"] for found in Read(html(chart)).having("class", kind) if "d" in found]


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+) (-?[\d.]+)", path)]


def test_lines_go_where_the_scales_say_with_gaps_where_there_is_no_value() -> None:
    lines = paths(LINES, "line")
    lines = [d for d in lines if d.startswith("M")]
    assert len(lines) == 4  # two curves in two sizes
    for drawn, scale in zip((lines[0], lines[2]), scales(LINES), strict=True):
        expected = [(place(scale["across"], x), place(scale["up"], y)) for x, y in ((0, 1), (2, 3), (3, 4))]
        np.testing.assert_allclose(points(drawn), expected, atol=0.06)
        assert [letter for letter in drawn if letter.isalpha()] == ["M", "M", "L"]
    first, second, *_ = paths(LINES, "band")
    assert len(points(first)) == 6  # high ends, then low ends, of the three points that have both
    assert len(paths(LINES, "band")) == 2  # the other curve has no interval, in either size
    assert first != second


def test_hovering_tells_values_and_intervals() -> None:
    (data,) = Read(html(LINES)).data
    assert [words for _, words in data["stops"]] == ["step 0", "step 1", "step 2", "step 2.5", "step 3"]
    first, second = data["series"]
    assert first["name"] == "a<b"
    assert first["values"] == [
        [1.0, "1", "0.5 to 1.5"],
        None,
        [3.0, "3", "2 to 4"],
        None,
        [4.0, "4", "3.5 to 4.5"],
    ]
    assert second["values"] == [None, [10.0, "10", ""], None, [100.0, "100", ""], None]


def test_the_csv_of_a_chart_is_what_it_shows() -> None:
    (data,) = Read(html(LINES)).data
    assert data["file"] == "some-lines"
    rows = list(csv.reader(io.StringIO(data["csv"])))
    assert rows[0] == ["method", "step", "loss", "low", "high"]
    assert rows[1] == ["a<b", "0.0", "1.0", "0.5", "1.5"]
    assert rows[2] == ["a<b", "1.0", "", "", ""]
    assert rows[-1] == ["c", "2.5", "100.0", "", ""]


def test_a_method_looks_alike_in_all_charts_of_a_page() -> None:
    names = ["c", "other", "a<b"]
    for chart in (
        line_chart("", CURVES, Axis("x"), Axis("y"), names),
        interval_chart("", [EstimateRow("a<b", 1), EstimateRow("c", 2)], Axis("x"), names),
    ):
        found = {g["data-series"]: g["class"] for g in Read(html(chart)).having("data-series")}
        assert found == {"a<b": "series look-2", "c": "series look-0"}


def test_the_ninth_method_is_dashed() -> None:
    curves = [Curve(str(i), *(np.array([float(i)]),) * 4) for i in range(10)]
    chart = line_chart("", curves, Axis("x"), Axis("y"))
    found = [g["class"] for g in Read(html(chart)).having("data-series")]
    assert found[7:10] == ["series look-7", "series look-0 dashed", "series look-1 dashed"]


def test_histograms_are_fractions_per_bin() -> None:
    chart = histogram_chart(
        "Returns", (0.0, 1.0, 3.0), (0.75, 0.25), {"by return": (0.1, 0.9)}, Axis("return"), {"by return": 3}
    )
    (data,) = Read(html(chart)).data
    assert data["stops"] == [[0.5, "return 0 to 1"], [2.0, "return 1 to 3"]]
    assert {s["name"]: [v[1] for v in s["values"]] for s in data["series"]} == {
        "the dataset": ["75\u00a0%", "25\u00a0%"],
        "by return": ["10\u00a0%", "90\u00a0%"],
    }
    (scale, _) = scales(chart)
    bars = points(paths(chart, "bars")[0])
    corners = [(0, 0), (0, 75), (1, 75), (1, 25), (3, 25), (3, 0)]
    expected = [(place(scale["across"], x), place(scale["up"], y)) for x, y in corners]
    np.testing.assert_allclose(bars, expected, atol=0.06)


def test_intervals_stand_in_rows() -> None:
    estimates = [EstimateRow("a", 5.0, 4.0, 7.0), EstimateRow("b", 2.0)]
    chart = interval_chart("IQM", estimates, Axis("score"))
    scale, _ = scales(chart)
    ((x1, y), (x2, also_y)) = points(paths(chart, "reach")[0])
    assert (x1, x2) == pytest.approx((place(scale["across"], 4), place(scale["across"], 7)), abs=0.06)
    assert y == also_y == pytest.approx(place(scale["up"], 0.5), abs=0.06)
    assert len(paths(chart, "reach")) == 2  # one seed has none
    (data,) = Read(html(chart)).data
    assert data["along"] == "up"
    assert data["series"][0]["values"] == [[5.0, "5", "4 to 7"], None]
    assert data["series"][1]["values"] == [None, [2.0, "2", ""]]


@pytest.mark.parametrize("value", [NAN, 0.0, -1.0])
def test_values_that_cannot_be_drawn_leave_an_empty_chart(value: float) -> None:
    curve = Curve("a", np.array([1.0]), np.array([value]), np.array([NAN]), np.array([NAN]))
    text = html(line_chart("", [curve], Axis("x"), Axis("y", logarithmic=True)))
    assert "nan" not in text.lower()
    Read(text)


def test_several_numbers_of_a_method_look_alike_and_hide_together() -> None:
    estimates = [
        EstimateRow("a", 1.0, label="a, near"),
        EstimateRow("a", 2.0, label="a, far"),
        EstimateRow("b", 3.0),
    ]
    shown = Read(html(interval_chart("", estimates, Axis("score"))))
    drawn = [g["data-series"] for g in shown.having("data-series") if g["class"].startswith("series look")]
    assert drawn == ["a", "a", "b"] * 2  # wide and narrow
    (data,) = shown.data
    assert [words for _, words in data["stops"]] == ["score, a, near", "score, a, far", "score"]
    places = [[v and v[0] for v in s["values"]] for s in data["series"]]
    assert places == [[1.0, 2.0, None], [None, None, 3.0]]
