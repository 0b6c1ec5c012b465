"""Minari's datasets against the minari package itself, and a hub on the loopback to download from."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import http.server
import importlib.metadata
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

import gymnasium
import h5py
import minari as package
import numpy as np
import pyarrow
import pytest
from conftest import logged
from gymnasium import spaces
from minari.data_collector import EpisodeBuffer
from numpy.typing import NDArray
from toys import HORIZON, toy_data

from cwbc.core.trajectories import Trajectories
from cwbc.data import minari as local
from cwbc.data.formats import minari, protection
from cwbc.data.issues import DataError
from cwbc.system.errors import InputError

Format = Literal["hdf5", "arrow"]
FORMATS: tuple[Format, ...] = ("hdf5", "arrow")
ENVIRONMENT = "cwbc-minari-toy-v0"  # registered by the name of its class, which a file can hold
BOX = spaces.Box(-np.inf, np.inf, (2,), np.float32)
ACTIONS = spaces.Box(-1, 1, (1,), np.float32)

gymnasium.register(ENVIRONMENT, entry_point="toys:Toy", max_episode_steps=HORIZON)


@pytest.fixture(autouse=True)
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place of its own for the datasets of every test."""
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    return tmp_path / "minari"


def episode(
    observations: Any, actions: Any, rewards: Any, terminated: bool = True, truncated: bool = False
) -> EpisodeBuffer:
    last = np.arange(len(rewards)) == len(rewards) - 1
    return EpisodeBuffer(
        observations=observations,
        actions=actions,
        rewards=np.asarray(rewards, np.float64),
        terminations=last & terminated,
        truncations=last & truncated,
    )


def plain(steps: int = 3, **ends: bool) -> EpisodeBuffer:
    """An episode of BOX and ACTIONS."""
    seen = np.arange(2 * steps + 2, dtype=np.float32).reshape(-1, 2)
    return episode(seen, np.linspace(-1, 1, steps, dtype=np.float32)[:, None], np.arange(steps), **ends)


def make(
    root: Path,
    *episodes: EpisodeBuffer,
    observation_space: Any = BOX,
    action_space: Any = ACTIONS,
    data_format: str = "hdf5",
    dataset_id: str = "test/made-v0",
    env: Any = None,
) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        package.create_dataset_from_buffers(
            dataset_id,
            list(episodes),
            env=env,
            observation_space=observation_space,
            action_space=action_space,
            data_format=data_format,
        )
    return root / dataset_id


def exported(data: Trajectories, dataset_id: str, data_format: Format = "hdf5") -> Path:
    """A dataset in either of Minari's formats; ours is hdf5."""
    if data_format == "hdf5":
        return minari.export(data, dataset_id)
    space = spaces.Box(-np.inf, np.inf, data.observations.shape[1:], np.float32)
    settings: dict[str, Any] = {"observation_space": space, "action_space": minari._action_space(data)}
    return make(local.root(), *minari._buffers(data), data_format="arrow", dataset_id=dataset_id, **settings)


def change(folder: Path, **values: Any) -> Path:
    """Other metadata; None takes a field away."""
    path = folder / "data" / "metadata.json"
    metadata = json.loads(path.read_bytes()) | values
    path.write_text(json.dumps({key: value for key, value in metadata.items() if value is not None}))
    return folder


@contextlib.contextmanager
def edited(folder: Path) -> Iterator[h5py.File]:
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        yield file


# Reading


