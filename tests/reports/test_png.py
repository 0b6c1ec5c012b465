from __future__ import annotations

import dataclasses
import io
import itertools
import math
import struct

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pages import DATASET, history, once
from PIL import Image

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.chart import Axis, Chart, EstimateRow, interval_chart
from cwbc.reports.dataset_charts import sampled_chart, training_chart
from cwbc.reports.png import DOTS_PER_INCH, draw, picture, to_png
from cwbc.reports.reliability_chart import reliability_chart
from cwbc.results.evaluated import evaluated
from cwbc.results.intervals import interval
from cwbc.results.sweeps import Sweep

HISTORIES = {
    "bc": history("ByLength", (0.5, 0.5), [[4.0, 8.0], [2.0, 4.0], [1.0, 3.0], [1.0, 1.0]]),
    "rvs+w": history("ByReturn", (0.1, 0.9), [[0.5, 0.5], [0.25, 0.25]], every=200),
}


def sweep(method: str, seeds: int = 3, targets: tuple[float, ...] = (1000.0, 3200.0, 6400.0)) -> Sweep:
    random = np.random.default_rng([seeds, *method.encode()])
    returns = random.normal(1000, 200, (seeds, len(targets), 4))
    return Sweep(method, np.arange(seeds), np.array(targets), returns, np.ones(returns.shape, np.int64))


def drawn(*sweeps: Sweep, dataset: DatasetSummary = DATASET) -> tuple[Figure, Axes, Axes]:
    """The figure of reliability, with the axes of the curves and of the histogram."""
    figure = draw(reliability_chart(evaluated(sweeps, dataset)), dataset.name)
    curves, histogram, *_ = figure.axes
    return figure, curves, histogram


def test_the_curves_are_the_sweeps() -> None:
    sweeps = [sweep("rvs"), sweep("rvs+cwbc")]
    _, curves, _ = drawn(*sweeps)
    lines = {line.get_label(): line for line in curves.lines}
    bands = list(curves.collections)
    assert len(bands) == 2
    for band, one in zip(bands, sweeps, strict=True):
        mean, low, high = interval(one.returns.mean(axis=2))
        x, y = one.targets, lines[one.method].get_ydata()
        np.testing.assert_array_equal(lines[one.method].get_xdata(), x)
        np.testing.assert_array_equal(y, mean)
        corners = {tuple(corner) for corner in np.asarray(band.get_paths()[0].vertices)}
        assert {*zip(x, low, strict=True), *zip(x, high, strict=True)} <= corners


def test_landmarks_diagonal_and_labels() -> None:
    figure, curves, _ = drawn(sweep("rvs"))
    ends = [np.asarray(line.get_data()) for line in curves.lines]
    assert any(np.array_equal(*each) and np.ptp(each) > 0 for each in ends)  # achieved = target
    assert {x[0] for x, _ in ends if np.ptp(x) == 0} == {1500.0, 3200.0, 6400.0}
    texts = {text.get_text() for text in curves.texts}
    assert texts == {"dataset's best\n1,500", "1× expert\n3,200", "2× expert\n6,400"}
    assert curves.get_ylabel() == "achieved return"
    assert curves.get_title(loc="left") == "hops"
    assert "achieved = target" in [text.get_text() for text in figure.legends[0].get_texts()]


def test_the_normalized_score_is_the_same_axis() -> None:
    figure, curves, _ = drawn(sweep("rvs"))
    (right,) = [axes for axes in figure.axes if axes.get_ylabel() == "normalized score"]
    expected = DATASET.task.normalize(np.array(curves.get_ylim()))
    np.testing.assert_allclose(right.get_ylim(), expected)


def test_the_histogram_shares_the_target_axis() -> None:
    _, curves, histogram = drawn(sweep("rvs"))
    (stairs,) = [patch for patch in histogram.patches if hasattr(patch, "get_data")]
    np.testing.assert_array_equal(stairs.get_data().values, DATASET.histogram_counts)
    np.testing.assert_array_equal(stairs.get_data().edges, DATASET.histogram_edges)
    assert histogram.get_xlabel() == "target return"
    assert histogram.get_xlim() == curves.get_xlim()


def test_unpublished_references_are_not_called_expert() -> None:
    _, curves, _ = drawn(sweep("rvs"), dataset=dataclasses.replace(DATASET, environment="Unknown-v0"))
    assert {text.get_text() for text in curves.texts} == {"dataset's best\n1,500", "best + range\n3,020"}


