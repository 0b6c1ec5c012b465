"""Videos, decoded by Pillow: frames, their pauses, and the pixels of pictures."""

from __future__ import annotations

import zlib

import numpy as np
from numpy.typing import NDArray
from videos import decoded

from cwbc.reports.video import LAST, PAUSE, animated
from cwbc.runs.filming import Shot

COLOURS = np.array([[200, 30, 40], [10, 120, 220], [0, 0, 0], [255, 255, 255]], np.uint8)


def shot(picture: NDArray[np.uint8], achieved: float = 0.0, has_ended: bool = False) -> Shot:
    return Shot(zlib.compress(picture.tobytes()), picture.shape, achieved, has_ended)


def test_pictures_stand_side_by_side_pixel_by_pixel() -> None:
    generator = np.random.default_rng(0)
    pictures = COLOURS[generator.integers(4, size=(5, 2, 80, 60))]  # [frame, episode, row, column, 3]
    pictures[3] = pictures[2]  # nothing but the returns changes
    frames = [
        [shot(each, float(number), number == 4) for each in pair] for number, pair in enumerate(pictures)
    ]
    seen, pauses = decoded(animated(frames, ["target 3", "target 1,000"]))
    assert pauses == [PAUSE] * 4 + [LAST]
    for number, pair in enumerate(pictures):
        for episode, picture in enumerate(pair):
            enlarged = picture.repeat(3, axis=0).repeat(3, axis=1)  # at least 240 pixels high
            left = episode * (190 + 12)  # columns have room for their titles
            np.testing.assert_array_equal(seen[number, -240:, left : left + 180], enlarged)
    titles = seen[:, :-240]
    assert (titles[0, :24] == titles[4, :24]).all()  # the targets
    assert (titles[0, :24, :190] != titles[0, :24, 202:]).any()
    for before, after in zip(titles[:-1, 24:], titles[1:, 24:], strict=True):  # what is achieved
        assert (before != after).any()


def test_frames_that_do_not_change_take_no_room() -> None:
    generator = np.random.default_rng(0)
    still = shot(generator.integers(256, size=(400, 500, 3), dtype=np.uint8))  # large, of many colours
    once, often = (animated([[still]] * count, ["target 1"]) for count in (1, 20))
    assert often == once
    changed = shot(np.zeros((400, 500, 3), np.uint8))
    seen, pauses = decoded(animated([[still]] * 20 + [[changed]], ["target 1"]))
    assert seen.shape == (2, 320 + 46, 400, 3)
    assert pauses == [20 * PAUSE, LAST]


def test_many_colours_become_near_ones() -> None:
    ramp = np.zeros((256, 256, 3), np.uint8)
    ramp[..., 0], ramp[..., 1] = np.arange(256), np.arange(256)[:, None]
    seen, _ = decoded(animated([[shot(ramp)]], ["target 1"]))
    shown = seen[0, -256:, :256].astype(int)
    assert np.abs(shown - ramp).mean() < 8
    assert len(np.unique(shown.reshape(-1, 3), axis=0)) > 150
