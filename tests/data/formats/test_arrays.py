"""NumPy's files: D4RL's arrays in them, and never a pickle."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import d4rl_arrays

from cwbc.data import load
from cwbc.data.formats.arrays import from_arrays
from cwbc.system.errors import InputError


class Trap:
    """Unpickling it would leave a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.mark,))


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_read_as_themselves(tmp_path: Path, save: Any) -> None:
    save(tmp_path / "mine.npz", **d4rl_arrays(), settings=np.arange(100), version=np.array(3))
    data = load(tmp_path / "mine.npz")
    assert (data.name, data.content_hash) == ("mine", from_arrays("", **d4rl_arrays()).content_hash)


def test_python_objects_are_never_loaded(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    objects = np.array([Trap(mark)] * 6, object)
    np.savez(tmp_path / "mine.npz", **d4rl_arrays(rewards=objects))
    with pytest.raises(
        InputError, match="rewards holds Python objects; save plain arrays of numbers: objects"
    ):
        load(tmp_path / "mine.npz")
    np.savez(tmp_path / "mine.npz", **d4rl_arrays(), extra=objects)
    assert load(tmp_path / "mine.npz").steps == 6
    assert not mark.exists()


def test_arrays_with_a_row_for_each_episode(tmp_path: Path) -> None:
    shapes = {"observations": (2, 3, 4), "actions": (2, 3, 1), "rewards": (2, 3), "terminals": (2, 3)}
    arrays: dict[str, Any] = {name: np.zeros(shape) for name, shape in shapes.items()}
    np.savez(tmp_path / "mine.npz", **arrays)
    text = r"observations has the shape \(2, 3, 4\), a row for each episode; concatenate .* to \(6, 4\) and"
    with pytest.raises(InputError, match=text):
        load(tmp_path / "mine.npz")


def test_an_array_that_claims_more_than_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    np.savez(path, **d4rl_arrays())
    content = path.read_bytes()
    path.write_bytes(content.replace(b"(6,), }   ", b"(6000,), }"))
    assert path.read_bytes() != content
    with pytest.raises(InputError, match=r"observations holds an array of shape|cannot be read as NPZ"):
        load(path)


def test_a_file_that_is_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "mine.npz"
    path.write_bytes(b"PK\x03\x04 and so on")
    with pytest.raises(InputError, match=r"mine.npz cannot be read as NPZ \(truncated, damaged, or another"):
        load(path)
