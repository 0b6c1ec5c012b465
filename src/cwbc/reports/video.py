"""Episodes side by side as an animated PNG: every browser plays it, and a GIF would be twice as large."""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from scipy.spatial import KDTree

from cwbc.reports.png import FAINT, INK
from cwbc.runs.filming import Shot
from cwbc.system.formatting import amount

Pixels = NDArray[np.uint8]
PAUSE = 40  # milliseconds of a frame: 25 frames per second
LAST = 2000  # of the last one
_LOWEST, _HIGHEST = 240, 320  # pixels of pictures: smaller ones are enlarged, larger ones reduced
_NARROWEST = 190  # of a column: its title has room
_GAP, _TITLE, _LINE = 12, 46, 20
_EXACT, _COLOURS = 64, 256  # colours that are kept exactly, the most frequent ones; all of them
_SAMPLED = 12  # frames whose colours decide


def animated(frames: Sequence[Sequence[Shot]], titles: Sequence[str]) -> bytes:
    """The frames as a video, a column for each title."""
    font = ImageFont.truetype(Path(matplotlib.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), 14)
    some = np.unique(np.linspace(0, len(frames) - 1, _SAMPLED).astype(int))
    palette = _Palette(np.concatenate([_drawn(frames[place], titles, font) for place in some]))
    first, *later = [palette.image(_drawn(frame, titles, font)) for frame in frames]
    pauses, file = [PAUSE] * (len(frames) - 1) + [LAST], io.BytesIO()
    # A frame without a change lengthens the one before; of others, only the changed rectangle is written.
    how: dict[str, Any] = {"save_all": True, "duration": pauses, "compress_level": 9}
    first.save(file, "PNG", append_images=later, **how)
    return file.getvalue()


def _drawn(frame: Sequence[Shot], titles: Sequence[str], font: ImageFont.FreeTypeFont) -> Pixels:
    """All episodes at one step. [height, width, 3]"""
    pictures = [_sized(Image.fromarray(shot.picture)) for shot in frame]
    widths = [max(picture.width, _NARROWEST) for picture in pictures]
    places = [0, *itertools.accumulate(width + _GAP for width in widths)]
    whole = Image.new("RGB", (places[-1] - _GAP, _TITLE + max(each.height for each in pictures)), "white")
    draw = ImageDraw.Draw(whole)
    for shot, title, picture, place in zip(frame, titles, pictures, places, strict=False):
        whole.paste(picture, (place, _TITLE))
        draw.text((place + 4, 3), title, INK, font)
        achieved = f"achieved {amount(round(shot.achieved, 2) + 0.0)} "  # + 0.0: no "−0"
        draw.text((place + 4, 3 + _LINE), achieved, INK, font)
        end = place + 4 + draw.textlength(achieved, font)
        draw.text((end, 3 + _LINE), "· ended" * shot.has_ended, FAINT, font)
    return np.asarray(whole)


def _sized(picture: Image.Image) -> Image.Image:
    """Enlarged by a whole number, so that pixels stay sharp, or reduced."""
    times = math.ceil(_LOWEST / picture.height)
    if times > 1:
        return picture.resize((times * picture.width, times * picture.height), Image.Resampling.NEAREST)
    if picture.height <= _HIGHEST:
        return picture
    width = round(picture.width * _HIGHEST / picture.height)
    return picture.resize((width, _HIGHEST), Image.Resampling.LANCZOS)


class _Palette:
    """The colours of all frames; others become the nearest of them."""

    def __init__(self, sampled: Pixels) -> None:
        image = Image.fromarray(sampled)
        counts: Any = image.getcolors(image.width * image.height)
        exact = [colour for _, colour in sorted(counts, reverse=True)[:_EXACT]]
        others: Any = image.quantize(_COLOURS - len(exact), Image.Quantize.MEDIANCUT).getpalette("RGB")
        self.colours = np.concatenate([exact, np.reshape(others, (-1, 3))]).astype(np.uint8)  # [index, 3]
        self._nearest = KDTree(self.colours)
        self._known = np.full(1 << 24, -1, np.int16)  # [colour] its index; -1: not met yet

    def image(self, pixels: Pixels) -> Image.Image:
        """Pixels [height, width, 3] in the nearest colours."""
        packed = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
        if (new := np.unique(packed[self._known[packed] < 0])).size:
            parts = np.stack([new >> 16, new >> 8 & 255, new & 255], axis=1)
            self._known[new] = self._nearest.query(parts)[1]
        found = Image.fromarray(self._known[packed].astype(np.uint8), "P")
        found.putpalette(self.colours.tobytes())
        return found