@pytest.mark.filterwarnings(
    "ignore::ResourceWarning"
)  # the collector leaves folders for the collector of garbage
@pytest.mark.parametrize("data_format", FORMATS)
def test_what_a_collector_recorded_is_read(root: Path, data_format: Format) -> None:
    expected: list[tuple[Any, Any, float]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        env = package.DataCollector(gymnasium.make(ENVIRONMENT), data_format=data_format)
        for length in (HORIZON, 4):  # the second is cut off by the next reset
            observation, _ = env.reset(seed=length)
            for step in range(length):
                action = np.array([step / 20], np.float32)
                after, reward, *_ = env.step(action)
                expected.append((observation, action, float(reward)))
                observation = after
        env.create_dataset("test/collected-v3")
        env.close()

    recording = minari.read(root / "test/collected-v3")
    data = recording.data
    observations, actions, rewards = map(np.array, zip(*expected, strict=True))
    np.testing.assert_array_equal(data.observations, observations.astype(np.float32))
    np.testing.assert_array_equal(data.actions, actions)
    np.testing.assert_array_equal(data.rewards, rewards.astype(np.float32))
    assert data.lengths.tolist() == [HORIZON, 4]
    assert data.starts.tolist() == [0, HORIZON]
    assert data.terminated.tolist() == [False, False]
    assert (data.name, data.environment, data.time_limit) == ("test/collected-v3", ENVIRONMENT, HORIZON)
    assert data.observations.dtype == data.actions.dtype == np.float32
    assert data.observation_names == ("observation[0]", "observation[1]")
    assert recording.issues == ()


@pytest.mark.parametrize("data_format", FORMATS)
def test_goals_numbers_and_tuples_are_laid_out_in_order(root: Path, data_format: Format) -> None:
    space = spaces.Dict(
        {
            "observation": BOX,
            "achieved_goal": spaces.Tuple([spaces.Discrete(3, start=5), spaces.MultiBinary(2)]),
        }
    )
    values = {
        "observation": np.array([[1, 2], [3, 4], [9, 9]], np.float32),
        "achieved_goal": (np.array([5, 7, 6]), np.array([[0, 1], [1, 0], [1, 1]], np.int8)),
    }
    folder = make(
        root,
        episode(values, np.zeros((2, 1), np.float32), [1, 2]),
        observation_space=space,
        data_format=data_format,
    )

    data = minari.read(folder, "mine").data
    np.testing.assert_array_equal(data.observations, [[1, 0, 0, 0, 1, 1, 2], [0, 0, 1, 1, 0, 3, 4]])
    assert data.observation_names == (
        "achieved_goal[0]=5", "achieved_goal[0]=6", "achieved_goal[0]=7",
        "achieved_goal[1][0]", "achieved_goal[1][1]", "observation[0]", "observation[1]",
    )  # fmt: skip
    assert (data.name, data.environment, data.time_limit) == ("mine", None, None)


@pytest.mark.parametrize("data_format", FORMATS)
def test_discrete_actions_are_counted_from_zero(root: Path, data_format: Format) -> None:
    folder = make(
        root,
        episode(np.array([0, 1, 0]), np.array([7, 9]), [1, 2], terminated=True),
        episode(np.array([1, 1]), np.array([8]), [1], terminated=False, truncated=True),
        observation_space=spaces.Discrete(2),
        action_space=spaces.Discrete(4, start=7),
        data_format=data_format,
    )

    data = minari.read(folder).data
    assert data.actions.tolist() == [0, 2, 1]
    assert data.actions.dtype == np.int32
    assert (data.action_count, data.action_size, data.discrete) == (4, 4, True)
    assert data.observations.tolist() == [[1, 0], [0, 1], [0, 1]]
    assert data.terminated.tolist() == [True, False]


def test_continuous_actions_of_any_shape_are_laid_flat(root: Path) -> None:
    actions = np.arange(8, dtype=np.float64).reshape(2, 2, 2)
    space = spaces.Box(-9, 9, (2, 2), np.float64)
    folder = make(root, episode(np.zeros((3, 2), np.float32), actions, [1, 2]), action_space=space)
    assert minari.read(folder).data.actions.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_images_are_decoded(root: Path) -> None:
    space = spaces.Box(0, 255, (32, 32, 3), np.uint8)
    images = np.full((3, 32, 32, 3), 128, np.uint8)
    folder = make(root, episode(images, np.zeros((2, 1), np.float32), [1, 2]), observation_space=space)
    observations = minari.read(folder).data.observations
    assert observations.dtype == np.uint8
    np.testing.assert_array_equal(observations, images[:2])


@pytest.mark.parametrize("data_format", FORMATS)
def test_bytes_of_two_dimensions_are_images_of_one_channel(root: Path, data_format: Format) -> None:
    frames = np.random.default_rng(0).integers(0, 256, (5, 6, 4), np.uint8)
    lengths = slice(0, 3), slice(2, 5)
    episodes = [episode(frames[rows], np.zeros((2, 1), np.float32), [1, 2]) for rows in lengths]
    space = spaces.Box(0, 255, (6, 4), np.uint8)
    data = minari.read(make(root, *episodes, observation_space=space, data_format=data_format)).data
    np.testing.assert_array_equal(data.observations, frames[[0, 1, 2, 3], ..., None])
    assert data.observation_names == ()


def test_bytes_of_one_dimension_are_numbers(root: Path) -> None:
    memory = np.arange(12, dtype=np.uint8).reshape(3, 4)
    space = spaces.Box(0, 255, (4,), np.uint8)
    folder = make(root, episode(memory, np.zeros((2, 1), np.float32), [1, 2]), observation_space=space)
    assert minari.read(folder).data.observations.tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_images_that_are_not_as_their_space_are_refused(root: Path) -> None:
    space = spaces.Box(0, 255, (6, 4), np.uint8)
    frames = np.zeros((3, 6, 4), np.uint8)
    folder = make(root, episode(frames, np.zeros((2, 1), np.float32), [1, 2]), observation_space=space)
    with edited(folder) as file:
        del file["episode_0/observations"]
        file["episode_0/observations"] = frames.astype(np.float32)
    text = r"episode 0: 'observation' has float32 of shape \(3, 6, 4\); expected uint8 \(3, 6, 4\)"
    with pytest.raises(InputError, match=text):
        minari.read(folder)


def test_places_name_the_episode(root: Path) -> None:
    broken = plain(2)
    broken.rewards[1] = np.inf
    folder = make(root, plain(), broken)
    recording = minari.read(folder, "mine")
    with pytest.raises(DataError, match=r"mine: rewards is not finite: inf at row 4 \(episode 1, step 1\)"):
        recording.trusted()


@pytest.mark.parametrize("steps", [-1, 0, 1, 4, 10**15])
def test_a_wrong_count_of_steps_is_doubted_but_does_no_harm(root: Path, steps: int) -> None:
    folder = make(root, plain(3), plain(2))
    whole = minari.read(folder).data.content_hash
    recording = minari.read(change(folder, total_steps=steps))
    assert recording.data.content_hash == whole
    assert [issue.sentence() for issue in recording.issues] == [
        f"metadata.json counts {steps:,} steps, but its 2 episodes have 5; "
        "was the dataset written completely?"
    ]


def test_episodes_without_steps_are_left_out(root: Path) -> None:
    some, nothing = (
        episode(np.zeros((count + 1, 2), np.float32), np.zeros(count, np.int64), np.ones(count))
        for count in (2, 0)
    )
    folder = make(root, some, nothing, some, action_space=spaces.Discrete(2), data_format="arrow")
    recording = minari.read(folder)
    assert recording.data.lengths.tolist() == [2, 2]
    assert recording.origin.episodes == [0, 2]
    expected = "1 episodes have no steps (1); they are excluded: were they recorded?"
    assert [issue.sentence() for issue in recording.issues] == [expected]


def test_reading_makes_no_noise(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    minari.read(minari.export(toy_data(5), "test/quiet-v0"))
    assert capfd.readouterr() == ("", "")


# What is refused


def test_the_package_is_asked_for(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(root, plain())
    monkeypatch.setitem(sys.modules, "minari", None)
    for act in (
        lambda: minari.read(folder),
        lambda: local.download("test/other-v0"),
        lambda: minari.export(toy_data(2), "test/other-v0"),
    ):
        with pytest.raises(
            InputError, match=r"Minari datasets need more packages: pip install 'cwbc\[minari\]'"
        ):
            act()


@pytest.mark.parametrize("key", ["observation_space", "action_space", "total_episodes", "minari_version"])
def test_missing_metadata_is_named(root: Path, key: str) -> None:
    folder = change(make(root, plain()), **{key: None})
    with pytest.raises(InputError, match=f"metadata.json lacks {key}"):
        minari.read(folder)


def test_an_environment_is_never_made(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cwbc_trap.py").write_text("raise SystemExit('the file chose what was run')")
    monkeypatch.syspath_prepend(tmp_path)
    trap = {
        "id": "Trap-v0",
        "entry_point": "cwbc_trap:Trap",
        "max_episode_steps": 7,
        "additional_wrappers": [],
    }
    folder = change(make(root, plain()), env_spec=json.dumps(trap))
    data = minari.read(folder).data
    assert (data.environment, data.time_limit) == ("Trap-v0", 7)
    with pytest.raises(InputError, match="lacks action_space"):
        minari.read(change(folder, action_space=None))
    other = change(
        make(root, plain(), dataset_id="x-v0"), env_spec=json.dumps(trap | {"id": "cwbc_trap:X-v0"})
    )
    assert minari.read(other).data.environment is None


def test_other_versions_of_minari_are_refused(root: Path) -> None:
    folder = change(make(root, plain()), minari_version="99.0")
    with pytest.raises(
        InputError, match=r"mine was written by Minari 99.0, which Minari .* does not read; it reads"
    ):
        minari.read(folder, "mine")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"action_space": spaces.MultiDiscrete([2, 2])},
            "mine: actions are in a MultiDiscrete space; Box and Discrete are supported",
        ),
        (
            {"observation_space": spaces.Text(5)},
            "mine: 'observation' is in a Text space, which has no fixed dimensions",
        ),
        (
            {"observation_space": spaces.Discrete(2**40)},
            "mine: an observation has 1,099,511,627,776 numbers; from 1 to 1,048,576 are supported",
        ),
    ],
)
def test_spaces_that_cannot_be_learnt_are_named(root: Path, settings: dict[str, Any], message: str) -> None:
    serialized = {key: package.serialization.serialize_space(space) for key, space in settings.items()}
    folder = change(make(root, plain()), **serialized)
    with pytest.raises(InputError) as caught:
        minari.read(folder, "mine")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("observations", np.zeros((2, 2)), "'observation' has values of shape (2, 2); expected (3, 2)"),
        ("observations", np.zeros((3, 5)), "'observation' has values of shape (3, 5); expected (3, 2)"),
        ("actions", np.zeros((3, 1)), "'actions' has values of shape (3, 1); expected (2, 1)"),
        ("terminations", np.zeros(1, bool), "'terminations' has values of shape (1,); expected (2,)"),
        ("truncations", np.zeros(9, bool), "'truncations' has values of shape (9,); expected (2,)"),
        ("rewards", np.array([b"a", b"b"]), "'rewards' holds |S1; expected numbers"),
        ("rewards", np.zeros((2, 2)), "'rewards' has values of shape (2, 2); expected (2,)"),
    ],
)
def test_arrays_that_do_not_fit_are_named(root: Path, name: str, values: NDArray[Any], message: str) -> None:
    folder = make(root, plain(3), plain(2))
    with edited(folder) as file:
        del file["episode_1"][name]
        file["episode_1"][name] = values
    with pytest.raises(InputError) as caught:
        minari.read(folder, "mine")
    assert str(caught.value) == f"mine, episode 1: {message}"


