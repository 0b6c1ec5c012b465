"""Pictures of MuJoCo's states, drawn without its renderer, which needs a GPU or packages of the system.

The projection is parallel, so that a geom looks like the convex hull of its projected points.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import mujoco
import numpy as np
from numpy.typing import NDArray

from cwbc.envs.physics import Floats
from cwbc.system.errors import need_extra

_WIDTH, _HEIGHT = 320, 240
_FINE = 2  # times finer than the picture is what is drawn; then it is averaged
_ELEVATION = math.radians(12)  # from which a robot is seen
_SKY, _TILES, _FLOOR = "#e4ebf1", ("#b9c4b1", "#a9b5a1"), "#f4f4f2"
_TRAIL, _GOAL = "#0072b2", "#d55e00"
_SHOWN_GROUPS = 3  # groups of geoms that MuJoCo shows by default

_TURN = np.linspace(0, 2 * np.pi, 24, endpoint=False)
_CIRCLE = np.stack([np.cos(_TURN), np.sin(_TURN)], axis=1)


class Mark(NamedTuple):
    """What is drawn on the floor: where an episode has been, and its goal."""

    trail: Sequence[Floats]  # of (x, y)
    goal: Floats  # [2]
    radius: float


class _Geom(NamedTuple):
    points: Floats  # [point, 3] in its own frame, whose convex hull it is
    radius: float  # around each of them
    colour: tuple[int, ...]


class Scene:
    """A model that is seen from above as a whole, or from the side, followed."""

    def __init__(self, model: mujoco.MjModel, above: bool = False) -> None:
        need_extra("PIL", "plots", "pictures of simulations")
        self._model, self._state, self._above = model, mujoco.MjData(model), above
        angle = math.pi / 2 if above else _ELEVATION
        self._axes = np.array([[1, 0, 0], [0, math.sin(angle), math.cos(angle)]])  # right and up
        self._ahead = np.cross(*self._axes)  # to the viewer
        self._geoms = {number: found for number in range(model.ngeom) if (found := _geom(model, number))}
        self._planes = np.flatnonzero(model.geom_type == mujoco.mjtGeom.mjGEOM_PLANE)
        self._move(model.qpos0)
        corners = np.concatenate([self._outline(number) for number in self._geoms])
        low, high = corners.min(axis=0), corners.max(axis=0)
        self._middle = (low + high) / 2
        if above:
            self._scale = _WIDTH / (high - low).max()
            self._size = np.ceil(self._scale * (high - low)).astype(int)
        else:  # a whole number of pixels, at which the edges of tiles do not flicker
            self._scale = max(1, round(_WIDTH / (2.4 * (high - low).max())))
            self._size = np.array([_WIDTH, _HEIGHT])
            self._middle -= self._axes @ self._followed()

    def picture(self, positions: Floats, mark: Mark | None = None) -> NDArray[np.uint8]:
        """The model in a state. [height, width, 3]"""
        from PIL import Image, ImageDraw
        from scipy.spatial import ConvexHull  # its import takes long

        self._move(positions)
        canvas = Image.new("RGB", tuple((_FINE * self._size).tolist()), _FLOOR if self._above else _SKY)
        draw = ImageDraw.Draw(canvas)
        middle = self._middle + (0 if self._above else self._axes @ self._followed())
        middle = np.round(self._scale * middle) / self._scale

        def pixels(points: Floats) -> list[tuple[float, ...]]:
            right, up = (_FINE * self._scale * (points - middle)).T
            width, height = _FINE * self._size
            return list(zip((width / 2 + right).tolist(), (height / 2 - up).tolist(), strict=True))

        if self._planes.size and not self._above:
            for corners, tile in self._ground():
                draw.polygon(pixels(corners @ self._axes.T), tile)
        if mark is not None:
            draw.line(pixels(np.array(mark.trail)), _TRAIL, 2 * _FINE, joint="curve")
        for number in sorted(self._geoms, key=lambda each: self._state.geom_xpos[each] @ self._ahead):
            outline, colour = self._outline(number), self._geoms[number].colour
            dark = tuple(part // 2 for part in colour)
            draw.polygon(pixels(outline[ConvexHull(outline).vertices]), colour, dark, _FINE)
        if mark is not None:
            circle = mark.goal + mark.radius * _CIRCLE
            draw.line(pixels(np.concatenate([circle, circle[:1]])), _GOAL, 2 * _FINE)
        return np.asarray(canvas.reduce(_FINE))

    def _move(self, positions: Floats) -> None:
        self._state.qpos[:] = np.nan_to_num(positions)  # a simulation may diverge
        mujoco.mj_kinematics(self._model, self._state)

    def _followed(self) -> Floats:
        """The place of the robot on the floor. [3]"""
        return np.array([*self._state.xpos[1][:2], 0.0])

    def _outline(self, number: int) -> Floats:
        """Projected points with the geom as their convex hull. [point, 2]"""
        geom, state = self._geoms[number], self._state
        points = state.geom_xpos[number] + geom.points @ state.geom_xmat[number].reshape(3, 3).T
        around = _CIRCLE * geom.radius if geom.radius else np.zeros((1, 2))
        outline: Floats = ((points @ self._axes.T)[:, None] + around).reshape(-1, 2)
        return outline

    def _ground(self) -> Iterator[tuple[Floats, str]]:
        """Tiles around the robot, of a meter: corners [corner, 3] and colours."""
        height = self._state.geom_xpos[self._planes[0], 2]
        x, y = np.floor(self._followed()[:2]).astype(int).tolist()
        reach = math.ceil(_WIDTH / self._scale / 2) + 1
        for column, row in itertools.product(range(x - reach, x + reach + 1), range(y - 2, y + 3)):
            corners = [(column, row), (column + 1, row), (column + 1, row + 1), (column, row + 1)]
            yield np.array([(*corner, height) for corner in corners]), _TILES[(column + row) % 2]


def _geom(model: mujoco.MjModel, number: int) -> _Geom | None:
    """A geom; None where it is hidden, or has no outline."""
    size, kinds = model.geom_size[number], mujoco.mjtGeom
    material = model.geom_matid[number]
    *colour, opacity = model.geom_rgba[number] if material < 0 else model.mat_rgba[material]
    points, radius = np.zeros((1, 3)), 0.0
    match model.geom_type[number]:
        case kinds.mjGEOM_SPHERE:
            radius = size[0]
        case kinds.mjGEOM_CAPSULE:
            points, radius = np.array([[0, 0, -size[1]], [0, 0, size[1]]]), size[0]
        case kinds.mjGEOM_BOX:
            points = np.array(list(itertools.product((-1, 1), repeat=3))) * size
        case kinds.mjGEOM_CYLINDER:
            points = np.array([(*(size[0] * each), end * size[1]) for each in _CIRCLE for end in (-1, 1)])
        case kinds.mjGEOM_ELLIPSOID:
            rings = [(np.cos(up) * _CIRCLE, np.sin(up)) for up in np.linspace(-np.pi / 2, np.pi / 2, 13)]
            points = size * np.array([(*each, up) for ring, up in rings for each in ring])
        case kinds.mjGEOM_MESH:
            mesh = model.geom_dataid[number]
            first = model.mesh_vertadr[mesh]
            points = model.mesh_vert[first : first + model.mesh_vertnum[mesh]].astype(np.float64)
        case _:
            return None
    if opacity == 0 or model.geom_group[number] >= _SHOWN_GROUPS:
        return None
    shade: list[Any] = [int(255 * value) for value in colour]
    return _Geom(points, float(radius), tuple(shade))
