"""Episodes side by side as an animated PNG: every browser plays it, and a GIF would be twice as large."""

from __future__ import annotations

import itertools
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
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
    indices = (palette.indices(_drawn(frame, titles, font)) for frame in frames)
    return b"".join(_file(indices, len(frames), palette.colours))


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

    def indices(self, pixels: Pixels) -> Pixels:
        """The nearest colour of each pixel. [height, width]"""
        packed = pixels.astype(np.int32) @ np.array([1 << 16, 1 << 8, 1], np.int32)
        if (new := np.unique(packed[self._known[packed] < 0])).size:
            parts = np.stack([new >> 16, new >> 8 & 255, new & 255], axis=1)
            self._known[new] = self._nearest.query(parts)[1]
        return self._known[packed].astype(np.uint8)


def _file(frames: Iterator[Pixels], count: int, colours: Pixels) -> Iterator[bytes]:
    """The parts of the file; of each frame but the first, only the rectangle that has changed."""
    first = next(frames)
    before = ~first  # all of it is new
    yield b"\x89PNG\r\n\x1a\n"
    yield _chunk(b"IHDR", struct.pack(">IIBBBBB", *first.shape[::-1], 8, 3, 0, 0, 0))  # 8 bits, a palette
    yield _chunk(b"PLTE", colours.tobytes())
    yield _chunk(b"acTL", struct.pack(">II", count, 0))  # repeated for ever
    for number, frame in enumerate(itertools.chain([first], frames)):
        rows, columns = _changed(frame, before)
        part, before = frame[rows, columns], frame
        pause = LAST if number == count - 1 else PAUSE
        # The chunks of frames are numbered: one of the first frame, two of each later one.
        chunk = max(0, 2 * number - 1)
        place = (chunk, *part.shape[::-1], columns.start, rows.start)
        yield _chunk(b"fcTL", struct.pack(">IIIIIHHBB", *place, pause, 1000, 0, 0))
        unfiltered = np.pad(part, ((0, 0), (1, 0)))  # a row begins with the number of its filter
        content = zlib.compress(unfiltered.tobytes(), 9)
        yield _chunk(b"fdAT", struct.pack(">I", chunk + 1) + content) if number else _chunk(b"IDAT", content)


def _changed(frame: Pixels, before: Pixels) -> tuple[slice, slice]:
    """The rows and columns that differ; those of one pixel where nothing does."""
    rows, columns = (np.flatnonzero((frame != before).any(axis=axis)) for axis in (1, 0))
    if not rows.size:
        return slice(0, 1), slice(0, 1)
    return slice(int(rows[0]), int(rows[-1]) + 1), slice(int(columns[0]), int(columns[-1]) + 1)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
