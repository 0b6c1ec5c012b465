"""Image observations from every format that can hold them, through the store, checks and statistics."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import run
from numpy.typing import NDArray

from cwbc.core.regularizers import Conservative
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.data import load, read, store
from cwbc.data.checks import Recording
from cwbc.data.formats import hdf5, minari
from cwbc.data.formats.arrays import from_arrays
from cwbc.data.issues import Origin
from cwbc.data.statistics import DatasetStatistics
from cwbc.system.errors import InputError

STEPS = 12
RANDOM = np.random.default_rng(0)
FRAMES = RANDOM.integers(0, 256, (STEPS, 10, 10, 3), np.uint8)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.chdir(tmp_path)


def arrays(observations: NDArray[Any] = FRAMES, **changes: Any) -> dict[str, Any]:
    last = np.arange(STEPS) % 4 == 3
    return {
        "observations": observations,
        "actions": np.arange(STEPS) % 3,
        "rewards": np.arange(STEPS, dtype=np.float32),
        "terminals": last,
        "timeouts": np.zeros(STEPS, bool),
    } | changes


def images(observations: NDArray[Any] = FRAMES, **changes: Any) -> Trajectories:
    return from_arrays("frames", **arrays(observations, **changes))


def written(kind: str, **columns: Any) -> Path:
    path = Path(f"frames.{kind}")
    if kind == "npz":
        np.savez_compressed(path, **columns)
    else:
        with h5py.File(path, "w") as file:
            for name, array in columns.items():
                file[name] = array
    return path


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_images_are_read_from_files_and_memory_alike(kind: str) -> None:
    data = load(written(kind, **arrays()))
    assert data.observations.dtype.name == "uint8"
    np.testing.assert_array_equal(data.observations, FRAMES)
    assert data.content_hash == images().content_hash
    assert (data.lengths.tolist(), data.action_size, data.observation_names) == ([4, 4, 4], 3, ())


def test_images_without_channels_have_one() -> None:
    gray = images(FRAMES[..., 0])
    assert gray.observations.shape == (STEPS, 10, 10, 1)
    assert gray.content_hash == images(FRAMES[..., :1]).content_hash


def test_images_follow_the_order_of_the_steps() -> None:
    order = RANDOM.permutation(STEPS)
    episodes = {"episode": np.repeat([0, 1, 2], 4), "step": np.tile(np.arange(4), 3)}
    columns = {name: array[order] for name, array in arrays(**episodes).items()}
    assert load(written("npz", **columns)).content_hash == images().content_hash


def test_an_unfinished_episode_of_images_is_excluded() -> None:
    last = np.arange(STEPS) == 7
    assert images(terminals=last).observations.shape == (8, 10, 10, 3)


@pytest.mark.parametrize(
    ("observations", "text"),
    [
        (
            FRAMES.astype(np.float32),
            r"holds an array of shape \(12, 10, 10, 3\); images are uint8, \[step, height, width\] or with "
            r"channels last; got float32: convert those from 0 to 255 with .astype\('uint8'\), those from 0 "
            r"to 1 with \(255 \* images\).round\(\).astype\('uint8'\)$",
        ),
        (
            FRAMES.astype(np.int64),
            r"holds .*; got int64: convert those from 0 to 255 with .astype\('uint8'\)$",
        ),
        (
            np.concatenate([FRAMES, FRAMES[:3]]),
            r"holds an array of shape \(15, 10, 10, 3\), where there are 12 rows; expected a frame for each "
            "of the 12 rows, and none after an episode's last action",
        ),
        (FRAMES[:, :0], r"holds an array of shape \(12, 0, 10, 3\)"),
        (
            FRAMES[:, None].repeat(4, 1),
            r"holds an array of shape \(12, 4, 10, 10, 3\); images .* one frame per step, since frames are",
        ),
    ],
)
def test_what_is_no_image_is_refused(observations: NDArray[Any], text: str) -> None:
    with pytest.raises(InputError, match=f"observations {text}"):
        images(observations)


def test_images_beside_other_observations_are_refused() -> None:
    columns = arrays() | {"obs_0": FRAMES, "obs_1": np.zeros(STEPS, np.float32)}
    del columns["observations"]
    text = r"observations mix images with other columns: obs_0 \(images of shape \(10, 10, 3\)\), obs_1"
    with pytest.raises(InputError, match=text):
        load(written("npz", **columns))
    ragged = np.empty(STEPS, object)
    ragged[:] = list(FRAMES[:6]) + list(FRAMES[:6, :5])
    with pytest.raises(InputError, match="observations holds Python objects; save plain arrays"):
        load(written("npz", **arrays(ragged)))


def test_images_with_a_row_for_each_episode_are_refused() -> None:
    by_episode = {name: array.reshape(3, 4, *array.shape[1:]) for name, array in arrays().items()}
    text = r"observations has the shape \(3, 4, 10, 10, 3\), a row for each .* to \(12, 10, 10, 3\) and the"
    with pytest.raises(InputError, match=text):
        load(written("npz", **by_episode))


@pytest.mark.parametrize("kind", ["npz", "hdf5"])
def test_channels_are_last(kind: str) -> None:
    frames = np.zeros((STEPS, 3, 20, 16), np.uint8)
    frames[:, 0, 0, 0] = np.arange(STEPS)
    path = written(kind, **arrays(frames))
    text = (
        r"observations has images whose channels are first: 3 x 20 x 16; they must be last, as in numpy.mov"
    )
    with pytest.raises(InputError, match=text):
        load(path)
    assert images(np.moveaxis(frames, 1, -1)).observations.shape == (STEPS, 20, 16, 3)


def test_images_as_actions_are_refused() -> None:
    with pytest.raises(InputError, match=r"actions holds images of shape \(10, 10, 3\)"):
        images(actions=FRAMES)


def test_images_take_a_byte_per_pixel_of_the_size_limit() -> None:
    path = written("npz", **arrays(np.zeros((STEPS, 100, 100), np.uint8)))
    assert read(path, max_gigabytes=125e-6).data.steps == STEPS
    with pytest.raises(InputError, match="beyond the limit"):
        read(path, max_gigabytes=115e-6)


def test_images_come_back_from_the_store_and_an_export() -> None:
    data = images()
    store.add(data, "memory")
    assert load("frames").content_hash == data.content_hash
    hdf5.write(Path("again.hdf5"), data)
    assert load("again.hdf5").content_hash == data.content_hash
    assert load(minari.export(data, "frames-v0")).content_hash == data.content_hash


@pytest.mark.parametrize(("format", "to"), [("minari", "again-v0"), ("hdf5", "again.hdf5")])
def test_exports_of_the_command_line_read_back_the_same(format: str, to: str) -> None:
    data = images(FRAMES[..., 0], actions=np.arange(STEPS) % 2)
    store.add(data, "memory")
    assert run("data", "export", "frames", f"--format={format}", f"--to={to}") == 0
    back = load(to)
    assert back.content_hash == data.content_hash
    assert (back.has_images, back.observation_names) == (True, ())


@pytest.mark.parametrize(("format", "to"), [("minari", "again-v0"), ("hdf5", "again.hdf5")])
def test_clipped_rewards_stay_known(format: str, to: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = written("npz", **arrays())
    assert run("data", "import", path, "--name=clipped", "--clip-rewards") == 0
    assert "rewards are clipped to [-1, 1], and target returns are sums of" in capsys.readouterr().err
    data = load("clipped")
    assert data.content_hash == images().with_clipped_rewards().content_hash
    assert (data.clipped_rewards, load(path).clipped_rewards) == (True, False)
    assert run("data", "export", "clipped", f"--format={format}", f"--to={to}") == 0
    assert load(to).content_hash == data.content_hash


def test_a_damaged_flag_of_clipped_rewards_does_no_harm() -> None:
    for value in ("yes", np.float32(1), np.array([1, 1]), np.uint8(2)):
        hdf5.write(Path("clipped.hdf5"), images().with_clipped_rewards())
        with h5py.File("clipped.hdf5", "a") as file:
            file.attrs["clipped_rewards"] = value
        assert not load("clipped.hdf5").clipped_rewards


@pytest.mark.parametrize("channels", [1, 3])
def test_an_export_to_minari_loses_no_detail(channels: int) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (6, 32, 32, channels), dtype=np.uint8)
    last = np.arange(6) == 5
    data = from_arrays("noise", frames, np.zeros((6, 1)), np.arange(6), last, ~last & False)
    back = load(minari.export(data, "noise-v0"))
    np.testing.assert_array_equal(back.observations, frames)


def warned(data: Trajectories) -> list[str]:
    return [issue.sentence() for issue in Recording(data, Origin("frames")).warnings()]


def test_checks_of_images() -> None:
    assert warned(images()) == []
    assert warned(images(FRAMES[:1].repeat(STEPS, 0))) == [
        "observations is the same image in every row; it has no information"
    ]
    (first,) = warned(images(np.moveaxis(FRAMES, -1, 1)))
    assert first.startswith("observations has images of height 3, width 10 and 10 channels; are the")


def test_statistics_of_images_are_one_row() -> None:
    data = images()
    found = DatasetStatistics.of(data, ByReturn(), Conservative())
    (pixels,) = found.observations
    assert (pixels.name, pixels.min, pixels.max) == ("observations", FRAMES.min(), FRAMES.max())
    assert (pixels.mean, pixels.std) == pytest.approx((FRAMES.mean(), FRAMES.std()))
    assert found.image_shape == (10, 10, 3)
    assert data.has_images
    assert not dataclasses.replace(data, observations=np.zeros((STEPS, 2), np.float32)).has_images
