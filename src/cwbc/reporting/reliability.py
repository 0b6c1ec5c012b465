"""The chart of reliability: achieved vs. target return, above the histogram of the dataset's returns."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, permutations, product
from typing import NamedTuple

import numpy as np

from cwbc.dataset_summary import DatasetSummary
from cwbc.intervals import bands
from cwbc.reporting import svg
from cwbc.reporting.charts import curve_rows, looks_of, over_curves
from cwbc.reporting.figures import level, limits
from cwbc.reporting.interactive import Chart, drawing
from cwbc.reporting.panels import CHARACTER, Curve, Panel, Size, margin
from cwbc.reporting.scales import Scale
from cwbc.results import Sweep, same_target
from cwbc.tasks import Landmark, Task, landmarks
from cwbc.wording import amount, listed, score

TIER, LINE = 30, 13  # the heights of a landmark's label and of one of its lines
BEYOND = "out-of-distribution"


def reliability_chart(
    sweeps: Sequence[Sweep],
    dataset: DatasetSummary,
    names: Sequence[str] = (),
    title: str = "Achieved vs. target return",
) -> Chart:
    """Achieved vs. target return with bands over seeds, above the dataset's returns."""
    task = dataset.task
    looks = looks_of([sweep.method for sweep in sweeps], names)
    marks = sorted(landmarks(task, dataset.best), key=lambda mark: mark.target)
    across, up = limits(sweeps, marks, dataset)
    curves = [Curve(sweep.method, *level(sweep, across)) for sweep in sweeps]
    drawn = _Reliability(title, curves, looks, task, dataset, marks, across, up)

    def heading(target: float) -> str:
        named = [mark.label for mark in marks if same_target(mark.target, target)]
        return " · ".join([f"target {amount(target)}", *named])

    def scored(achieved: float) -> tuple[str]:
        return (f"score {score(float(task.normalize(np.asarray(achieved))))}",)

    given = [target for sweep in sweeps if sweep.takes_target for target in sweep.targets.tolist()]
    stops = sorted(set(given)) or [mark.target for mark in marks]
    hovering = over_curves([Curve(s.method, *level(s, stops)) for s in sweeps], heading, amount, scored)
    exact = [Curve(s.method, *level(s, [np.nan])) for s in sweeps]  # one row without a target
    rows = curve_rows(exact, "method", "target return", "achieved return")
    caption = _caption(sweeps, dataset)
    keys = {"achieved = target": svg.line(1, 6, 25, 6, "equal")}
    return Chart(title, drawn.draw, hovering, looks, rows, keys, caption, f"{dataset.name}-reliability")


def _caption(sweeps: Sequence[Sweep], dataset: DatasetSummary) -> str:
    levels = [sweep.method for sweep in sweeps if not sweep.takes_target]
    sentences = [
        bands([len(sweep.seeds) for sweep in sweeps]) or "One seed: too few seeds for an interval.",
        f"Level lines: {listed(levels)} take{'s' * (len(levels) == 1)} no target." if levels else "",
        "Shaded: targets above the best return in the dataset.",
        f"Below: the returns of the dataset's {dataset.episodes:,} episodes.",
    ]
    return " ".join(filter(None, sentences))


class _Label(NamedTuple):
    mark: Landmark
    x: float
    side: str  # the class that anchors the text
    tier: int  # counted from the bottom
    start: float
    end: float

    def meets(self, other: _Label) -> bool:
        return self.tier == other.tier and self.start < other.end + 6 and other.start < self.end + 6


