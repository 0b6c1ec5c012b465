"""Running an item: how much of it, on which data, and the report about the claims of the paper."""

from __future__ import annotations

import collections
import dataclasses
import hashlib
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from cwbc.data import d4rl, generated, store
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.grids.cells import Cell, Scale
from cwbc.grids.outcomes import Results
from cwbc.paper.item import Benchmark, Item
from cwbc.paper.published import Datasets
from cwbc.paper.verdicts import VERDICTS, Case, Claim, judged
from cwbc.reports import writing
from cwbc.reports.grid_report import about_grid
from cwbc.reports.page import block
from cwbc.reports.report import File, Picture, ReportDocument
from cwbc.results.evidence import Evidence
from cwbc.results.sentences import evaluated_in_words
from cwbc.system.errors import InputError
from cwbc.system.formatting import counted, listed, span

_MARKS = {"supported": "+", "contradicted": "−", "inconclusive": "?"}


@dataclasses.dataclass(frozen=True)
class Extent:
    """How much of an item is run, and on which data."""

    item: Item  # the whole of it
    data: Datasets
    quick: bool
    scale: Scale
    changes: Mapping[str, str]  # by option: what differs from the item's defaults

    @property
    def folder(self) -> str:
        """The name of the report's directory, a different one for every extent."""
        name = self.item.name + "-d4rl" * (self.data == "d4rl") + "-quick" * self.quick
        name += f"-{self.scale.precision}" if self.scale.precision else ""
        text = json.dumps(self.changes, sort_keys=True)
        return f"{name}-part-{hashlib.sha256(text.encode()).hexdigest()[:6]}" if self.changes else name

    @property
    def is_small(self) -> bool:
        """Whether less is trained, or on less data, than in the paper."""
        if not self.item.variants:
            return self.quick and self.data == "ours"
        whole = self._benchmark
        return self.quick or self.scale.seeds < whole.full.seeds or self._steps < whole.steps

    @property
    def _benchmark(self) -> Benchmark:
        return self.item.benchmark

    @property
    def _steps(self) -> int:
        return self.scale.steps or self._benchmark.steps

    def remarks(self, datasets: Mapping[str, DatasetSummary], seeds: Collection[int]) -> list[str]:
        """The remarks that a reader of the numbers needs; seeds are the numbers of them."""
        remarks = []
        if self.item.variants:
            numbers = evaluated_in_words(seeds, {self.scale.episodes}, self._benchmark.spread)
            remarks += [numbers, self._benchmark.scores]
        if self.changes:
            options = " and ".join(f"{option} {value}" for option, value in self.changes.items())
            remarks.append(f"This is the item with {options}, which differs from its defaults.")
        if self.is_small:
            remarks.append(
                f"This is a {'quick' if self.quick else 'small'} run: {self._size(len(datasets))}. It shows "
                "that everything works; its verdicts are no evidence about the paper."
            )
        if self.data == "ours":
            sizes = span(dataset.steps for dataset in datasets.values())
            remarks.append(
                f"The datasets ({sizes} steps) are generated {self._benchmark.recipes}: published scores are "
                "for orientation."
            )
        return remarks

    def _size(self, datasets: int) -> str:
        """How a small run differs from the paper's."""
        few = f"{datasets} of {len(self.item.datasets)} datasets"
        if not self.item.variants:
            return f"{few}, generated ones with {generated.DEFAULT_SIZE:,} steps instead of D4RL's sizes"
        trained = f"{counted(self.scale.seeds, 'seed')}, {counted(self._steps, 'step')}"
        if self.quick:
            return f"{few}, {trained} of small networks, {counted(self.scale.episodes, 'episode')}"
        return f"{trained}, where the paper has {self._benchmark.full.seeds} and {self._benchmark.steps:,}"


def check(item: Item, data: Datasets, quick: bool, out: Path) -> None:
    """Refuse data that is missing or too small, and a directory that is in use."""
    if data not in item.benchmark.sources:
        known = " or ".join(item.benchmark.sources)
        raise InputError(f"there is no data of D4RL's for {item.name}; --data must be {known}")
    names = item.names(data, quick)
    errors = [generated.unavailable(name) for name in names if not store.has(name)]
    if lines := [str(error) for error in errors if error]:
        raise InputError("\n".join(lines))
    if data == "d4rl":
        missing = [name for name in names if store.find(name) is None]
        commands = [f"cwbc data download {each.d4rl_name}" for each in map(d4rl.find, missing) if each]
        problem = f"{len(missing)} of D4RL's datasets are not downloaded yet; these commands download them"
    else:
        missing = [name for name in names if _is_smaller(name)] if not quick else []
        commands = [f"cwbc data make {name} --size {generated.FULL} --overwrite" for name in missing]
        problem = f"{len(missing)} datasets are stored in a smaller size than a full run's, as quick runs "
        problem += "generate them; these commands generate them again"
    if missing:
        raise InputError("\n".join((f"{problem}:", *commands)))
    writing.check(out, item.name, "--out")


