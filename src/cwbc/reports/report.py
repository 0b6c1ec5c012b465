"""A report as a value, whatever it is about: what its page shows, and the files beside the page."""

from __future__ import annotations

import base64
import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from cwbc import envs
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.chart import Chart
from cwbc.reports.dataset_charts import Histories, sampled_chart, training_chart
from cwbc.reports.page import Sections, block, page_html
from cwbc.reports.prediction_errors import errors_chart, errors_table
from cwbc.reports.showing import estimates_table, scores_table, targets_table
from cwbc.reports.tables import ReportTable
from cwbc.results.evaluated import Methods
from cwbc.runs.run_directory import PAGE, SUMMARY
from cwbc.system.console import say
from cwbc.system.errors import UnavailableError, need_extra
from cwbc.system.formatting import amount


def need_plots() -> None:
    """Raise an error that names the extra, unless the packages that draw pictures are installed."""
    for module in ("PIL", "matplotlib"):
        need_extra(module, "plots", "charts in files")


def picture(chart: Chart, heading: str) -> bytes:
    """The chart as a PNG."""
    need_plots()
    from cwbc.reports import png

    return png.picture(chart, heading)


class File(NamedTuple):
    """A file beside the page."""

    content: str | bytes
    what: str  # it is, for people


class Picture(NamedTuple):
    """A chart that is a PNG beside the page, too."""

    chart: Chart
    heading: str
    what: str


class PageImage(NamedTuple):
    """A drawing that no chart is: shown on the page, and a PNG beside it."""

    title: str
    caption: str
    draw: Callable[[], bytes]


def paths_image(methods: Methods, title: str = "Paths in the maze") -> PageImage | None:
    """The maze with what the methods achieved in it; None where no paths were recorded."""
    recorded = {name: method for name, method in methods.items() if method.sweep.paths}
    if not recorded:
        return None

    def draw() -> bytes:
        need_plots()
        envs.need_simulators()
        from cwbc.reports import maze_picture

        return maze_picture.achieved_picture(recorded)

    caption = (
        "The first episodes of every seed, at the lowest target and at the one nearest to the dataset's best "
        "return. Circle: the goal."
    )
    return PageImage(title, caption, draw)


@dataclasses.dataclass(frozen=True)
class DatasetPart:
    """What a page shows of one dataset."""

    dataset: DatasetSummary
    methods: Methods  # that were evaluated on it
    histories: Histories  # of their training, by method
    names: Sequence[str]  # of all methods of the page
    videos: Mapping[str, bytes] = dataclasses.field(default_factory=dict)  # of policies, by method

    @functools.cached_property
    def scores(self) -> ReportTable:
        """Scores at the named targets, and how well each method follows its target."""
        return scores_table(self.methods, self.names)

    @functools.cached_property
    def charts(self) -> dict[str, Chart]:
        """The charts of training, by the names of their files."""
        found = {
            "training.png": training_chart(self.histories, self.names),
            "heldout.png": errors_chart(self.histories, self.names),
            "returns.png": sampled_chart(self.histories, self.dataset, self.names),
        }
        return {name: chart for name, chart in found.items() if chart is not None}

    def blocks(self, name: str, but: Sequence[ReportTable]) -> list[Markup]:
        """All of it, without the tables that the page shows elsewhere."""
        dataset, blocks = self.dataset, list[Markup]()
        if self.methods:
            blocks += [] if self.scores in but else [block("table", self.scores)]
            targets = block("table", targets_table(self.methods, self.names))
            blocks.append(block("folded", "Scores at every target return", [targets]))
            if any(method.estimates for method in self.methods.values()):
                estimates = block("table", estimates_table(self.methods, self.names))
                blocks.append(block("folded", "Both estimates of the return at every target", [estimates]))
        about = {
            "name": name,
            "environment": dataset.environment or "unknown",
            "episodes": f"{dataset.episodes:,}",
            "steps": f"{dataset.steps:,}",
            "best return": amount(dataset.best),
            "mean return": amount(dataset.mean_return),
            "min return": amount(dataset.lowest),
            "content hash": dataset.content_hash,
        }
        charts = [block("chart", chart) for chart in self.charts.values()]
        errors = errors_table(self.histories, self.names)
        return [*blocks, *charts, *([block("table", errors)] if errors else []), block("facts", about)]


