"""Checkpoint files: what goes in comes out, and what is not ours is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy
from damage import flipped

from cwbc.system.errors import InputError
from cwbc.system.tensor_files import (
    CHECKPOINT,
    FORMAT,
    flatten,
    read,
    read_description,
    unflatten,
    write,
)

TENSORS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "b/c": np.array([[1, 2], [3, 4]], np.int32).T,  # not in C order
    "scalar": np.array(3.5),
    "empty": np.zeros((0, 4), np.float32),
    "flags": np.array([True, False]),
    "bits": np.array([2**32 - 1], np.uint32),
    "odd": np.array([np.nan, np.inf, -0.0]),
}


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    description = {"step": 7, "text": 'ü "quoted"', "nested": {"list": [1, None, 0.1]}}
    write(path, TENSORS, description)
    tensors, found = read(path)
    assert found == {"format": FORMAT, **description}
    assert read_description(path) == found
    assert tensors.keys() == TENSORS.keys()
    for name, tensor in tensors.items():
        assert tensor.dtype == TENSORS[name].dtype
        np.testing.assert_array_equal(tensor, TENSORS[name], strict=True)


def test_writing_replaces_and_leaves_nothing_beside(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    write(path, TENSORS, {"step": 1})
    write(path, {"x": np.ones(2)}, {"step": 2})
    assert list(read(path)[0]) == ["x"]
    assert read_description(path)["step"] == 2
    assert list(tmp_path.iterdir()) == [path]


class Moments(NamedTuple):
    count: Any
    mean: Any


def tree() -> dict[str, Any]:
    """Dictionaries, tuples and named tuples, as parameters and optimizers have them."""
    return {
        "layer0": {"weight": jnp.ones((2, 3)), "bias": jnp.arange(3.0)},
        "state": (Moments(jnp.asarray(4), {"w": jnp.zeros(2)}), ()),
    }


def test_a_tree_comes_back_in_its_form(tmp_path: Path) -> None:
    tensors = flatten("optimizer", tree())
    assert all(isinstance(tensor, np.ndarray) for tensor in tensors.values())
    write(tmp_path / "checkpoint", tensors, {})
    like = jax.tree.map(jnp.zeros_like, tree())
    path = tmp_path / "checkpoint"
    found = unflatten(path, "optimizer", like, read(path)[0])
    assert isinstance(found["state"][0], Moments)
    jax.tree.map(lambda one, other: np.testing.assert_array_equal(one, other, strict=True), found, tree())


@pytest.mark.parametrize("reader", [read, read_description])
@pytest.mark.parametrize("kept", [0, 4, 100, -1])
def test_a_truncated_file_is_damaged(tmp_path: Path, reader: Any, kept: int) -> None:
    path = tmp_path / "checkpoint"
    write(path, TENSORS, {"step": 7})
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match=r"checkpoint is not a file that cwbc saved, or it is damaged: ."):
        reader(path)
    path = path.rename(tmp_path / CHECKPOINT)  # a run's
    with pytest.raises(InputError, match=r"damaged: .*; move .* away, and the command that trained the run"):
        reader(path)


@pytest.mark.parametrize(
    "content",
    [
        b"not a checkpoint at all",
        safetensors.numpy.save({"x": np.ones(2)}),
        safetensors.numpy.save({"x": np.ones(2)}, {"other": "metadata"}),
        safetensors.numpy.save({"x": np.ones(2)}, {"cwbc": "{not json"}),
    ],
    ids=["text", "no metadata", "other metadata", "bad description"],
)
def test_a_file_that_is_not_ours_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "other.safetensors").write_bytes(content)
    with pytest.raises(InputError, match=r"other.safetensors is not a file that cwbc saved"):
        read(tmp_path / "other.safetensors")


def test_a_missing_file_or_a_folder_is_the_users_error(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=f"{path} is not a file that cwbc saved"):
            read(path)


@pytest.mark.parametrize("description", [{}, {"format": FORMAT + 1}])
def test_another_format_is_told(tmp_path: Path, description: dict[str, int]) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(safetensors.numpy.save({"x": np.ones(2)}, {"cwbc": json.dumps(description)}))
    found = description.get("format")
    with pytest.raises(InputError, match=f"has format {found}; this version reads formats 1 and 2"):
        read(path)


def test_every_flipped_bit_is_noticed(tmp_path: Path) -> None:
    path, generator = tmp_path / "checkpoint", np.random.default_rng(0)
    write(path, TENSORS, {"step": 7, "design": {"lowest": [-1.0], "highest": [1.0]}})
    whole = path.read_bytes()
    for _ in range(300):
        path.write_bytes(flipped(whole, generator))
        with pytest.raises(InputError, match=r"checkpoint (is|has format) "):
            read(path)


def test_only_what_is_wanted_is_read(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    write(path, TENSORS, {})
    assert set(read(path, lambda name: name == "a")[0]) == {"a"}
    data = bytearray(path.read_bytes())
    data[-1] ^= 1  # of a tensor that is not
    path.write_bytes(bytes(data))
    damaged = [name for name in TENSORS if not _reads(path, name)]
    assert len(damaged) == 1
    with pytest.raises(InputError, match=f"the tensor {damaged[0]} does not have its checksum"):
        read(path)


def _reads(path: Path, name: str) -> bool:
    try:
        return set(read(path, lambda each: each == name)[0]) == {name}
    except InputError:
        return False


def test_files_of_the_first_format_are_read(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint"
    path.write_bytes(safetensors.numpy.save({"x": np.ones(2)}, {"cwbc": json.dumps({"format": 1, "a": 2})}))
    tensors, description = read(path)
    assert (tensors["x"].tolist(), description) == ([1.0, 1.0], {"format": 1, "a": 2})
    # But none that passes for one of the first format to do without its checksums.
    write(path, {"x": np.ones(2)}, {})
    with safetensors.safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    metadata["cwbc"] = metadata["cwbc"].replace('"format": 2', '"format": 1')
    path.write_bytes(safetensors.numpy.save({"x": np.ones(2)}, metadata))
    with pytest.raises(InputError, match="its description does not have its checksum"):
        read(path)


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"p/a": np.ones(3)}, "lacks the tensor p/b"),
        ({"p/a": np.ones(3), "p/b": np.ones(2), "p/c": np.ones(1)}, "has a tensor p/c, which"),
        ({"p/a": np.ones(3), "p/b": np.ones(3)}, r"the tensor p/b is \[3\] of float64; expected \[2\]"),
        ({"p/a": np.ones(3), "p/b": np.ones(2, int)}, r"the tensor p/b is \[2\] of int64; expected"),
        ({"p/a": np.array([0, np.nan, 0]), "p/b": np.ones(2)}, r"the tensor p/a has nan at \[1\]"),
        ({"p/a": np.array([0, 0, -np.inf]), "p/b": np.ones(2)}, r"the tensor p/a has -inf at \[2\]"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(tensors: dict[str, Any], message: str) -> None:
    like = {"a": np.zeros(3), "b": np.zeros(2)}
    with pytest.raises(InputError, match=message):
        unflatten(Path("file"), "p", like, tensors)
