"""What tests of pages share: reading HTML strictly, and small results to make pages of."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import numpy as np

from cwbc.core.tasks import TASKS, Task
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.chart import Chart
from cwbc.reports.page import block
from cwbc.reports.tables import ReportTable
from cwbc.results.sweeps import Sweep
from cwbc.runs.finished import TrainingHistory

TASK = TASKS["hopper"]
DATASET = DatasetSummary(
    "hops", "Hopper-v5", "abc", 6, 60, -20.0, 1500.0, 700.0, (-20.0, 740.0, 1500.0), (4, 2)
)
CONFIG: dict[str, Any] = {  # of a run on it
    "method": {"name": "rvs", "weighting": {"kind": "ByLength"}},
    "training": {"steps": 20, "batch_size": 4},
    "seeds": [0, 1],
    "horizon": 10,
    "dataset": DATASET.to_json(),
    "drawn": None,
    "notes": {},
    "versions": {},
    "hardware": {"device": "cpu", "cores": 2},
}
VOID = {"meta", "img"}


def html(shown: Chart | ReportTable) -> str:
    """A chart or a table as a page has it."""
    return block("chart" if isinstance(shown, Chart) else "table", shown)


class Read(HTMLParser):
    """Checks that every element is closed, and keeps what was met."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.links: list[str] = []
        self.rows: list[list[str]] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.data: list[dict[str, Any]] = []  # of charts
        self.text = ""
        self.feed(str(text))  # no markup, which would escape what is added to it
        self.close()
        assert not self.open

    def having(self, name: str, value: str | None = None) -> list[dict[str, str]]:
        """The attributes of all elements that have this one."""
        return [found for _, found in self.elements if name in found and value in (None, found[name])]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in {"src", "href"}]
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "tr":
            self.rows.append([])
        if tag in {"td", "th"}:
            self.rows[-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.elements[-1:] == [("script", {"type": "application/json"})] and self.open[-1:] == ["script"]:
            self.data.append(json.loads(data))
        elif self.open and self.open[-1] not in ("style", "script"):
            self.text += data
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += f"{data} "


def about(task: Task, best: float) -> DatasetSummary:
    """A dataset of a task that is not the environment's, with a histogram of two bins."""
    kind = type("OfTask", (DatasetSummary,), {"task": task})
    found: DatasetSummary = kind(
        "mine", None, "abc", 6, 60, best - 9, best, best, (best - 9, best, best), (4, 2)
    )
    return found


def sweep(method: str, *curve: float, targets: tuple[float, ...], spread: float = 0.0) -> Sweep:
    """Two seeds that achieve these returns, this much below and above."""
    around = np.array([-spread, spread])[:, None, None]
    returns = np.array(curve)[None, :, None] + around + np.zeros((2, len(curve), 3))
    return Sweep(method, np.arange(2), np.array(targets), returns, np.ones(returns.shape, np.int64))


def history(
    kind: str, drawn: tuple[float, ...] | None, losses: list[list[float]], every: int = 100
) -> TrainingHistory:
    """A training whose rows come every so many steps."""
    weighting = {"kind": kind} | ({"top_fraction": 0.1} if kind == "TopFraction" else {})
    return TrainingHistory(every * np.arange(1, len(losses) + 1), np.array(losses), weighting, drawn)


def once(method: str, *of_seeds: float) -> Sweep:
    """A method that takes no target, with the returns of its seeds."""
    returns = np.array(of_seeds)[:, None, None]
    seeds = np.arange(len(of_seeds))
    return Sweep(method, seeds, np.array([np.nan]), returns, np.ones(returns.shape, np.int64))
