"""The picture of a maze dataset: its walls and goal, and paths coloured by return."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pytest
from command_line import TINY, run
from conftest import write_d4rl
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Rectangle
from PIL import Image

from cwbc.behaviours import navigation
from cwbc.core.trajectories import Trajectories
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports import maze_picture as maze_pictures
from cwbc.reports import png
from cwbc.reports.comparison import comparison
from cwbc.reports.maze_picture import maze_picture
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.paths import MazePath, read_paths
from cwbc.results.sweeps import Sweep
from cwbc.system.errors import UnavailableError


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


def write(data: Trajectories, path: Path) -> None:
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    write_d4rl(
        path,
        env="cwbc/pointmaze-umaze-v0",
        observations=data.observations,
        actions=data.actions,
        rewards=data.rewards,
        terminals=last & (data.rewards > 0),
        timeouts=last & (data.rewards == 0),
    )


def test_data_show_draws_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: Trajectories) -> None:
    monkeypatch.chdir(tmp_path)
    write(data, tmp_path / "maze.hdf5")
    heights = []
    for name in ("cwbc/pointmaze-umaze-v0", "none"):
        assert run("data", "show", "maze.hdf5", "--env", name, "--plot", "maze.png") == 0
        with Image.open("maze.png") as picture:
            heights.append(picture.height)
    assert heights[0] == heights[1] + 5 * png.DOTS_PER_INCH


def achieved(method: str, targets: tuple[float, ...]) -> EvaluatedMethod:
    """Two seeds that succeed at a target of 1 alone, or at none, with straight paths."""
    sweep = Sweep(
        method,
        np.arange(2),
        np.array(targets),
        np.broadcast_to((np.array(targets) == 1)[None, :, None], (2, len(targets), 3)).astype(np.float64),
        np.ones((2, len(targets), 3), np.int64),
    )
    paths = [
        MazePath(seed, target, episode, np.array([[3.0, 1.0], [3.0 - episode, 1.0 + seed]]))
        for seed in (0, 1)
        for target in targets
        for episode in (0, 1)
    ]
    dataset = DatasetSummary(
        "x", "cwbc/pointmaze-umaze-v0", "abc", 10, 90, 0.0, 1.0, 0.4, (0.0, 0.5, 1.0), (6, 4)
    )
    return EvaluatedMethod.of(dataclasses.replace(sweep, paths=paths), dataset)


def test_achieved_paths_stand_in_the_maze_by_method_and_target(monkeypatch: pytest.MonkeyPatch) -> None:
    figures: list[Figure] = []
    monkeypatch.setattr(maze_pictures, "to_png", figures.append)
    methods = {"bc": achieved("bc", (math.nan,)), "rvs": achieved("rvs", (0.0, 1.0))}
    maze_pictures.achieved_picture(methods)
    (figure,) = figures
    drawn = {axes.get_title(loc="center"): axes for axes in figure.axes if axes.collections and axes.patches}
    assert list(drawn) == ["bc, without a target", "rvs, target 0", "rvs, target 1"]
    for title, axes in drawn.items():
        (paths,) = (each for each in axes.collections if isinstance(each, LineCollection))
        assert len(paths.get_segments()) == 4
        assert {*np.asarray(paths.get_array()).tolist()} == {float(title == "rvs, target 1")}
        assert (paths.norm.vmin, paths.norm.vmax) == (0, 1)  # as in the data, whatever was achieved
        assert sum(isinstance(patch, Rectangle) for patch in axes.patches) == 18


def test_without_the_packages_that_draw_it_the_page_has_no_picture_and_why_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def missing() -> None:
        raise UnavailableError("environments need more")

    monkeypatch.setattr("cwbc.envs.need_simulators", missing)
    method = achieved("rvs", (0.0, 1.0))
    report = comparison({"rvs": method}, method.dataset, {}, {}, {})
    contents = report.contents()
    assert "paths.png not written: environments need more" in capsys.readouterr().err
    assert "paths.png" not in contents
    assert "reliability.png" in contents
    assert "<img" not in str(contents["report.html"])


def test_a_comparison_in_a_maze_shows_the_paths_that_it_achieved(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    data: Trajectories,
) -> None:
    monkeypatch.chdir(tmp_path)
    write(data, tmp_path / "maze.hdf5")
    environment = "--env=cwbc/pointmaze-umaze-v0"
    assert run("compare", "maze.hdf5", "bc", "rvs", environment, *TINY, "--targets=0,1,2", "--out=out") == 0
    page, recorded = Path("out/report.html"), Path("out/rvs/paths.csv")
    assert {path.target for path in read_paths(recorded)} == {0, 1}  # 1 is the dataset's best
    assert recorded.stat().st_size < 50_000
    with Image.open("out/paths.png") as shown:
        assert shown.width > 1000
    assert page.read_text().count("data:image/png;base64,") == 1
    page.unlink()
    assert run("report", "out") == 0  # from the files alone
    assert "Paths in the maze" in page.read_text()
    assert run("report", "out/bc") == 0
    assert "Paths in the maze" in Path("out/bc/report.html").read_text()
    assert Path("out/bc/paths.csv").exists()
    recorded.write_text(recorded.read_text().replace("\n1,", "\n9,"))  # a seed that was not trained
    assert run("report", "out") == 2
    assert "paths.csv is of another evaluation than results.csv beside it" in capsys.readouterr().err