def test_discrete_actions_are_whole_numbers(root: Path) -> None:
    folder = make(root, plain(2))
    space = package.serialization.serialize_space(spaces.Discrete(2))
    with edited(folder) as file:
        del file["episode_0/actions"]
        file["episode_0/actions"] = np.array([0.5, 1])
    with pytest.raises(
        InputError, match=r"mine, episode 0: 'actions' holds float64; Discrete\(2\) has integers"
    ):
        minari.read(change(folder, action_space=space), "mine")


def test_discrete_actions_outside_the_space_are_told_by_place(root: Path) -> None:
    folder = make(root, plain(2))
    space = package.serialization.serialize_space(spaces.Discrete(2, start=1))
    with edited(folder) as file:
        del file["episode_0/actions"]
        file["episode_0/actions"] = np.array([0, 2**40])
    recording = minari.read(change(folder, action_space=space), "mine")
    with pytest.raises(DataError, match=r"-1 at row 0 \(episode 0, step 0\)"):
        recording.trusted()
    assert recording.data.actions.tolist() == [-1, 2**31 - 1]


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_missing_episode_is_an_error(root: Path, data_format: Format) -> None:
    folder = change(make(root, plain(), data_format=data_format), total_episodes=2)
    with pytest.raises(
        InputError, match=r"cannot be read as a Minari dataset|lacks a part of a Minari dataset"
    ):
        minari.read(folder)