@dataclasses.dataclass(frozen=True)
class ReportDocument:
    """A report as a value; tables and pictures are by the names of their files."""

    title: str  # of the window
    kicker: str  # the kind of report and its subject
    headline: str
    remarks: Sequence[str]  # what one must know to read the numbers
    datasets: Mapping[str, DatasetPart]  # by name
    provenance: Mapping[str, str]
    summary: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # what summary.json begins with
    caveats: Sequence[str] = ()  # of the headline
    finding: str = ""  # where the headline is what follows from it
    training_warnings: Sequence[str] = ()  # shown at the top
    failures: Sequence[str] = ()
    sections: Sections = dataclasses.field(default_factory=dict)  # before everything else
    tables: Mapping[str, ReportTable] = dataclasses.field(default_factory=dict)
    charts: Sequence[Chart] = ()
    pictures: Mapping[str, Picture] = dataclasses.field(default_factory=dict)
    images: Mapping[str, PageImage] = dataclasses.field(default_factory=dict)
    files: Mapping[str, File] = dataclasses.field(default_factory=dict)  # more of them beside the page
    written: Mapping[str, str] = dataclasses.field(default_factory=dict)  # those that others write, in words

    def contents(self) -> dict[str, str | bytes]:
        """All files but the summary; the page comes last."""
        files = {**self.files}
        for name, table in self.tables.items():
            files[f"{name}.md"] = File(table.to_markdown(), table.title)
            files[f"{name}.csv"] = File(table.to_csv(), "the same as CSV")
        try:
            for name, each in self.pictures.items():
                files[name] = File(picture(each.chart, each.heading), each.what)
            for name, image in self.images.items():
                files[name] = File(image.draw(), "paths in the maze")
        except UnavailableError as error:
            missing = [name for name in (*self.pictures, *self.images) if name not in files]
            say(f"{', '.join(missing)} not written: {error}")
        return {**{name: file.content for name, file in files.items()}, PAGE: self.page(files)}

    def page(self, files: Mapping[str, File]) -> str:
        """The page that links to these files."""
        whats = {SUMMARY: "all numbers, with their provenance", **self.written}
        whats |= {name: file.what for name, file in files.items()}
        scores = {"Scores": [block("table", table) for table in self.tables.values()]}
        images = [
            block("image", image, base64.b64encode(content).decode())
            for name, image in self.images.items()
            if name in files and isinstance(content := files[name].content, bytes)
        ]
        charts = {"Charts": [*(block("chart", chart) for chart in self.charts), *images]}
        # Of one dataset, its chart shows more than the table.
        results = charts | scores if len(self.datasets) == 1 else scores | charts
        tables = list(self.tables.values())
        parts = {name: part.blocks(name, tables) for name, part in self.datasets.items()}
        videos = [
            block("video", f"{method} on {name}", each)
            for name, part in self.datasets.items()
            for method, each in part.videos.items()
        ]
        several = {"Datasets and training": [block("folded", *part) for part in parts.items()]}
        sections: dict[str, Sequence[Markup]] = {
            **self.sections,
            "What failed": [block("paragraph", failure) for failure in self.failures],
            **results,
            "Videos": videos,
            **({"Dataset and training": next(iter(parts.values()))} if len(parts) == 1 else several),
            "Provenance": [block("facts", self.provenance)] if self.provenance else [],
            "Files": [block("links", whats)],
        }
        return page_html(self, {heading: blocks for heading, blocks in sections.items() if blocks})
