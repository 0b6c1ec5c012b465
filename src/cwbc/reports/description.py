"""The output of `cwbc data show`, in a terminal or a log."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cwbc.data.advice import advice
from cwbc.data.statistics import DatasetStatistics
from cwbc.reports.looks import shortened
from cwbc.system.formatting import PERCENT, amount, counted, percent, score

ROWS = 12  # of observations, and of actions
BARS = 20  # rows of the histogram; when there are more bins, each row shows several
EIGHTHS = " ▏▎▍▌▋▊▉"


def show(description: DatasetStatistics, console: Console, dataset: str | None = None) -> None:
    """Print a description; `dataset` is how the suggested command names it."""
    _print(console, "", description.name, style="bold")
    for name, fact in _facts(description).items():
        _print(console, f"{name:<13}", fact)
    console.print()
    console.print(_columns(description))
    if description.discrete:
        console.print()
        console.print(_action_counts(description))
    console.print()
    _show_returns(description, console)
    console.print()
    console.print(_histogram(description, console.width))
    console.print()
    _print(console, "rvs ", _conditions(description))
    _print(console, "+w  ", _weighting(description))
    _print(console, "+c  ", f"{regularized(description)}; {_noise(description)}")
    console.print()
    for line in advice(description, dataset):
        _print(console, "• ", line)


def _print(console: Console, head: str, line: str, style: str = "") -> None:
    lines = [line]  # in a log, lines are not wrapped
    if console.is_terminal:
        # Not rich's wrapping, which breaks at spaces that are not to be broken at, and options at hyphens.
        lines = textwrap.wrap(
            line, max(20, console.width - len(head)), break_long_words=False, break_on_hyphens=False
        )
    for number, part in enumerate(lines):
        margin = head if number == 0 else " " * len(head)
        console.print(Text.assemble((margin, "dim"), (part, style)), soft_wrap=True)


def _facts(d: DatasetStatistics) -> dict[str, str]:
    lengths = d.lengths
    each = f"{lengths.min:,} to {lengths.max:,} steps, median {lengths.median:,.0f}"
    if lengths.min == lengths.max:
        each = f"{counted(lengths.max, 'step')} each"
    horizon = f"{d.horizon:,}{'' if d.time_limit == d.horizon else ', the longest logged'}"
    actions = (
        counted(len(d.action_counts), "discrete action")
        if d.discrete
        else counted(len(d.actions), "continuous action")
    )
    facts = {
        "environment": f"{d.environment or 'unknown'}; horizon {horizon}",
        "episodes": f"{d.episodes:,}, {each}; {counted(d.steps, 'step')} in all",
        "ends": f"{lengths.terminated:,} terminated, {lengths.truncated:,} truncated or not marked",
        "dimensions": f"{_observations(d)}, {actions}",
    }
    if d.unfinished_steps:
        facts["dropped"] = f"the last {counted(d.unfinished_steps, 'step')}, an episode without an end"
    return facts


def _observations(d: DatasetStatistics) -> str:
    if not d.image_shape:
        return counted(len(d.observations), "observation")
    height, width, channels = d.image_shape
    return f"images of {height} x {width} pixels with {counted(channels, 'channel')}"


def _table(*names: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for number, name in enumerate(names):
        table.add_column(Text(name), justify="right" if number else "left", no_wrap=True)
    return table


def _columns(d: DatasetStatistics) -> Table:
    table = _table("over all steps", "min", "mean", "max", "std")
    for columns in (d.observations, d.actions, (d.rewards,)):
        for column in columns[:ROWS]:
            numbers = (column.min, column.mean, column.max, column.std)
            table.add_row(Text(shortened(column.name, 34)), *map(_short, numbers))
        _and_more(table, len(columns))
    return table


def _action_counts(d: DatasetStatistics) -> Table:
    table = _table("action", "steps", "fraction")
    for action, count in enumerate(d.action_counts[:ROWS]):
        table.add_row(str(action), f"{count:,}", _mass(count / d.steps))
    _and_more(table, len(d.action_counts))
    return table


def _and_more(table: Table, count: int) -> None:
    if count > ROWS:
        table.add_row(Text(f"... and {count - ROWS:,} more; --json has all", style="dim"))


def _show_returns(d: DatasetStatistics, console: Console) -> None:
    percentiles = d.returns.percentiles
    names = ["min", *(f"{at}{PERCENT}" for at, _ in percentiles[1:-1]), "best", "mean"]
    shown = _distinct(_formatter([value for _, value in percentiles]))
    mean = _formatter([d.returns.min, d.returns.mean, d.returns.best])(d.returns.mean)
    rows = {"returns": [*(shown(value) for _, value in percentiles), mean]}
    if d.scores is not None:
        low, mean, best = score(d.scores.min), score(d.scores.mean), score(d.scores.best)
        rows["scores"] = [low, *[""] * len(percentiles[1:-1]), best, mean]
    table = _table("", *names)
    for head, texts in rows.items():
        table.add_row(head, *texts)
    if Measurement.get(console, console.options.update(width=1000), table).maximum <= console.width:
        console.print(table)
        return
    for head, texts in rows.items():
        pairs = [f"{name} {text}" for name, text in zip(names, texts, strict=True) if text]
        _print(console, f"{head}  ", ", ".join(pairs))


class _Bin(NamedTuple):
    low: float
    high: float
    episodes: int
    before: float
    after: float


def _rows(d: DatasetStatistics) -> list[_Bin]:
    """The histogram in at most BARS rows; neighbours without an episode share one."""
    if d.returns.equal:
        return [_Bin(d.returns.min, d.returns.best, d.episodes, 1.0, 1.0)]
    bins, rows = len(d.bin_episodes), list[_Bin]()
    together = math.ceil(bins / BARS)
    for first in range(0, bins, together):
        part = slice(first, min(first + together, bins))
        masses = (sum(draws.probabilities[part]) for draws in (d.by_length, d.by_return))
        row = _Bin(d.bin_edges[first], d.bin_edges[part.stop], sum(d.bin_episodes[part]), *masses)
        if rows and rows[-1].episodes == row.episodes == 0:
            row = row._replace(low=rows.pop().low)
        rows.append(row)
    return rows


def _histogram(d: DatasetStatistics, width: int) -> Table:
    rows, shown = _rows(d), _formatter(d.bin_edges)
    labels = [f"{shown(row.low)} to {shown(row.high)}" for row in rows]
    if d.returns.equal:
        labels = [shown(d.returns.best)]
    others = max(len("effective sample size"), *map(len, labels)) + len("episodes  100 %  100 %  +c") + 8
    longest = max(6, min(30, (width - others) // 2))
    scale = longest / max(max(row.before, row.after) for row in rows)
    table = _table("returns", "episodes", "without +w", "", "with +w", "", "+c")
    table.columns[2].justify = table.columns[4].justify = "left"
    for label, row in zip(labels, rows, strict=True):
        selected = row.episodes and (row.high > d.noise.min_return or row.high == d.returns.best)
        before, after = Text(_bar(row.before * scale)), Text(_bar(row.after * scale), "cyan")
        numbers = before, _mass(row.before), after, _mass(row.after)
        table.add_row(label, f"{row.episodes:,}" if row.episodes else "–", *numbers, "▲" if selected else "")
    both = (d.by_length, d.by_return)
    for label, texts in (
        ("mean return", [shown(draws.mean_return) for draws in both]),
        ("effective sample size", [f"{draws.effective_sample_size:,.0f}" for draws in both]),
    ):
        table.add_row(Text(label, "dim"), "", texts[0], "", texts[1])
    return table


def _bar(length: float) -> str:
    """A bar of so many characters, to an eighth of one; whatever is there at all can be seen."""
    whole, part = divmod(max(round(8 * length), length > 0), 8)
    return "█" * whole + EIGHTHS[part].strip()


def _mass(value: float) -> str:
    if value == 0:
        return ""
    return percent(value) if value >= 0.01 else f"<1{PERCENT}"


def _weighting(d: DatasetStatistics) -> str:
    if d.returns.min == d.returns.best:
        return "samples all episodes with equal probability, as all returns are equal"
    options = d.weighting
    percentile = f"percentile {options.temperature_percentile:g}"
    origins = {
        "given": "as given",
        "percentile": f"best − {percentile}",
        "return range": f"a tenth of the return range, as {percentile} is the best",
    }
    return (
        f"samples by return: {options.bins:,} bin{'s' * (options.bins > 1)}, lambda {options.smoothing:g}, "
        f"kappa {amount(d.temperature)} ({origins[d.temperature_source]})"
    )


def regularized(d: DatasetStatistics) -> str:
    """What +c does to the targets of the best trajectories."""
    noise, best = d.noise, d.returns.best
    shown = _distinct(_formatter([noise.min_return, best, noise.max_target]))
    which = f"regularizes {noise.episodes:,} of {d.episodes:,} episodes, those from return "
    which += shown(noise.min_return)
    if shown(noise.max_target) == shown(best):
        return f"{which} up; its target is the best return, {shown(best)}"
    return f"{which} up; its targets are {shown(best)} to {shown(noise.max_target)}"


def _conditions(d: DatasetStatistics) -> str:
    found = d.condition
    shown = _formatter([found.mean, found.std])
    return (
        f"average return-to-go: mean {shown(found.mean)}, std {shown(found.std)}; as a condition "
        f"({found.scale}), the min return is {amount(round(found.at_min, 2))} and the best "
        f"{amount(round(found.at_best, 2))}"
    )


def _noise(d: DatasetStatistics) -> str:
    origins = {"given": "as given", "published": "published", "return range": "from the return range"}
    sigma = f"sigma {amount(d.noise.noise)} ({origins[d.noise.noise_source]})"
    return f"percentile {d.regularizer.percentile:g}, {sigma}"


def _short(value: float) -> str:
    """A number in at most nine characters."""
    text = amount(value + 0.0)  # + 0.0: no "−0"
    if len(text) > 9:
        text = f"{value:.3g}".replace("e+0", "e").replace("e+", "e").replace("-", "−")
    return text


def _distinct(shown: Callable[[float], str]) -> Callable[[float], str]:
    """The same way to write numbers, but for those that it would round to nothing."""
    return lambda value: amount(value) if value and not shown(value).strip("−-0.") else shown(value)


def _formatter(values: Sequence[float]) -> Callable[[float], str]:
    """How to write numbers of this range: with decimals for a hundredth of it, if they have any."""
    low, high = min(values), max(values)
    largest = max(abs(low), abs(high))
    power = math.floor(math.log10(largest)) if largest and not 1e-3 <= largest < 1e6 else 0
    unit, suffix = 10.0**power, f"e{power}" if power else ""
    spread = (high - low) / unit
    alike = high - low <= 1e-6 * largest
    decimals = 4 if alike else min(6, max(0, 2 - math.floor(math.log10(spread))))
    whole = [d for d in range(decimals) if all(math.isclose(v / unit, round(v / unit, d)) for v in values)]
    digits = min([*whole, decimals])

    def write(value: float) -> str:
        return f"{round(value / unit, digits) + 0.0:,.{digits}f}{suffix}".replace("-", "−")

    return write
