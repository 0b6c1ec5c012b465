"""Reports and comparisons as text for a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.comparison import Change
from benchmarks.rows import Report, Row


def report_table(report: Report) -> str:
    """Every row beside its limit."""
    titles = ("what", "measured", "limit in the same run", "ratio", "promise", "kept")
    rows = [
        (row.label, amount(row.measured, row.unit), _limit(row), _ratio(row), _promise(row), _kept(row))
        for row in report.rows
    ]
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    return f"{_table(titles, rows)}\n{report.device}; {report.processor}, {report.cores} cores; {versions}"


def change_table(changes: Sequence[Change]) -> str:
    """What got worse, and by how much."""
    titles = ("what got worse", "ratio stored", "ratio now", "times as bad")
    return _table(
        titles, [(c.now.label, _ratio(c.stored), _ratio(c.now), f"{c.factor:.2f}") for c in changes]
    )


def amount(value: float, unit: str) -> str:
    """Three digits, and no power of ten."""
    digits = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{digits} {unit}"


def _limit(row: Row) -> str:
    return "" if row.limit is None else f"{amount(row.limit, row.unit)} {row.limit_is}".rstrip()


def _ratio(row: Row) -> str:
    if row.ratio is None:
        return ""
    return f"{row.ratio:.0%}" if row.more_is_better else f"{row.ratio:.2f}x"


def _promise(row: Row) -> str:
    if row.promise is None:
        return ""
    bound = "at least" if row.more_is_better else "at most"
    if row.promise_on == "measured":
        return f"{bound} {amount(row.promise, row.unit)}"
    return f"{bound} {row.promise:.0%}" if row.more_is_better else f"{bound} {row.promise:.2f}x"


def _kept(row: Row) -> str:
    return {True: "yes", False: "NO", None: ""}[row.kept]


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    lines = (titles, ["-" * width for width in widths], *rows)
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