@pytest.mark.parametrize("data_format", FORMATS)
def test_a_dataset_without_episodes_is_an_error(root: Path, data_format: Format) -> None:
    folder = change(make(root, plain(), data_format=data_format), total_episodes=0)
    with pytest.raises(InputError, match="mine: there are no steps; was the dataset written completely"):
        minari.read(folder, "mine")


def test_an_array_larger_than_its_file_is_not_read(root: Path) -> None:
    folder = make(root, plain())
    with edited(folder) as file:
        del file["episode_0/rewards"]
        file.create_dataset("episode_0/rewards", (2**40,), np.float64, chunks=True)
    with pytest.raises(
        InputError, match=r"it has only a part of the 8,796,093,022,208 bytes of episode_0/rewards"
    ):
        minari.read(folder)


def test_long_episodes_need_hdf5(root: Path) -> None:
    folder = make(root, plain(40_000), data_format="arrow")
    assert len(package.load_dataset("test/made-v0")[0]) < 40_000  # what this guards against
    with pytest.raises(
        InputError, match=r"mine, episode 0: its rows are in 2 batches, of which Minari reads the first"
    ):
        minari.read(folder, "mine")

    most, more = logged(np.zeros(32_767)), logged(np.zeros(32_768))
    back = minari.read(exported(most, "most-v0", "arrow")).data
    assert back.content_hash == most.content_hash
    assert minari.read(minari.export(more, "more-v0")).data.content_hash == more.content_hash


@pytest.mark.parametrize("data_format", FORMATS)
def test_damaged_bytes_are_an_error_or_harmless(data_format: Format) -> None:
    folder = exported(logged([1, 2, 3], [4.0, 5]), "fuzz/x-v0", data_format)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    errors = 0
    for seed in range(150):
        generator = random.Random(seed)
        path = generator.choice(files)
        whole = path.read_bytes()
        path.write_bytes(damaged(whole, generator))
        try:
            data = minari.read(folder).data
            assert len(data.observations) == len(data.actions) == len(data.rewards) == data.lengths.sum()
        except InputError:
            errors += 1
        path.write_bytes(whole)
    assert errors > 30
    assert minari.read(folder).data.steps == 5


def damaged(whole: bytes, generator: random.Random) -> bytes:
    place = generator.randrange(len(whole))
    match generator.choice(["cut", "flip", "noise", "zeros"]):
        case "cut":
            return whole[:place]
        case "flip":
            return whole[:place] + bytes([generator.randrange(256)]) + whole[place + 1 :]
        case "noise":
            return whole[:place] + generator.randbytes(16) + whole[place + 16 :]
        case _:
            return whole[:place] + bytes(8) + whole[place + 8 :]


# Finding


def test_local_datasets_are_found_by_id(root: Path, tmp_path: Path) -> None:
    for name in ("b-v1", "test/deep/a-v0"):
        minari.export(toy_data(2), name)
    (root / "test" / "link").symlink_to(root)  # goes round
    (root / "other").symlink_to(root / "test" / "deep")
    (root / "no-version" / "data").mkdir(parents=True)
    (root / "no-version" / "data" / "metadata.json").write_text("{}")
    shutil.copytree(root / "b-v1", tmp_path / "outside-v0")

    assert local.names() == ["b-v1", "other/a-v0", "test/deep/a-v0"]
    assert local.has("test/deep/a-v0")
    assert local.is_dataset(root / "b-v1")
    assert not local.is_dataset(root / "test")
    outside = [
        "../outside-v0",
        str(tmp_path / "outside-v0"),
        "test/../b-v1",
        "b-v1/",
        "",
        ".",
        "b",
        "no-version",
    ]
    assert not any(map(local.has, outside))
    assert not local.has("a" * 5000 + "-v0")


