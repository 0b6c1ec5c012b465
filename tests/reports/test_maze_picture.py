"""The picture of a maze dataset: its walls and goal, and paths coloured by return."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import run
from conftest import write_d4rl
from matplotlib.collections import LineCollection
from matplotlib.patches import Circle, Rectangle
from PIL import Image

from cwbc.behaviours import navigation
from cwbc.core.trajectories import Trajectories
from cwbc.reports import png
from cwbc.reports.maze_picture import maze_picture


@pytest.fixture(scope="module")
def data() -> Trajectories:
    return navigation.pointmaze("umaze").generate("x/umaze-v0", 60_000)


def test_paths_between_walls_are_coloured_by_return(data: Trajectories) -> None:
    drawing = maze_picture(data)
    assert drawing is not None
    axes = png.blank((5, 5)).add_subplot()
    drawing.draw(axes)
    walls = [patch for patch in axes.patches if isinstance(patch, Rectangle)]
    assert len(walls) == 18
    (goal,) = (patch for patch in axes.patches if isinstance(patch, Circle))
    assert (goal.center, goal.radius) == ((1, 1), 0.5)
    (paths,) = (each for each in axes.collections if isinstance(each, LineCollection))
    assert len(paths.get_segments()) == 150 < data.episodes
    returns = np.asarray(paths.get_array())
    assert (np.diff(returns) >= 0).all()  # successes on top
    assert {*returns.tolist()} == {0, 1}
    for path, succeeded in zip(paths.get_segments(), returns, strict=True):
        inside = np.linalg.norm(path[-1] - (1, 1)) < 0.6
        assert inside == bool(succeeded)
        for wall in walls:
            offset = path - wall.get_xy()
            assert not ((offset > 0.05) & (offset < 0.95)).all(axis=1).any()


def test_data_of_something_else_has_no_maze(data: Trajectories) -> None:
    assert maze_picture(data.described(environment="Hopper-v4")) is None
    assert maze_picture(data.described(environment=None)) is None


def test_data_show_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Trajectories) -> None:
    monkeypatch.chdir(tmp_path)
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    write_d4rl(
        tmp_path / "maze.hdf5",
        env="cwbc/pointmaze-umaze-v0",
        observations=data.observations,
        actions=data.actions,
        rewards=data.rewards,
        terminals=last & (data.rewards > 0),
        timeouts=last & (data.rewards == 0),
    )
    heights = []
    for name in ("cwbc/pointmaze-umaze-v0", "none"):
        assert run("data", "show", "maze.hdf5", "--env", name, "--plot", "maze.png") == 0
        with Image.open("maze.png") as picture:
            heights.append(picture.height)
    assert heights[0] == heights[1] + 5 * png.DOTS_PER_INCH
