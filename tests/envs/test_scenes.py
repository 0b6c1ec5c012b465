"""Pictures of MuJoCo's states, against areas and places computed by hand."""

from __future__ import annotations

import math

import mujoco
import numpy as np
import pytest
from numpy.typing import NDArray

from cwbc import envs
from cwbc.envs.mazes import RADIUS, BatchedMaze
from cwbc.envs.scenes import Scene

RED, GREEN = (255, 0, 0), (0, 255, 0)
SHAPES = {  # with their extent to the right and the area that is seen from above
    "sphere": ('type="sphere" size=".5"', 1.0, math.pi / 4),
    "box": ('type="box" size="1 .5 .1"', 2.0, 2.0),
    "turned box": ('type="box" size=".1 .5 1" euler="0 90 0"', 2.0, 2.0),
    "capsule": ('type="capsule" size=".5 1" euler="0 90 0"', 3.0, 2 + math.pi / 4),
    "cylinder": ('type="cylinder" size=".5 1" euler="0 90 0"', 2.0, 2.0),
    "ellipsoid": ('type="ellipsoid" size="1 .5 .2"', 2.0, math.pi / 2),
}


def model(*geoms: str) -> mujoco.MjModel:
    """A model with one body that moves freely."""
    shapes = "".join(f"<geom {geom}/>" for geom in geoms)
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><geom type="plane" size="9 9 1"/><body pos="0 0 2"><freejoint/>{shapes}</body>'
        "</worldbody></mujoco>"
    )


def coloured(picture: NDArray[np.uint8], colour: tuple[int, ...]) -> NDArray[np.bool_]:
    """Where a picture has a colour, or its dark outline."""
    hue = np.array(colour) > 0
    found: NDArray[np.bool_] = (picture[..., hue].min(axis=-1) > 90) & (picture[..., ~hue].max(axis=-1) < 90)
    return found


@pytest.mark.parametrize("shape", SHAPES)
def test_a_shape_has_its_size(shape: str) -> None:
    described, width, area = SHAPES[shape]
    of = model(f'{described} rgba="1 0 0 1"')
    seen = coloured(Scene(of, above=True).picture(of.qpos0), RED)
    pixel = width / seen.any(axis=0).sum()  # all of the picture is the shape's
    assert seen.shape[1] == pytest.approx(320, abs=2)
    assert seen.sum() * pixel**2 == pytest.approx(area, rel=0.03)


def test_hidden_geoms_are_not_drawn_and_near_ones_cover_far_ones() -> None:
    far, near = 'type="sphere" size=".5" pos="0 1 0" rgba="1 0 0 1"', 'type="sphere" size=".4" rgba="0 1 0 1"'
    unseen = ('type="sphere" size="3" rgba="0 0 1 0"', 'type="sphere" size="3" group="4"')
    of = model(near, far, *unseen)
    picture = Scene(of).picture(of.qpos0)
    alone = Scene(model(near, far)).picture(of.qpos0)
    np.testing.assert_array_equal(picture, alone)
    behind = of.qpos0.copy()
    behind[3:7] = 0, 0, 0, 1  # half a turn around the vertical axis
    before, after = (coloured(each, GREEN).sum() for each in (picture, Scene(of).picture(behind)))
    assert before > 1.5 * after > 0


def test_a_robot_is_followed_over_tiles() -> None:
    simulator = envs.make("HalfCheetah-v5", 2, drawn=True)
    simulator.reset(np.arange(2), [0, 0])
    first = simulator.picture(0)
    np.testing.assert_array_equal(first, simulator.picture(1))
    positions = simulator.physics.positions  # type: ignore[attr-defined]
    positions[1, 0] += 2  # tiles repeat every two meters
    np.testing.assert_array_equal(first, simulator.picture(1))
    positions[1, 0] += 0.5
    moved = (simulator.picture(1) != first).any(axis=2)
    assert moved[150:].sum() > 0  # the tiles
    assert not moved[:100].any()  # the sky
    simulator.close()


def test_a_maze_shows_its_point_goal_and_path() -> None:
    maze = envs.make("cwbc/pointmaze-umaze-v0", 1, drawn=True)
    assert isinstance(maze, BatchedMaze)
    rows = np.arange(1)
    maze.reset(rows, [0])
    first = maze.picture(0)
    side = first.shape[0] / 5  # pixels of a cell
    point = coloured(first, (0, 0, 255))
    middle = np.argwhere(point).mean(axis=0)
    place = maze.physics.positions[0]
    expected = first.shape[0] / 2 - side * place[1], first.shape[1] / 2 + side * place[0]
    np.testing.assert_allclose(middle, expected, atol=2)
    goal = np.argwhere((first == (213, 94, 0)).all(axis=2))
    assert np.ptp(goal[:, 1]) == pytest.approx(2 * RADIUS * side, abs=3)
    for _ in range(40):
        maze.step(rows, np.array([[1.0, 1.0]]))
        later = maze.picture(0)
    path = (later == (0, 114, 178)).all(axis=2)
    assert path.any()
    assert not (first == (0, 114, 178)).all(axis=2).any()
    maze.reset(rows, [0])
    np.testing.assert_array_equal(maze.picture(0), first)
