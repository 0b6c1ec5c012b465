"""Elements of SVG and HTML as text: the few lines that a drawing library would have been."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape


def element(name: str, *content: str, **attributes: object) -> str:
    """An element around content that is markup already; attributes that are None are left out.

    An underscore in an attribute's name stands for a hyphen, one at its end is dropped (`class_`).
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_shown(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{written}>{''.join(content)}</{name}>"


def text(x: float, y: float, words: str, **attributes: object) -> str:
    """Words at a place of a drawing."""
    return element("text", escape(words), x=x, y=y, **attributes)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def path(class_: str, steps: str) -> str:
    """A path, or nothing where there are no steps."""
    return element("path", class_=class_, d=steps) if steps else ""


def polyline(points: Iterable[tuple[float, float]]) -> str:
    """The steps of a path through points; one that is not finite leaves a gap."""
    steps, letter = [], "M"
    for x, y in points:
        if not (math.isfinite(x) and math.isfinite(y)):
            letter = "M"
            continue
        steps.append(f"{letter}{number(x)} {number(y)}")
        letter = "L"
    return "".join(steps)


def number(value: float) -> str:
    """A coordinate to a tenth of a pixel."""
    return f"{round(value, 1) + 0.0:.1f}".removesuffix(".0")


def _shown(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
