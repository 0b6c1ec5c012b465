"""The output of `cwbc data show`, in a terminal or a log."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from cwbc.data.advice import advice
from cwbc.data.statistics import DatasetStatistics
from cwbc.reports.method_styles import shortened
from cwbc.system.formatting import PERCENT, amount, counted, percent, score

ROWS = 12  # of observations, and of actions
BARS = 20  # rows of the histogram; when there are more bins, each row shows several
EIGHTHS = " ▏▎▍▌▋▊▉"

Row = Sequence[str | Text]


def show(description: DatasetStatistics, console: Console, dataset: str | None = None) -> None:
    """Print a description; `dataset` is how the suggested command names it."""
    _print(console, "", description.name, style="bold")
    for name, fact in _facts(description).items():
        _print(console, f"{name:<13}", fact)
    console.print("", _table(("over all steps", "min", "mean", "max", "std"), _columns(description)))
    if description.discrete:
        counts = [
            (str(action), f"{count:,}", _mass(count / description.steps))
            for action, count in enumerate(description.action_counts)
        ]
        console.print("", _table(("action", "steps", "fraction"), _first(counts)))
    console.print()
    _show_returns(description, console)
    console.print("", _histogram(description, console.width), "")
    _print(console, "rvs ", _conditions(description))
    _print(console, "+w  ", _weighting(description))
    _print(console, "+c  ", f"{regularized(description)}; {_regularizer(description)}")
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
    actions = counted(len(d.actions), "continuous action")
    if d.discrete:
        actions = counted(len(d.action_counts), "discrete action")
    observations = counted(len(d.observations), "observation")
    if d.image_shape:
        height, width, channels = d.image_shape
        observations = f"images of {height} x {width} pixels with {counted(channels, 'channel')}"
    facts = {
        "environment": f"{d.environment or 'unknown'}; horizon {horizon}",
        "episodes": f"{d.episodes:,}, {each}; {counted(d.steps, 'step')} in all",
        "ends": f"{lengths.terminated:,} terminated, {lengths.truncated:,} truncated or not marked",
        "dimensions": f"{observations}, {actions}",
    }
    if d.clipped_rewards:
        facts["rewards"] = "clipped to [−1, 1], and so are returns and targets"
    if d.unfinished_steps:
        facts["dropped"] = f"the last {counted(d.unfinished_steps, 'step')}, an episode without an end"
    return facts


def _table(names: Iterable[str], rows: Iterable[Row]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1), header_style="dim")
    for number, name in enumerate(names):
        table.add_column(Text(name), justify="right" if number else "left", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    return table


def _columns(d: DatasetStatistics) -> list[Row]:
    rows: list[Row] = []
    for columns in (d.observations, d.actions, (d.rewards,)):
        numbers = [(each.name, (each.min, each.mean, each.max, each.std)) for each in columns]
        rows += _first([(Text(shortened(name, 34)), *map(_short, found)) for name, found in numbers])
    return rows


def _first(rows: Sequence[Row]) -> list[Row]:
    more = Text(f"... and {len(rows) - ROWS:,} more; --json has all", style="dim")
    return [*rows[:ROWS], *([[more]] if len(rows) > ROWS else [])]


def _show_returns(d: DatasetStatistics, console: Console) -> None:
    if d.returns.counts_successes:
        successes = f"{d.returns.at_best:,} of {counted(d.episodes, 'episode')}"
        _print(console, "returns  ", f"0 or 1; success rate {percent(d.returns.mean)} ({successes})")
        return
    percentiles = d.returns.percentiles
    names = ["min", *(f"{at}{PERCENT}" for at, _ in percentiles[1:-1]), "best", "mean"]
    shown = _distinct(_formatter([value for _, value in percentiles]))
    mean = _formatter([d.returns.min, d.returns.mean, d.returns.best])(d.returns.mean)
    rows = {"returns": [*(shown(value) for _, value in percentiles), mean]}
    if d.scores is not None:
        low, mean, best = score(d.scores.min), score(d.scores.mean), score(d.scores.best)
        rows["scores"] = [low, *[""] * len(percentiles[1:-1]), best, mean]
    table = _table(("", *names), [(head, *texts) for head, texts in rows.items()])
    if Measurement.get(console, console.options.update(width=1000), table).maximum <= console.width:
        console.print(table)
        return
    for head, texts in rows.items():
        pairs = [f"{name} {text}" for name, text in zip(names, texts, strict=True) if text]
        _print(console, f"{head}  ", ", ".join(pairs))


def _bins(d: DatasetStatistics) -> list[tuple[float, float, int, float, float]]:
    """The ends, episodes and masses without and with +w of at most BARS bins; empty neighbours are one."""
    if d.returns.equal:
        return [(d.returns.min, d.returns.best, d.episodes, 1.0, 1.0)]
    bins, rows = len(d.bin_episodes), list[tuple[float, float, int, float, float]]()
    together = math.ceil(bins / BARS)
    for first in range(0, bins, together):
        part = slice(first, min(first + together, bins))
        before, after = (sum(draws.probabilities[part]) for draws in (d.by_length, d.by_return))
        low, episodes = d.bin_edges[first], sum(d.bin_episodes[part])
        if rows and rows[-1][2] == episodes == 0:
            low = rows.pop()[0]
        rows.append((low, d.bin_edges[part.stop], episodes, before, after))
    return rows


def _histogram(d: DatasetStatistics, width: int) -> Table:
    bins, shown = _bins(d), _formatter(d.bin_edges)
    labels = [f"{shown(low)} to {shown(high)}" for low, high, *_ in bins]
    if d.returns.equal:
        labels = [shown(d.returns.best)]
    others = max(len("effective sample size"), *map(len, labels)) + len("episodes  100 %  100 %  +c") + 8
    longest = max(6, min(30, (width - others) // 2))
    scale = longest / max(mass for *_, before, after in bins for mass in (before, after))
    rows: list[Row] = []
    for label, (_, high, episodes, before, after) in zip(labels, bins, strict=True):
        selected = episodes and (high > d.noise.min_return or high == d.returns.best)
        without, weighted = Text(_bar(before * scale)), Text(_bar(after * scale), "cyan")
        numbers = without, _mass(before), weighted, _mass(after)
        rows.append((label, f"{episodes:,}" if episodes else "–", *numbers, "▲" if selected else ""))
    both = (d.by_length, d.by_return)
    means = [shown(draws.mean_return) for draws in both]
    sizes = [f"{draws.effective_sample_size:,.0f}" for draws in both]
    for label, texts in (("mean return", means), ("effective sample size", sizes)):
        rows.append((Text(label, "dim"), "", texts[0], "", texts[1]))
    table = _table(("returns", "episodes", "without +w", "", "with +w", "", "+c"), rows)
    table.columns[2].justify = table.columns[4].justify = "left"
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
    kappa = f"kappa {amount(d.temperature)} ({origins[d.temperature_source]})"
    return f"samples by return: {counted(options.bins, 'bin')}, lambda {options.smoothing:g}, {kappa}"


def _regularizer(d: DatasetStatistics) -> str:
    origins = {"given": "as given", "published": "published", "return range": "from the return range"}
    sigma = f"sigma {amount(d.noise.noise)} ({origins[d.noise.noise_source]})"
    return f"percentile {d.regularizer.percentile:g}, {sigma}"


def regularized(d: DatasetStatistics) -> str:
    """What +c does to the targets of the best trajectories."""
    noise, best = d.noise, d.returns.best
    shown = _distinct(_formatter([noise.min_return, best, noise.max_target]))
    targets = f"s are {shown(best)} to {shown(noise.max_target)}"
    if shown(noise.max_target) == shown(best):
        targets = f" is the best return, {shown(best)}"
    which = f"{noise.episodes:,} of {d.episodes:,} episodes, those from return {shown(noise.min_return)} up"
    return f"regularizes {which}; its target{targets}"


def _conditions(d: DatasetStatistics) -> str:
    found = d.condition
    shown = _formatter([found.mean, found.std])
    low, best = (amount(round(value, 2)) for value in (found.at_min, found.at_best))
    condition = f"as a condition ({found.scale}), the min return is {low} and the best {best}"
    return f"average return-to-go: mean {shown(found.mean)}, std {shown(found.std)}; {condition}"


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
    alike = high - low <= 1e-6 * largest
    decimals = 4 if alike else min(6, max(0, 2 - math.floor(math.log10((high - low) / unit))))
    whole = [d for d in range(decimals) if all(math.isclose(v / unit, round(v / unit, d)) for v in values)]
    digits = min([*whole, decimals])
    return lambda value: f"{round(value / unit, digits) + 0.0:,.{digits}f}{suffix}".replace("-", "−")