def _is_smaller(name: str) -> bool:
    """Whether a dataset of ours was generated in a smaller size than D4RL's."""
    size = generated.generated_steps(name)
    return size is not None and size < generated.DatasetSpec.of(name, generated.FULL).size


def prepare(item: Item, out: Path, cells: Path) -> None:
    """Make the directories, or refuse those that could not be written to after hours."""
    writing.prepare(out, "--out")
    if item.variants and not cells.is_dir():  # a directory with all finished cells is only read
        writing.prepare(cells, "--cells")


def report(
    extent: Extent,
    evidence: Evidence,
    results: Results,
    datasets: Mapping[str, DatasetSummary],
    provenance: Mapping[str, str],
) -> tuple[ReportDocument, Sequence[Claim]]:
    """The report about an item's claims, and these; datasets are by name."""
    item = extent.item
    title = f"{item.place} – {item.shows}"
    exhibits, claims = item.exhibits(evidence), judged(item.claims, evidence)
    finding = headline(extent, claims)
    seeds = {len(outcome.cell.seeds) for outcome in results.outcomes} or {extent.scale.seeds}
    remarks = [*extent.remarks(datasets, seeds), *unequal(results), *evidence.broken]
    verdicts = [VERDICTS] if item.variants else []
    lines, values = [f"# {finding}", "", *remarks, *verdicts, ""], []
    for claim in claims:
        lines += [f"- **{claim.verdict}**: {claim.text}", f"  {claim.reason}"]
        lines += [f"  - {case_in_words(case)}" for case in claim.cases]
        cases = [{"verdict": case.verdict, **dataclasses.asdict(case)} for case in claim.cases]
        values.append({"verdict": claim.verdict, **dataclasses.asdict(claim), "cases": cases})
    lines += [f"- **failed**: {failure}" for failure in results.failures]
    report = ReportDocument(
        title,
        f"Reproduction · {title}",
        finding,
        remarks,
        {},
        provenance,
        {"item": {"name": item.name, "place": item.place, "shows": item.shows}, "claims": values},
        sections={
            "Claims of the paper": [*(block("paragraph", each) for each in verdicts), block("claims", claims)]
        },
        tables=exhibits.tables,
        charts=[*exhibits.distributions.values(), *exhibits.charts],
        pictures={
            f"returns-{dataset}.png": Picture(chart, "", "returns of the data, as sampled")
            for dataset, chart in exhibits.distributions.items()
        },
        files={"claims.md": File("\n".join(lines) + "\n", "the claims and their verdicts")},
    )
    return about_grid(report, results, datasets), claims


def unequal(results: Results) -> list[str]:
    """The remarks that methods were trained for different numbers of steps or seeds, where they were."""
    counts: dict[str, Callable[[Cell], int]] = {
        "Training steps": lambda cell: cell.training.steps,
        "Seeds": lambda cell: len(cell.seeds),
    }
    remarks = []
    for name, count in counts.items():
        found: dict[int, dict[str, None]] = {}  # labels by their number, each once
        for outcome in results.outcomes:
            found.setdefault(count(outcome.cell), {})[outcome.cell.label] = None
        words = [f"{number:,} of {listed(list(labels))}" for number, labels in found.items()]
        remarks += [f"{name}: {'; '.join(words)}."] if len(words) > 1 else []
    return remarks


def headline(extent: Extent, claims: Sequence[Claim]) -> str:
    """The verdicts in one sentence."""
    count = collections.Counter(claim.verdict for claim in claims)
    supports, contradicts = "our run supports", "contradicts"
    if extent.is_small:
        supports, contradicts = "a small run, which is no evidence, would support", "contradict"
    return (
        f"{extent.item.place}: of {counted(len(claims), 'claim')} of the paper, "
        f"{supports} {count['supported']} and {contradicts} {count['contradicted']}; "
        f"{count['inconclusive']} inconclusive."
    )


def case_in_words(case: Case) -> str:
    """A claim on one dataset, marked by its verdict."""
    return f"{_MARKS[case.verdict]} {case.dataset}: {case.shown}"
