"""Frames of a dataset's best episode in a row: what its images show, and how the best one goes."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from cwbc.core.trajectories import Trajectories
from cwbc.reports.png import INK, WIDTH, Illustration
from cwbc.system.formatting import amount

_FRAMES = 8
_GAP = 0.04  # between frames, of their width
_TEXT = 0.8  # inches of the title and of the numbers below
_HIGHEST = 4.0  # inches of frames


def filmstrip(data: Trajectories) -> Illustration | None:
    """How to draw frames of the best episode, evenly spaced; None where observations are no images."""
    if not data.has_images:
        return None
    best = int(np.argmax(data.returns))
    steps = np.unique(np.linspace(0, data.lengths[best] - 1, _FRAMES).astype(np.int64))
    frames = data.observations[data.starts[best] + steps]
    inches = _TEXT + min(_HIGHEST, WIDTH * frames.shape[1] / (frames.shape[2] * _FRAMES))
    title = f"frames of the best of {data.episodes:,} episodes, whose return is {amount(data.returns[best])}"
    return Illustration(functools.partial(_draw, in_colour(frames), steps, title), inches)


def in_colour(frames: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images of red, green and blue; of any other number of channels, the last one in gray."""
    return frames if frames.shape[-1] == 3 else np.repeat(frames[..., -1:], 3, axis=-1)


def _draw(frames: NDArray[np.uint8], steps: NDArray[np.int64], title: str, axes: Axes) -> None:
    height, width = frames.shape[1:3]
    gap = max(1, round(_GAP * width))
    white = np.full((height, gap, 3), 255, np.uint8)
    row: list[Any] = [part for frame in frames for part in (frame, white)]
    axes.imshow(np.concatenate(row[:-1], axis=1), interpolation="nearest")
    middles = (width - 1) / 2 + (width + gap) * np.arange(len(steps))
    axes.set_xticks(middles, [f"step {step:,}" for step in steps.tolist()])
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(colors=INK, labelsize=9, length=0)
    axes.set_title(title, fontsize=9, color=INK)