def test_one_seed_has_no_band() -> None:
    _, curves, _ = drawn(sweep("rvs", seeds=1))
    assert not curves.collections


@pytest.mark.parametrize("best", [1500.0, 3190.0, 3213.0, 6390.0])
def test_landmarks_do_not_write_over_each_other(best: float) -> None:
    figure, curves, _ = drawn(sweep("rvs"), dataset=dataclasses.replace(DATASET, best=best))
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in curves.texts]
    assert len(boxes) == 3
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(0 <= box.x0 < box.x1 <= figure.bbox.width for box in boxes)


DOLLARS = dataclasses.replace(DATASET, name="dollars $ and _under_scores_")
NEGATIVE = dataclasses.replace(DATASET, environment=None, lowest=-5.0, best=-1.0)
MANY = [sweep(f"a method of a long name, costing $5 to $6, with the number {i}") for i in range(8)]
TRAINING, RETURNS = training_chart(HISTORIES), sampled_chart(HISTORIES, DATASET)
assert TRAINING is not None
assert RETURNS is not None
DOLLARS = dataclasses.replace(DATASET, name="dollars $ and _under_scores_")
INTERVALS = interval_chart(
    "IQM", [EstimateRow("a $", 5.0, 4.0, 7.0), EstimateRow("b", math.nan)], Axis("score")
)


@pytest.mark.parametrize(
    ("chart", "height"),
    [
        (reliability_chart(evaluated(MANY, DOLLARS)), 1280),
        (reliability_chart(evaluated([sweep("rvs", seeds=1, targets=(-3.0,))], NEGATIVE)), 1280),
        (reliability_chart(evaluated([once("bc", 690.0, 700.0, 710.0)], DATASET)), 1280),
        (TRAINING, 1040),
        (RETURNS, 1040),
        (INTERVALS, 1040),
    ],
    ids=["eight long names", "one seed, one negative target", "no target", "losses", "returns", "intervals"],
)
def test_a_picture_is_a_png_of_its_size(chart: Chart, height: int) -> None:
    png = picture(chart)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (1800, height)


def test_the_legend_tells_long_names_apart_and_stays_inside() -> None:
    figure, *_ = drawn(*MANY)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(set(names)) == 9  # and the diagonal
    assert not any(text.get_parse_math() for text in legend.get_texts())
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.get_figwidth() * DOTS_PER_INCH


def test_few_colours_change_nothing_that_one_would_see() -> None:
    figure, *_ = drawn(*MANY)
    exact = io.BytesIO()
    figure.savefig(exact, format="png")
    pictures = (exact, io.BytesIO(to_png(figure)))
    ours, theirs = (np.asarray(Image.open(each).convert("RGB"), dtype=int) for each in pictures)
    difference = np.abs(ours - theirs).max(axis=-1)
    assert difference.mean() < 1.0  # of 255
    assert (difference > 32).mean() < 0.002  # edges of letters and lines


def test_a_method_that_takes_no_target_is_flat_from_edge_to_edge() -> None:
    bc = once("bc", 690.0, 700.0, 710.0)
    _, curves, _ = drawn(sweep("rvs"), bc)
    (line,) = (line for line in curves.lines if line.get_label() == "bc")
    assert tuple(np.asarray(line.get_xdata())) == curves.get_xlim()
    assert np.asarray(line.get_ydata()).tolist() == [700.0, 700.0]
    _, low, high = interval(bc.returns.mean(axis=2))
    heights = np.asarray(curves.collections[1].get_paths()[0].vertices)[:, 1]
    assert {*heights} == {*low, *high}


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (1, "One seed: too few seeds for an interval."),
        (2, "Means over 2 seeds. Bands span both seeds: too few seeds for an interval."),
        (3, "Means over 3 seeds. Bands are 95 % intervals over seeds."),
    ],
)
def test_the_caption_says_what_bands_are(seeds: int, words: str) -> None:
    figure, *_ = drawn(sweep("rvs", seeds))
    assert figure.legends[0].get_title().get_text().startswith(words)


def test_intervals_stand_in_rows() -> None:
    axes, *_ = draw(INTERVALS).axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a $", "b"]
    assert axes.get_xlabel() == "score"
    ends = [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    assert [4.0, 7.0] in ends
