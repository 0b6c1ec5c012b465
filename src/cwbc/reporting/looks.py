"""What tells methods apart in every chart and table of a page, and the two themes that pages come in."""

from __future__ import annotations

from collections.abc import Sequence

from cwbc.reporting.figures import COLOURS
from cwbc.reporting.svg import number

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
# Around a point that a path has moved to: circle, square, diamond, two triangles, plus, cross and hexagon.
_MARKERS = (
    "m-3.4 0a3.4 3.4 0 1 0 6.8 0a3.4 3.4 0 1 0-6.8 0z",
    "m-3-3h6v6h-6z",
    "m0-4.4l4.4 4.4l-4.4 4.4l-4.4-4.4z",
    "m0-4l4 7h-8z",
    "m0 4l4-7h-8z",
    "m-1.4-3.8h2.8v2.4h2.4v2.8h-2.4v2.4h-2.8v-2.4h-2.4v-2.8h2.4z",
    "m0-1.9l1.9-1.9l1.9 1.9l-1.9 1.9l1.9 1.9l-1.9 1.9l-1.9-1.9l-1.9 1.9l-1.9-1.9l1.9-1.9l-1.9-1.9l1.9-1.9z",
    "m0-4l3.5 2v4l-3.5 2l-3.5-2v-4z",
)


def classes(look: int | None) -> str:
    """The style sheet's names for a look, the place of a method among the names; None is the dataset's."""
    if look is None:
        return "look-data"
    return f"look-{look % len(COLOURS)}{' dashed' * (look // len(COLOURS) % 2)}"


def marker(look: int | None, x: float, y: float) -> str:
    """The steps of a path that draw a look's marker at a point."""
    return f"M{number(x)} {number(y)}{_MARKERS[(look or 0) % len(_MARKERS)]}"


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
