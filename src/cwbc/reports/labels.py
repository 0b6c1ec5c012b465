"""Where the names of a chart's landmarks have room, on pages as in pictures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, pairwise, permutations, product
from typing import Literal, NamedTuple


class Label(NamedTuple):
    """Where a text goes that belongs to a place."""

    x: float  # the place
    side: Literal["middle", "start", "end"]  # of the text, that is put at the place
    tier: int  # counted from the bottom
    start: float
    end: float

    def meets(self, other: Label) -> bool:
        """Whether both would overlap."""
        return self.tier == other.tier and self.start < other.end + 6 and other.start < self.end + 6


def place_labels(wanted: Sequence[tuple[float, float]], low: float, high: float) -> Sequence[Label]:
    """Labels that do not overlap, rather low than high, and centred rather than beside their places.

    Args:
        wanted: the place of each, in order, and its width.
        low: where the room for them begins; `high`, where it ends.
    """
    choices = [
        [
            label
            for tier in range(len(wanted))
            for label in (
                Label(x, "middle", tier, x - width / 2, x + width / 2),
                Label(x, "start", tier, x + 4, x + 4 + width),
                Label(x, "end", tier, x - width - 4, x - 4),
            )
            if label.start >= low and label.end <= high
        ]
        for x, width in wanted
    ]
    placed = (
        labels
        for labels in product(*choices)
        if not any(one.meets(other) for one, other in combinations(labels, 2))
    )
    return min(placed, key=_strangeness, default=())


def _strangeness(labels: Sequence[Label]) -> int:
    crossed = sum(one.tier == other.tier and one.start > other.start for one, other in pairwise(labels))
    struck = sum(
        one.start < other.x < one.end and one.tier < other.tier for one, other in permutations(labels, 2)
    )
    higher = sum(label.tier for label in labels)
    return 20 * crossed + 10 * higher + 3 * struck + sum(label.side != "middle" for label in labels)
