"""The looks that tell methods apart, alike in every chart and table, and the two colour themes of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Looks = Mapping[str, int | None]  # by name: its place among the names of the page; None is the dataset

# Okabe and Ito's colours for colour-blind readers; wine stands in for their yellow, unreadable on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#882255")
# The same hues as on white, light enough for a dark ground; black becomes white.
COLOURS_ON_DARK = (
    "#3D9BDC", "#F07F33", "#1FBF8F", "#E39AC5", "#F2B233", "#93D6FA", "#F2F2F2", "#D0679B",
)  # fmt: skip
LIGHT = {
    "paper": "#fbfbf9", "card": "#ffffff", "ink": "#1f2328", "soft": "#5f666d", "line": "#e3e3de",
    "accent": "#0072b2", "grid": "#ebebe7", "axis": "#8a8f94", "beyond": "#f3f3ef", "data": "#a9b2bc",
    "good": "#00734f", "bad": "#b34700", "shadow": "#1f232826",
}  # fmt: skip
DARK = {
    "paper": "#14171a", "card": "#1c2024", "ink": "#e6e8ea", "soft": "#9fa8b0", "line": "#31373d",
    "accent": "#5ab4ec", "grid": "#2a2f35", "axis": "#707a84", "beyond": "#242a30", "data": "#67727e",
    "good": "#3fcf9f", "bad": "#f59a5c", "shadow": "#00000080",
}  # fmt: skip


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


def shortened(name: str, length: int = 38) -> str:
    """A name without its middle where it is too long: names that begin alike often differ at the end."""
    if len(name) <= length:
        return name
    return f"{name[: length // 2]}…{name[-(length // 2 - 1) :]}"


def themes() -> str:
    """The colours as custom properties: light, dark where system or button say so, never dark on paper."""
    dark = f"{{color-scheme:dark;{_properties(DARK, COLOURS_ON_DARK)}}}"
    return "\n".join(
        [
            f":root{{color-scheme:light;{_properties(LIGHT, COLOURS)}}}",
            f"@media screen and (prefers-color-scheme:dark){{:root:not([data-theme=light]){dark}}}",
            f"@media screen{{:root[data-theme=dark]{dark}}}",
            *(f".look-{i}{{--look:var(--look-{i})}}" for i in range(len(COLOURS))),
            ".look-data{--look:var(--data)}",
        ]
    )


def _properties(theme: dict[str, str], colours: Sequence[str]) -> str:
    named = theme | {f"look-{i}": colour for i, colour in enumerate(colours)}
    return "".join(f"--{name}:{value};" for name, value in named.items())
