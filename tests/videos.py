"""Videos, decoded by Pillow."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def decoded(content: bytes) -> tuple[NDArray[np.uint8], list[float]]:
    """The frames [frame, height, width, 3] and the pauses after them in milliseconds."""
    image = Image.open(io.BytesIO(content))
    frames, pauses = [], []
    for number in range(image.n_frames):  # type: ignore[attr-defined]
        image.seek(number)
        frames.append(np.asarray(image.convert("RGB")))
        pauses.append(float(image.info.get("duration", 0)))  # none of a single frame
    return np.stack(frames), pauses
