"""Pictures as PNG files, a third as large as matplotlib's own: charts have few colours."""

from __future__ import annotations

import io

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

DOTS_PER_INCH = 200


def blank(inches: tuple[float, float]) -> Figure:
    """A white figure to draw on."""
    figure = Figure(figsize=inches, dpi=DOTS_PER_INCH, layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    return figure


def to_png(figure: Figure) -> bytes:
    """The figure in the 256 colours that tell most."""
    pixels, png = io.BytesIO(), io.BytesIO()
    figure.savefig(pixels, format="rgba")
    picture = Image.frombytes("RGBA", figure.canvas.get_width_height(), pixels.getvalue()).convert("RGB")
    indexed = picture.quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    indexed.save(png, "PNG", optimize=True, dpi=(DOTS_PER_INCH, DOTS_PER_INCH))
    return png.getvalue()