def test_finding_neither_imports_nor_makes_anything(tmp_path: Path) -> None:
    code = (
        "import sys; from cwbc.data import minari; from cwbc.data.formats import minari as reader\n"
        "assert not minari.has('x-v0') and minari.names() == []\n"
        "assert not {'minari', 'pyarrow', 'huggingface_hub'} & set(sys.modules)"
    )
    environment = {key: value for key, value in os.environ.items() if key != "MINARI_DATASETS_PATH"}
    environment["HOME"] = str(tmp_path / "home")
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)
    assert not (tmp_path / "home").exists()


def test_the_place_is_minaris_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MINARI_DATASETS_PATH")
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = minari.export(toy_data(2), "test/home-v0")
    assert folder == tmp_path / ".minari" / "datasets" / "test" / "home-v0"
    assert local.names() == ["test/home-v0"] == list(package.list_local_datasets())


def test_ids_are_those_that_minari_takes() -> None:
    generator = random.Random(0)
    parts = ["a", "bc", "-", "v", "v1", "-v2", "/", "-v", "0", "_", "é"]
    taken = 0
    for _ in range(3000):
        name = "".join(generator.choices(parts, k=generator.randrange(1, 7)))
        try:
            package.dataset.minari_dataset.parse_dataset_id(name)
            minaris = "//" not in name and not name.startswith("/")
        except (ValueError, TypeError):
            minaris = False
        taken += minaris
        assert (local.is_id(name)) == minaris, name
    assert taken > 100


# Writing


def of_kind(kind: str) -> Trajectories:
    return {
        "continuous": toy_data(20),
        "discrete": toy_data(20, discrete=True),
        "beyond one": logged([1, 2], [3], time_limit=9),
    }[kind]


@pytest.mark.parametrize("data_format", FORMATS)
@pytest.mark.parametrize("kind", ["continuous", "discrete", "beyond one"])
def test_what_is_exported_is_read_back(kind: str, data_format: Format) -> None:
    data = of_kind(kind)
    assert kind == "beyond one" or data.terminated.any() > data.terminated.all()
    back = minari.read(exported(data, "test/back-v0", data_format)).data
    assert back.content_hash == data.content_hash
    assert back.action_count == (3 if data.discrete else None)


@pytest.mark.parametrize("discrete", [False, True])
def test_minari_reads_what_is_exported(discrete: bool) -> None:
    data = toy_data(12, discrete=discrete)
    minari.export(data, "test/exported-v2")
    dataset = package.load_dataset("test/exported-v2")
    assert (dataset.total_episodes, dataset.total_steps) == (data.episodes, data.steps)
    assert dataset.storage.metadata["dataset_size"] > 0
    for episode, start, length, ended in zip(
        dataset, data.starts, data.lengths, data.terminated, strict=True
    ):
        rows = slice(start, start + length)
        np.testing.assert_array_equal(episode.rewards, data.rewards[rows])
        np.testing.assert_array_equal(episode.actions, data.actions[rows])
        np.testing.assert_array_equal(episode.observations[:-1], data.observations[rows])
        np.testing.assert_array_equal(episode.observations[-1], data.observations[rows][-1])
        assert episode.terminations.tolist() == [False] * (length - 1) + [bool(ended)]
        assert episode.truncations.tolist() == [False] * (length - 1) + [not ended]
        assert all(action in dataset.action_space for action in episode.actions)
        assert all(seen in dataset.observation_space for seen in episode.observations)
    assert dataset.action_space == (spaces.Discrete(3) if discrete else ACTIONS)


def test_the_action_space_holds_every_action() -> None:
    data = logged([1, 2, 3])
    wide = Trajectories(**vars(data) | {"actions": np.array([[0.5, -4], [0, 2], [-0.1, 3]], np.float32)})
    minari.export(wide, "test/wide-v0")
    space = package.load_dataset("test/wide-v0").action_space
    assert (space.low.tolist(), space.high.tolist()) == ([np.float32(-0.1), -4], [0.5, 3])


def test_an_export_says_what_it_is() -> None:
    data = logged([1, 2], name="my logs")
    minari.export(data, "test/shown-v0")
    metadata = package.load_dataset("test/shown-v0").storage.metadata
    version = importlib.metadata.version("cwbc")
    assert metadata["author"] == {f"cwbc {version}"}
    assert metadata["description"] == (
        f"Exported by cwbc {version} from my logs (content hash {data.content_hash}). The "
        "observation after the last action of an episode is not in the logs: the last one is repeated."
    )
    assert list(package.list_local_datasets()) == ["test/shown-v0"]
    assert package.namespace.list_local_namespaces() == ["test"]


