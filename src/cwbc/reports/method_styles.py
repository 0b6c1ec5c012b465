"""Colours and line styles that distinguish methods, the same in every chart and table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Looks = Mapping[str, int | None]  # by name: its place among the names of the page; None is the dataset

# Okabe and Ito's colours for colour-blind readers; wine stands in for their yellow, unreadable on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
# The same hues as on white, light enough for a dark ground; black becomes white.
COLOURS_ON_DARK = (
    "#3D9BDC", "#F07F33", "#1FBF8F", "#E39AC5", "#F2B233", "#93D6FA", "#F2F2F2", "#D0679B",
)  # fmt: skip
DASHES = (6, 3.5)  # drawn and left out, of dashed lines


def looks_of(drawn: Sequence[str], names: Sequence[str]) -> dict[str, int]:
    """The looks of what is drawn: places among the names of the page, the others after them."""
    every = list(dict.fromkeys([*names, *drawn]))
    return {name: every.index(name) for name in drawn}


def is_dashed(look: int) -> bool:
    """Whether a look is of the second round of eight, with the colours of the first."""
    return look // len(COLOURS) % 2 == 1


def classes(look: int | None) -> str:
    """The style sheet's names for a look."""
    if look is None:
        return "look-data"
    return f"look-{look % len(COLOURS)}{' dashed' * is_dashed(look)}"


def shortened(name: str, length: int) -> str:
    """A name without its middle where it is too long: names that begin alike often differ at the end."""
    if len(name) <= length:
        return name
    return f"{name[: length // 2]}…{name[-(length // 2 - 1) :]}"
