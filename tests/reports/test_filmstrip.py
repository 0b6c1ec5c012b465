"""The picture of image data: frames of the best episode, in their order and evenly spaced."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from command_line import run
from conftest import with_returns
from PIL import Image

from cwbc.core.trajectories import Trajectories
from cwbc.data import store
from cwbc.reports import png
from cwbc.reports.filmstrip import filmstrip

LENGTH, HEIGHT, WIDTH = 22, 6, 10


def images(channels: int = 1) -> Trajectories:
    """Two episodes, of which the second is the best; a pixel is the number of its step plus its channel."""
    steps = 2 * LENGTH
    rows = np.arange(steps, dtype=np.uint8)[:, None, None, None] + np.arange(channels, dtype=np.uint8)
    return Trajectories(
        "frames",
        np.broadcast_to(rows, (steps, HEIGHT, WIDTH, channels)),
        np.zeros(steps, np.int32),
        (np.arange(steps) == steps - 1).astype(np.float32),
        np.array([0, LENGTH]),
        np.array([LENGTH, LENGTH]),
        np.ones(2, bool),
        action_count=2,
    )


@pytest.mark.parametrize(("channels", "shown"), [(1, (0, 0, 0)), (3, (0, 1, 2)), (4, (3, 3, 3))])
def test_frames_of_the_best_episode_stand_side_by_side(channels: int, shown: tuple[int, ...]) -> None:
    drawing = filmstrip(images(channels))
    assert drawing is not None
    axes = png.blank((5, 5)).add_subplot()
    drawing.draw(axes)
    (image,) = axes.images
    pixels = np.asarray(image.get_array())
    assert len(pixels) == HEIGHT
    steps = [0, 3, 6, 9, 12, 15, 18, 21]
    for step, tick in zip(steps, axes.get_xticklabels(), strict=True):
        assert tick.get_text() == f"step {step}"
        first = round(tick.get_position()[0] - (WIDTH - 1) / 2)
        frame = pixels[:, first : first + WIDTH]
        np.testing.assert_array_equal(frame, np.broadcast_to(LENGTH + step + np.array(shown), frame.shape))
    assert axes.get_title() == "frames of the best of 2 episodes, whose return is 1"


def test_short_episodes_have_all_their_frames_and_numbers_none() -> None:
    data = images()
    short = dataclasses.replace(
        data, starts=np.array([LENGTH]), lengths=np.array([3]), terminated=data.terminated[:1]
    )
    drawing = filmstrip(short)
    assert drawing is not None
    axes = png.blank((5, 5)).add_subplot()
    drawing.draw(axes)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["step 0", "step 1", "step 2"]
    assert filmstrip(with_returns(0, 1)) is None


def test_data_show_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    store.add(images(), "a file")
    assert run("data", "show", "frames", "--plot", "frames.png") == 0
    drawing = filmstrip(images())
    assert drawing is not None
    with Image.open("frames.png") as picture:
        height = picture.height / png.DOTS_PER_INCH
    assert height == pytest.approx(drawing.inches + png.HEIGHT + png.LOWER, abs=0.01)