@pytest.mark.parametrize(
    ("environment", "time_limit", "expected"),
    [
        (ENVIRONMENT, None, (ENVIRONMENT, HORIZON)),
        (ENVIRONMENT, 50, (ENVIRONMENT, 50)),
        (f"toys:{ENVIRONMENT}", None, (ENVIRONMENT, HORIZON)),
        ("cwbc-toy-v0", None, (None, None)),  # registered with a class, which no file can hold
        ("Nowhere-v7", 50, (None, None)),
        (None, None, (None, None)),
    ],
)
def test_a_registered_environment_is_kept(
    environment: str | None, time_limit: int | None, expected: tuple[str | None, int | None]
) -> None:
    data = logged([1, 2], environment=environment, time_limit=time_limit)
    back = minari.read(minari.export(data, "test/env-v0")).data
    assert (back.environment, back.time_limit) == expected
    specification = package.load_dataset("test/env-v0").env_spec
    assert expected[0] == (specification and specification.id)
    assert gymnasium.spec(ENVIRONMENT).max_episode_steps == HORIZON


@pytest.mark.parametrize(
    ("name", "likely"),
    [
        ("plain", "plain-v0"),
        ("my logs/run 3-v1", "my-logs/run-3-v1"),
        ("../up-v0", "up-v0"),
        ("/abs/olute", "abs/olute-v0"),
        ("a/b-v0", "namespace/name-v0"),
        ("", "namespace/name-v0"),
        ("x-v0\n", "x-v0"),
    ],
)
def test_a_wrong_id_is_answered_with_a_right_one(root: Path, name: str, likely: str) -> None:
    for act in (lambda: minari.export(toy_data(2), name), lambda: local.download(name)):
        with pytest.raises(InputError) as caught:
            act()
        assert str(caught.value) == f"{name!r} is not an id of a Minari dataset; one is like {likely!r}"
    assert not root.exists()


def test_an_export_replaces_only_when_told(root: Path) -> None:
    first, second = logged([1, 2]), logged([3, 4, 5])
    folder = minari.export(first, "test/same-v0")
    with pytest.raises(
        InputError, match="there is a Minari dataset test/same-v0 already; --overwrite replaces it"
    ):
        minari.export(second, "test/same-v0")
    assert minari.read(folder).data.content_hash == first.content_hash
    minari.export(second, "test/same-v0", overwrite=True)
    assert minari.read(folder).data.content_hash == second.content_hash
    assert sorted(path.name for path in root.iterdir()) == ["test"]


