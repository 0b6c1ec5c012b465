from __future__ import annotations

import dataclasses
import io
import itertools
import struct

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from pages import once
from PIL import Image

from cwbc.dataset_summary import DatasetSummary
from cwbc.intervals import interval
from cwbc.reporting.figures import INCHES, draw, reliability_figure
from cwbc.reporting.png import DOTS_PER_INCH, blank, to_png
from cwbc.results import Sweep
from cwbc.tasks import TASKS

TASK = TASKS["hopper"]
DATASET = DatasetSummary(
    "hops", "Hopper-v5", "abc", 6, 60, -20.0, 1500.0, 700.0, (-20.0, 740.0, 1500.0), (4, 2)
)


def sweep(method: str, seeds: int = 3, targets: tuple[float, ...] = (1000.0, 3200.0, 6400.0)) -> Sweep:
    random = np.random.default_rng([seeds, *method.encode()])
    returns = random.normal(1000, 200, (seeds, len(targets), 4))
    return Sweep(method, np.arange(seeds), np.array(targets), returns, np.ones(returns.shape, np.int64))


def figure() -> Figure:
    drawn = Figure(layout="constrained")
    FigureCanvasAgg(drawn)
    return drawn


def test_the_curves_are_the_sweeps() -> None:
    sweeps = [sweep("rvs"), sweep("rvs+cwbc")]
    curves, _ = draw(figure(), sweeps, DATASET)
    lines = {line.get_label(): line for line in curves.lines}
    bands = list(curves.collections)
    assert len(bands) == 2
    for band, measured in zip(bands, sweeps, strict=True):
        mean, low, high = interval(measured.returns.mean(axis=2))
        x, y = measured.targets, lines[measured.method].get_ydata()
        np.testing.assert_array_equal(lines[measured.method].get_xdata(), x)
        np.testing.assert_array_equal(y, mean)
        corners = {tuple(corner) for corner in np.asarray(band.get_paths()[0].vertices)}
        assert {*zip(x, low, strict=True), *zip(x, high, strict=True)} <= corners


def test_landmarks_diagonal_and_labels() -> None:
    curves, _ = draw(figure(), [sweep("rvs")], DATASET)
    lines = {str(line.get_label()): line for line in curves.lines}
    x, y = lines["achieved = target"].get_data()
    np.testing.assert_array_equal(x, y)
    across = [np.asarray(line.get_xdata()) for line in curves.lines]
    assert {x[0] for x in across if np.ptp(x) == 0} == {1500.0, 3200.0, 6400.0}
    texts = {text.get_text() for text in curves.texts}
    assert texts == {"dataset's best\n1,500", "1× expert\n3,200", "2× expert\n6,400"}
    assert curves.get_ylabel() == "achieved return"
    assert curves.get_title(loc="left") == "hops"


def test_the_histogram_shares_the_asked_axis() -> None:
    curves, histogram = draw(figure(), [sweep("rvs")], DATASET)
    (stairs,) = [patch for patch in histogram.patches if hasattr(patch, "get_data")]
    np.testing.assert_array_equal(stairs.get_data().values, DATASET.histogram_counts)
    np.testing.assert_array_equal(stairs.get_data().edges, DATASET.histogram_edges)
    assert histogram.get_xlabel() == "target return"
    assert histogram.get_xlim() == curves.get_xlim()


def test_unpublished_references_are_not_called_expert() -> None:
    curves, _ = draw(figure(), [sweep("rvs")], dataclasses.replace(DATASET, environment="Unknown-v0"))
    assert {text.get_text() for text in curves.texts} == {"dataset's best\n1,500", "best + range\n3,020"}


def test_one_seed_has_no_band() -> None:
    curves, _ = draw(figure(), [sweep("rvs", seeds=1)], DATASET)
    assert not curves.collections


def test_close_landmarks_do_not_write_over_each_other() -> None:
    drawn = figure()
    curves, _ = draw(drawn, [sweep("rvs")], dataclasses.replace(DATASET, best=3213.0))
    drawn.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in curves.texts), key=lambda box: box.x0)
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(boxes))


NEGATIVE = dataclasses.replace(DATASET, environment=None, lowest=-5.0, best=-1.0)
MANY = [sweep(f"a method of a long name, costing $5 to $6, with the number {i}") for i in range(8)]


@pytest.mark.parametrize(
    ("sweeps", "dataset"),
    [
        (MANY, dataclasses.replace(DATASET, name="dollars $ and _under_scores_")),
        ([sweep("rvs", seeds=1, targets=(-3.0,))], NEGATIVE),
    ],
    ids=["eight long names", "one seed, one negative target"],
)
def test_the_figure_is_a_png_of_its_size(sweeps: list[Sweep], dataset: DatasetSummary) -> None:
    png = reliability_figure(sweeps, dataset)
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == tuple(int(side * DOTS_PER_INCH) for side in INCHES)


def test_the_legend_tells_long_names_apart_and_stays_inside() -> None:
    drawn = Figure(figsize=INCHES, dpi=DOTS_PER_INCH, layout="constrained")
    FigureCanvasAgg(drawn)
    draw(drawn, MANY, DATASET)
    drawn.draw_without_rendering()
    (legend,) = drawn.legends
    names = [text.get_text() for text in legend.get_texts()]
    assert len(set(names)) == 9  # and the diagonal
    assert not any(text.get_parse_math() for text in legend.get_texts())
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= INCHES[0] * DOTS_PER_INCH


def test_few_colours_change_nothing_that_one_would_see() -> None:
    drawn, exact = blank(INCHES), io.BytesIO()
    draw(drawn, MANY, DATASET)
    drawn.savefig(exact, format="png")
    pictures = (exact, io.BytesIO(to_png(drawn)))
    ours, theirs = (np.asarray(Image.open(each).convert("RGB"), dtype=int) for each in pictures)
    difference = np.abs(ours - theirs).max(axis=-1)
    assert difference.mean() < 1.0  # of 255
    assert (difference > 32).mean() < 0.002  # edges of letters and lines


def test_a_method_that_takes_no_target_is_level_from_edge_to_edge() -> None:
    bc = once("bc", 690.0, 700.0, 710.0)
    curves, _ = draw(figure(), [sweep("rvs"), bc], DATASET)
    (line,) = (line for line in curves.lines if line.get_label() == "bc (takes no target)")
    assert tuple(np.asarray(line.get_xdata())) == curves.get_xlim()
    assert np.asarray(line.get_ydata()).tolist() == [700.0, 700.0]
    _, low, high = interval(bc.returns.mean(axis=2))
    heights = np.asarray(curves.collections[1].get_paths()[0].vertices)[:, 1]
    assert {*heights} == {*low, *high}
    assert reliability_figure([bc], DATASET).startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("seeds", "words"),
    [
        (1, "one seed: too few seeds for an interval"),
        (2, "means over 2 seeds. Bands span both seeds: too few seeds for an interval"),
        (3, "means and 95 % intervals over 3 seeds"),
    ],
)
def test_the_legend_says_what_bands_are(seeds: int, words: str) -> None:
    drawn = figure()
    draw(drawn, [sweep("rvs", seeds)], DATASET)
    assert drawn.legends[0].get_title().get_text() == words
