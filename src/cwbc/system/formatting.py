"""Numbers and lists as text, the same in messages, tables and reports."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

PERCENT = "\u00a0%"  # the space does not break, so no line starts with a percent sign


def amount(value: float) -> str:
    """A return: whole numbers with thousands separators where it is large, four digits where it is small."""
    text = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.4g}"
    return text.replace("-", "−")


def score(value: float) -> str:
    """A normalized score, with one decimal."""
    return f"{round(value, 1) + 0.0:.1f}".replace("-", "−")  # + 0.0: no "−0.0"


def percent(value: float) -> str:
    """A fraction in whole percents."""
    return f"{round(100 * value)}{PERCENT}".replace("-", "−")


def retention_percent(value: float) -> str:
    """OOD retention in whole percents: of a score below 0, nothing of the best one is retained."""
    return percent(max(value, 0.0))


def span(counts: Iterable[int]) -> str:
    """The min and max of some numbers ("3 to 5"), or the one value that all have."""
    ends = sorted(set(counts))
    return " to ".join(f"{end:,}" for end in dict.fromkeys((ends[0], ends[-1])))


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Rows as the text of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def listed(names: Sequence[str]) -> str:
    """Names in words: "a, b and c"."""
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def counted(number: int, what: str) -> str:
    """A number with its noun: "1 seed", "2 seeds"."""
    return f"{number:,} {what}{'s' * (number != 1)}"