def test_a_failed_export_leaves_the_old_dataset(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = logged([1, 2]), logged([3, 4, 5])
    folder = minari.export(first, "test/same-v0")
    replace = os.replace

    def full(*_: Any) -> Iterator[Any]:
        yield plain()
        raise OSError(28, "No space left on device")

    def denied(source: Path, target: Path) -> None:
        if source.name == "written":
            raise PermissionError(13, "Permission denied")
        replace(source, target)

    for where, failing in (("cwbc.data.formats.minari._buffers", full), ("os.replace", denied)):
        with monkeypatch.context() as patched:
            patched.setattr(where, failing)
            with pytest.raises(OSError, match=r"No space|denied"):
                minari.export(second, "test/same-v0", overwrite=True)
        assert minari.read(folder).data.content_hash == first.content_hash
        assert sorted(path.name for path in root.iterdir()) == ["test"]


def test_an_export_spares_what_is_no_dataset(root: Path) -> None:
    minari.export(logged([1, 2]), "test/deep-v0/x-v0")
    with pytest.raises(InputError, match=r"deep-v0 is not a Minari dataset; remove it, or choose another id"):
        minari.export(logged([1, 2]), "test/deep-v0", overwrite=True)
    with pytest.raises(
        InputError, match=r"test/deep-v0/x-v0 is a Minari dataset; test/.*/y-v0 cannot be below"
    ):
        minari.export(logged([1, 2]), "test/deep-v0/x-v0/y-v0")
    assert local.names() == ["test/deep-v0/x-v0"]


# Downloading


class Hub(http.server.BaseHTTPRequestHandler):
    """As much of Hugging Face's hub as Minari asks for: every folder of `remote` is a repository."""

    remote: Path
    requested: list[str]
    broken: str  # requests with this in their path are answered by an error
    commit = "0" * 40

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.requested.append(self.path)
        status, body, headers = self._answer(unquote(url.path).strip("/").split("/"), parse_qs(url.query))
        self.send_response(status)
        for key, value in (headers | {"Content-Length": str(len(body))}).items():
            self.send_header(key, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _answer(self, parts: list[str], query: dict[str, list[str]]) -> tuple[int, bytes, dict[str, str]]:
        if self.broken and self.broken in self.path:
            return 403, b"", {}
        match parts:
            case ["api", "datasets"]:
                wanted = query.get("search", [""])[0]
                found = [path.name for path in sorted(self.remote.iterdir()) if wanted in path.name]
                return 200, json.dumps([{"id": f"farama-minari/{name}"} for name in found]).encode(), {}
            case ["api", "datasets", owner, name, "revision", _]:
                return 200, json.dumps({"id": f"{owner}/{name}", "sha": self.commit}).encode(), {}
            case ["api", "datasets", _, name, "tree", _]:
                repository = self.remote / name
                files = [path for path in sorted(repository.rglob("*")) if path.is_file()]
                return 200, json.dumps([self._entry(path, repository) for path in files]).encode(), {}
            case ["datasets", _, name, "resolve", _, *rest] if (
                path := self.remote.joinpath(name, *rest)
            ).is_file():
                return 200, path.read_bytes(), {"ETag": f'"{_sha(path)}"', "X-Repo-Commit": self.commit}
            case ["datasets", *_]:
                return 404, b"", {"X-Error-Code": "EntryNotFound"}
        return 404, b"", {}

    def _entry(self, path: Path, repository: Path) -> dict[str, Any]:
        name = path.relative_to(repository).as_posix()
        return {"type": "file", "path": name, "size": path.stat().st_size, "oid": _sha(path)}

    def log_message(self, *_: Any) -> None:
        pass


def _sha(path: Path) -> str:
    return hashlib.sha1(path.read_bytes()).hexdigest()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A hub with the datasets robots/arm/reach-v1, robots/arm/reach-v2 and robots/leg/walk-v0."""
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("MINARI_DATASETS_PATH", str(tmp_path / "remote"))
        names = ["robots/arm/reach-v1", "robots/arm/reach-v2", "robots/leg/walk-v0"]
        for name in names:
            exported(logged([1, 2], [3]), name, "arrow" if "leg" in name else "hdf5")
    listed = {"datasets": names, "namespaces": ["robots/arm", "robots/leg"]}
    (tmp_path / "remote" / "robots" / "namespace_metadata.json").write_text(json.dumps(listed))
    handler = type("Served", (Hub,), {"remote": tmp_path / "remote", "requested": [], "broken": ""})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        point_to(server.server_port, tmp_path, monkeypatch)
        yield handler
        server.shutdown()


def point_to(port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What HF_ENDPOINT and HF_HOME do to a process that starts."""
    from huggingface_hub import constants

    address = f"http://127.0.0.1:{port}"
    monkeypatch.setattr(constants, "ENDPOINT", address)
    files = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", files)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))


@pytest.mark.parametrize("name", ["robots/arm/reach-v1", "robots/leg/walk-v0"])
def test_a_download_can_be_read(
    hub: type[Hub], root: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    local.download(name)
    assert local.names() == [name]
    data = minari.read(root / name).data
    assert data.content_hash == logged([1, 2], [3]).content_hash
    assert package.load_dataset(name).total_episodes == 2
    assert package.namespace.list_local_namespaces() == ["robots", "robots/" + name.split("/")[1]]
    assert sorted(path.name for path in root.iterdir()) == ["robots"]
    hub.requested.clear()
    local.download(name)
    assert not hub.requested
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("robots/arm/reach-v0", "did you mean 'robots/arm/reach-v2' or 'robots/arm/reach-v1'"),
        ("robots/arms/reach-v1", "did you mean 'robots/arm/reach-v1' or 'robots/arm/reach-v2'?"),
        ("robot/walk-v0", "did you mean 'robots/leg/walk-v0'?"),
        ("something-else-v3", "known: robots/arm/reach-v1, robots/arm/reach-v2, "),
    ],
)
def test_an_unknown_id_gets_a_hint(hub: type[Hub], root: Path, name: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        local.download(name)
    assert str(caught.value).startswith(f"unknown Minari dataset {name!r}; {hint}")
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("broken", ["/api/datasets?", "/tree/", "main_data.hdf5", "namespace_metadata.json"])
def test_a_refusing_remote_leaves_nothing_behind(hub: type[Hub], root: Path, broken: str) -> None:
    hub.broken = broken
    with pytest.raises(
        InputError, match=r"reach-v1 cannot be downloaded from Minari's remote: .*MINARI_REMOTE names"
    ):
        local.download("robots/arm/reach-v1")
    assert list(root.iterdir()) == []


def test_a_dataset_of_another_minari_is_not_downloaded(hub: type[Hub]) -> None:
    change(hub.remote / "robots/leg/walk-v0", minari_version="0.3.0")
    with pytest.raises(
        InputError, match=r"walk-v0 cannot be downloaded.*Couldn't find any compatible version"
    ):
        local.download("robots/leg/walk-v0")


def test_no_network_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        point_to(listening.getsockname()[1], tmp_path, monkeypatch)
        with pytest.raises(
            InputError, match=r"x-v0 cannot be downloaded from Minari's remote: .*refused; is there a net"
        ):
            local.download("robots/x-v0")
        listening.listen()  # takes connections, and never says a word
        monkeypatch.setattr(local, "_TIMEOUT", 0.1)
        with pytest.raises(
            InputError, match=r"cannot be downloaded from Minari's remote: timed out; is there a network"
        ):
            local.download("robots/x-v0")
    assert list(root.iterdir()) == []


def test_a_missing_package_for_downloads_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(InputError, match=r"robots/x-v0 needs more packages: pip install 'cwbc\[minari\]'"):
        local.download("robots/x-v0")


@pytest.mark.parametrize("address", ["nonsense", "ftp://somewhere"])
def test_a_wrong_remote_is_told(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("MINARI_REMOTE", address)
    with pytest.raises(InputError, match="robots/x-v0 cannot be downloaded from Minari's remote"):
        local.download("robots/x-v0")


def test_a_folder_in_the_way_is_told(root: Path) -> None:
    (root / "robots" / "x-v0" / "data").mkdir(parents=True)  # as a broken download by Minari leaves it
    with pytest.raises(InputError, match=r"x-v0 is not a Minari dataset; remove it"):
        local.download("robots/x-v0")


@pytest.mark.parametrize("data_format", ["hdf5", "arrow"])
def test_what_unfolds_to_too_much_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, data_format: str
) -> None:
    monkeypatch.setattr(protection, "_ALWAYS", 1e5)
    monkeypatch.setattr(protection, "_TIMES", 2)
    steps = 20_000
    long = episode(np.zeros((steps + 1, 2), np.float32), np.zeros((steps, 1), np.float32), np.zeros(steps))
    folder = make(root, long, data_format=data_format)
    if data_format == "hdf5":
        _pack(folder / "data" / "main_data.hdf5")
    else:
        (file,) = (folder / "data" / "0").glob("*.arrow")
        _pack_arrow(file)
    with pytest.raises(
        InputError, match=r"takes .* kB and expands to .* kB or more, beyond the limit of 100.0 kB"
    ):
        minari.read(folder)
    with protection.at_most(1):
        assert minari.read(folder).data.steps == steps


def _pack(path: Path) -> None:
    """The same arrays, compressed."""
    with h5py.File(path) as old, h5py.File(path.with_name("packed"), "w") as new:
        for name, group in old.items():
            copy = new.create_group(name)
            copy.attrs.update(group.attrs)
            for key, item in group.items():
                if isinstance(item, h5py.Dataset):
                    copy.create_dataset(key, data=item[()], compression="gzip", chunks=True)
    path.with_name("packed").replace(path)


def _pack_arrow(path: Path) -> None:
    with pyarrow.OSFile(str(path)) as source:
        table = pyarrow.ipc.open_file(source).read_all()
    options = pyarrow.ipc.IpcWriteOptions(compression="zstd")
    with (
        pyarrow.OSFile(str(path), "w") as sink,
        pyarrow.ipc.new_file(sink, table.schema, options=options) as writer,
    ):
        writer.write_table(table)


@pytest.mark.parametrize(
    ("actions", "environment", "low", "high"),
    [
        ([[0, 0.5], [60, 0], [30, -0.5]], None, [0, -0.5], [60, 0.5]),
        ([[-1.5], [2], [0]], None, [-1.5], [2]),
        ([[-1.5], [1], [0]], "Pendulum-v1", [-2], [2]),
        ([[-1.5], [3], [0]], "Pendulum-v1", [-2], [3]),
        ([[-1.5], [3], [0]], "Unheard-v0", [-1.5], [3]),
        ([[-1.5], [3], [0]], "Hopper-v5", [-1.5], [3]),  # of which it cannot be
    ],
)
def test_bounds_are_those_of_the_data_and_of_the_environment(
    actions: Any, environment: str | None, low: list[float], high: list[float]
) -> None:
    data = dataclasses.replace(
        logged([1, 2], [3]), actions=np.array(actions, np.float32), environment=environment
    )
    if environment == "Pendulum-v1":
        data = dataclasses.replace(data, observations=np.zeros((3, 3), np.float32))
    space = package.load_dataset(minari.export(data, "pushes-v0").name).spec.action_space
    assert space == spaces.Box(np.array(low, np.float32), np.array(high, np.float32))


def test_groups_within_groups_are_refused(root: Path) -> None:
    folder = make(root, plain())
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        group = file["episode_0"].create_group("infos")
        for _ in range(2000):
            group = group.create_group("g")
    with pytest.raises(InputError, match="has groups within groups, more than 32 deep"):
        minari.read(folder)


def test_an_episode_that_is_there_many_times_counts_each_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make(root, plain(steps=3000))
    with h5py.File(folder / "data" / "main_data.hdf5", "a") as file:
        for number in range(1, 100):
            file[f"episode_{number}"] = file["episode_0"]  # another name for it
    metadata = folder / "data" / "metadata.json"
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"total_episodes": 100}))
    assert minari.read(folder).data.episodes == 100
    monkeypatch.setattr(protection, "_ALWAYS", 1e5)
    monkeypatch.setattr(protection, "_TIMES", 2)
    with pytest.raises(InputError, match="expands to"):
        minari.read(folder)