class _Reliability(NamedTuple):
    title: str
    curves: Sequence[Curve]
    looks: dict[str, int]
    task: Task
    dataset: DatasetSummary
    marks: Sequence[Landmark]
    across: tuple[float, float]
    up: tuple[float, float]

    def draw(self, size: Size) -> str:
        size = Size(size.width, size.height + (70 if size.narrow else 90))
        floor = size.height - 44
        roof = floor - (46 if size.narrow else 58)  # of the histogram
        left = margin(Scale(*self.up, 1, 0), 6)
        across = Scale(*self.across, left, size.width - (12 if size.narrow else 46))
        labels = _placed(self.marks, across, size)
        top = 26 + TIER * (1 + max((label.tier for label in labels), default=-1))
        panel = Panel(across, Scale(*self.up, roof - 30, top))
        tallest = max(self.dataset.histogram_counts)
        histogram = Panel(across, Scale(0, 1.05 * tallest, floor, roof))
        bars = histogram.stairs(self.dataset.histogram_edges, self.dataset.histogram_counts)
        return drawing(
            self.title,
            size,
            panel,
            svg.text(0, 12, "achieved return", class_="title"),
            "" if size.narrow else self._scores(panel, size),
            self._beyond(panel) + self._beyond(histogram),
            panel.horizontal(6) + panel.bottom(written=False),
            *(_line(label, panel, histogram) for label in labels),
            self._beyond_in_words(histogram),
            panel.inside(self._equal(panel), *(self._curve(panel, curve) for curve in self.curves)),
            svg.text(left, roof - 8, "episodes of the dataset", class_="tick over-lines"),
            svg.text(left - 7, roof + 9, f"{tallest:,}", class_="tick end"),
            svg.element("g", svg.path("bars", bars), class_="series look-data"),
            histogram.bottom("target return"),
        )

    def _curve(self, panel: Panel, curve: Curve) -> str:
        is_level = (float(curve.x[0]), float(curve.x[-1])) == self.across
        return panel.curve(curve, self.looks[curve.name], markers=len(curve.x) <= 40 and not is_level)

    def _equal(self, panel: Panel) -> str:
        ends = (panel.across.low, panel.across.high)
        start, end = ((panel.across(value), panel.up(value)) for value in ends)
        return svg.line(*start, *end, "equal")

    def _beyond(self, panel: Panel) -> str:
        best, end = panel.across(self.dataset.best), panel.across.end
        x, y, height = best, panel.up.end, panel.up.start - panel.up.end
        return svg.element("rect", x=x, y=y, width=max(end - best, 0.0), height=height, class_="beyond")

    def _beyond_in_words(self, histogram: Panel) -> str:
        """Beside the bars, where nothing else can be but landmarks' lines; above there are curves."""
        best, end = histogram.across(self.dataset.best), histogram.across.end
        if end - best < CHARACTER * len(BEYOND) + 16:
            return ""
        return svg.text(best + 8, histogram.up.end + 16, BEYOND, class_="tick over-lines on-beyond")

    def _scores(self, panel: Panel, size: Size) -> str:
        """The same axis in normalized scores, on the right."""
        low, high = self.task.normalize(np.array([panel.up.low, panel.up.high])).tolist()
        scores = Scale(low, high, panel.up.start, panel.up.end)
        parts = [svg.text(size.width, 12, "normalized score", class_="title end")]
        for value, words in scores.ticks(6):
            parts.append(svg.text(panel.across.end + 7, scores(value) + 4, words, class_="tick"))
        return "".join(parts)


def _placed(marks: Sequence[Landmark], across: Scale, size: Size) -> Sequence[_Label]:
    """Labels that do not meet: low rather than high, centred rather than beside their lines."""
    choices = []
    for mark in marks:
        at = across(mark.target)
        width = CHARACTER * max(len(mark.label), len(amount(mark.target)))
        starts = {"middle": at - width / 2, "": at + 4, "end": at - width - 4}
        choices.append(
            [
                _Label(mark, at, side, tier, start, start + width)
                for tier in range(len(marks))
                for side, start in starts.items()
                if start >= 0 and start + width <= size.width
            ]
        )
    apart = (
        labels
        for labels in product(*choices)
        if not any(one.meets(other) for one, other in combinations(labels, 2))
    )

    def strangeness(labels: Sequence[_Label]) -> int:
        crossed = sum(one.tier == other.tier and one.start > other.start for one, other in pairwise(labels))
        struck = sum(
            one.start < other.x < one.end and one.tier < other.tier for one, other in permutations(labels, 2)
        )
        higher = sum(label.tier for label in labels)
        return 20 * crossed + 10 * higher + 3 * struck + sum(label.side != "middle" for label in labels)

    return min(apart, key=strangeness, default=())


def _line(label: _Label, panel: Panel, histogram: Panel) -> str:
    x, foot = label.x, panel.up.end - TIER * label.tier - 6
    shift = {"middle": 0, "": 4, "end": -4}[label.side]
    words = [label.mark.label, amount(label.mark.target)]
    return (
        svg.line(x, histogram.up.start, x, foot + (2 if shift == 0 else -2 * LINE), "mark")
        + svg.text(x + shift, foot - LINE, words[0], class_=f"tick {label.side}".strip())
        + svg.text(x + shift, foot, words[1], class_=f"tick {label.side}".strip())
    )
