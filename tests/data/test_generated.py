"""Datasets made on the spot: by name, of a size, once; from the package's behaviours or one's own."""

from __future__ import annotations

import dataclasses
import itertools
import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import jax
import numpy as np
import pytest
from command_line import run
from toys import ant_series, learner, random_arrays

import cwbc
from cwbc import behaviours
from cwbc.behaviours import GAMES, TASKS, snapshots
from cwbc.behaviours.pqn import QNetwork
from cwbc.data import activity, generated, store
from cwbc.data.generated import CATALOGUE, DatasetSpec
from cwbc.system.errors import InputError

Said = pytest.CaptureFixture[str]
HOPPER, BREAKOUT = "cwbc/hopper/medium-v0", "cwbc/breakout/replay-v0"
OWN = Path(snapshots.__file__).parent / "zoo" / "hopper"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def make(*arguments: str) -> int:
    return run("data", "make", *arguments)


MAZES = [name for name in CATALOGUE if "maze" in name]


@pytest.mark.parametrize("name", sorted({*CATALOGUE} - {*MAZES}))
def test_all_fifteen_robots_can_be_made(name: str) -> None:
    entry = DatasetSpec.of(name, 4000).generate()
    data = cwbc.load(name)
    assert data.content_hash == entry.content_hash
    assert 2000 < data.steps <= 4000
    assert data.horizon == 1000
    _, task, version = name.split("/")
    assert (data.environment or "").lower().startswith(task)
    expert = snapshots.shipped(task).expert.stochastic.mean
    low, high = {
        "random": (-0.05, 0.05),
        "medium": (0.2, 0.6),
        "medium-replay": (0, 0.3),
        "medium-expert": (0.3, 0.8),
        "expert": (0.75, 1.1),
    }[version.removesuffix("-v0")]
    assert low < data.returns.mean() / expert < high


@pytest.fixture
def breakout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with snapshots of Breakout: two random networks, of which the second is said to be better."""
    folder = tmp_path / "zoo" / "breakout"
    network = QNetwork((84, 84, 1), 4, 8, 4)
    own = dataclasses.replace(learner(folder, 0, 10), environment="ALE/Breakout-v5")
    for number, snapshot in enumerate(own.snapshots):
        network.policy(jax.device_get(random_arrays(network.initialize, number)), 0.5).save(
            folder / snapshot.file
        )
    own.write()
    monkeypatch.setattr(behaviours, "ZOO", folder.parent)
    yield folder
    snapshots.shipped.cache_clear()


def test_a_game_is_available_where_its_snapshots_are(breakout: Path, capsys: Said) -> None:
    assert BREAKOUT in generated.catalogue()
    assert run("data", "list") == 0
    shown = capsys.readouterr().out
    assert BREAKOUT in shown
    assert "cwbc/pong" not in shown
    assert make(BREAKOUT, "--size", "600") == 0
    data = cwbc.load(BREAKOUT)
    assert data.observations.shape == (data.steps, 84, 84, 1)
    assert data.observations.dtype == np.uint8
    assert data.actions.dtype == np.int32
    assert data.action_count == 4
    assert data.clipped_rewards
    assert 100 < data.steps <= 600
    assert (data.environment, data.horizon) == ("ALE/Breakout-v5", 27_000)
    entry = store.find(BREAKOUT)
    assert entry is not None
    assert entry.bytes < data.observations.nbytes / 20
    # The same data again, from a folder of one's own; the name decides the seeds.
    sizes = {size: DatasetSpec.of(BREAKOUT, size).size for size in ("small", "full")}
    assert sizes == {"small": 25_000, "full": 500_000}
    assert DatasetSpec.of("my/breakout/replay-v0", folder=breakout).size == 25_000


@pytest.mark.parametrize("game", GAMES)
def test_a_game_without_snapshots_is_refused_with_the_commands_that_train_them(
    game: str, capsys: Said
) -> None:
    if behaviours.is_shipped(game):
        pytest.skip("its snapshots come with the package")
    name, task = f"cwbc/{game}/replay-v0", f"{game.capitalize()}-v5"
    for command in (("data", "make"), ("data", "show")):
        assert run(*command, name) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert f"the behaviour policies of {name} do not come with this version" in said
        assert f"`cwbc behaviours train ALE/{task}` trains some" in said
        assert f"`cwbc data make my/{game}/replay-v0 --behaviours behaviours/ALE-{task}`" in said
    assert name not in generated.catalogue()


@pytest.mark.parametrize("name", MAZES)
def test_mazes_can_be_made(name: str) -> None:
    entry = DatasetSpec.of(name, 15_000).generate()
    data = cwbc.load(name)
    assert data.content_hash == entry.content_hash
    assert 14_000 < data.steps <= 15_000
    assert data.environment == name.replace("maze/", "maze-")
    assert data.horizon == {"u": 300, "m": 600, "l": 800}[name.split("/")[-1][0]]
    assert {*data.returns.tolist()} == {0, 1}


def test_ant_mazes_are_available_where_the_ant_is(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Said
) -> None:
    """The zoo of a version that comes with an ant, and of one that does not."""
    name, own = "cwbc/antmaze/umaze-diverse-v0", "my/antmaze/umaze-diverse-v0"
    monkeypatch.setattr(behaviours, "ZOO", tmp_path / "zoo")
    snapshots.shipped.cache_clear()
    assert run("data", "list") == 0
    assert "antmaze/umaze-diverse-v0" not in capsys.readouterr().out
    for wrong in (lambda: cwbc.load(name), lambda: DatasetSpec.of(name)):
        with pytest.raises(InputError, match=r"do not come with this version .* train cwbc/ant-direction-v0"):
            wrong()
    ant_series(tmp_path / "zoo" / "ant")
    assert run("data", "list") == 0
    assert name in capsys.readouterr().out
    assert DatasetSpec.of(name, "full").size == 1_000_000
    assert make(name, "--size", "700") == 0
    assert cwbc.load(name).environment == "d4rl/antmaze-umaze-diverse-v2"
    assert make(own, "--size", "700", "--behaviours", str(tmp_path / "zoo" / "ant")) == 0
    assert cwbc.load(own).observations.shape == (700, 29)
    assert make("my/antmaze/umaze-v0", "--behaviours", str(OWN)) == 2
    assert "these behaviours act in Hopper-v4; the ant mazes need those of" in capsys.readouterr().err
    (file,) = (store.root() / own).glob("*.hdf5")
    assert run("data", "import", str(file), "--name", "cwbc/antmaze/large-play-v0") == 2
    snapshots.shipped.cache_clear()


def test_sizes() -> None:
    full = {name: DatasetSpec.of(name, "full").size for name in CATALOGUE}
    assert [full[name] for name in MAZES] == [1_000_000, 2_000_000, 4_000_000]
    assert full["cwbc/hopper/medium-replay-v0"] == 402_000
    assert full["cwbc/walker2d/medium-replay-v0"] == 302_000
    assert full["cwbc/halfcheetah/medium-replay-v0"] == 202_000
    assert {full[f"cwbc/{task}/medium-expert-v0"] for task in TASKS} == {2_000_000}
    others = itertools.product(TASKS, ("random", "medium", "expert"))
    assert {full[f"cwbc/{task}/{quality}-v0"] for task, quality in others} == {1_000_000}
    assert {DatasetSpec.of(name).size for name in CATALOGUE} == {200_000}
    own = DatasetSpec.of("my/medium-replay-v0", "full", OWN)
    assert own.size == snapshots.shipped("hopper").medium.steps  # all that the learner went through


def test_a_dataset_is_made_once(capsys: Said) -> None:
    assert make(HOPPER, "--size", "3000") == 0
    said = capsys.readouterr().err
    assert f"{HOPPER}: " in said
    assert f"`cwbc data show {HOPPER}`" in said
    (file,) = (store.root() / HOPPER).glob("*.hdf5")
    made_at = file.stat().st_mtime_ns
    assert make(HOPPER, "--size", "3000") == 0
    assert f"{HOPPER} is here already" in capsys.readouterr().err
    assert file.stat().st_mtime_ns == made_at
    assert make(HOPPER, "--size", "4000") == 2
    assert f"from `cwbc data make {HOPPER} --size 3000`; --overwrite replaces it" in capsys.readouterr().err
    assert make(HOPPER, "--size", "4000", "--overwrite") == 0
    assert cwbc.load(HOPPER).steps > 3000
    capsys.readouterr()
    assert run("data", "list") == 0
    listed = capsys.readouterr().out
    assert listed.count(HOPPER) == 1
    assert "cwbc/walker2d/expert-v0" in listed


def test_a_mistyped_name_is_told_the_near_ones() -> None:
    with pytest.raises(InputError, match="did you mean 'cwbc/hopper/medium-replay-v0'"):
        cwbc.load("cwbc/hopper/mediumreplay-v0")


def test_a_name_is_made_where_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    small = DatasetSpec.of(HOPPER, 3000)
    monkeypatch.setattr(generated.DatasetSpec, "of", lambda name: small)
    assert activity(HOPPER) == (f"generating {HOPPER}", "steps")
    assert cwbc.load(HOPPER).name == HOPPER
    assert store.names() == [HOPPER]
    assert activity(HOPPER) == (f"reading {HOPPER}", "values")


def test_own_behaviours_make_datasets_of_any_name(capsys: Said) -> None:
    assert make("lab/hop/expert-v3", "--behaviours", str(OWN), "--size", "2000") == 0
    data = cwbc.load("lab/hop/expert-v3")
    assert data.environment == "Hopper-v4"
    assert data.returns.mean() > 3000
    assert data.content_hash != DatasetSpec.of("cwbc/hopper/expert-v0", 2000).generate().content_hash


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["cwbc/hoper/medium-v0"], "did you mean 'cwbc/hopper/medium-v0'"),
        (["medium"], "unknown dataset to generate 'medium'"),
        ([HOPPER, "--size", "many"], "at most 100,000,000, small or full; got many"),
        (
            [HOPPER, "--size", "0"],
            "--size must be a number of steps, at most 100,000,000, small or full; got 0",
        ),
        ([HOPPER, "--size", "9" * 20], "at most 100,000,000, small or full; got 9999"),
        ([HOPPER, "--size", "3"], "--size 3 is shorter than the first episode of Hopper-v4"),
        (["my/hopper", "--behaviours", str(OWN)], "a name is like pendulum/medium-replay-v0"),
        ([HOPPER, "--behaviours", str(OWN)], "choose another, such as my/hopper/medium-v0"),
        (["my/medium-v0", "--behaviours", "nowhere"], "nowhere holds no behaviour policies"),
    ],
)
def test_mistakes_are_told(arguments: list[str], why: str, capsys: Said) -> None:
    assert make(*arguments) == 2
    assert why in capsys.readouterr().err
    assert store.names() == []


def test_what_is_damaged_is_made_again(capsys: Said) -> None:
    make(HOPPER, "--size", "2000")
    (file,) = (store.root() / HOPPER).glob("*.hdf5")
    file.unlink()
    assert make(HOPPER, "--size", "2000", "--overwrite") == 0
    assert cwbc.load(HOPPER).steps > 1000
    (store.root() / HOPPER / store.MANIFEST).write_text("{")
    assert make(HOPPER, "--size", "2000") == 2
    assert make(HOPPER, "--size", "2000", "--overwrite") == 0
    assert cwbc.load(HOPPER).steps > 1000


def test_other_behaviours_in_the_same_folder_make_other_data(tmp_path: Path, capsys: Said) -> None:
    folder = tmp_path / "trained"
    shutil.copytree(OWN, folder)
    arguments = ["my/expert-v0", "--behaviours", str(folder), "--size", "2000"]
    assert make(*arguments) == make(*arguments) == 0
    shutil.rmtree(folder)
    shutil.copytree(OWN.with_name("walker2d"), folder)
    capsys.readouterr()
    assert make(*arguments) == 2
    assert "--overwrite replaces it" in capsys.readouterr().err


def test_who_comes_second_waits_and_gets_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = DatasetSpec.of(HOPPER, 2000)
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: spec.generate(), range(2))
    assert first == second


def test_its_names_are_not_for_others(tmp_path: Path) -> None:
    source = DatasetSpec.of("my/medium-v0", 2000, OWN).generate().path
    assert run("data", "import", str(source), "--name", HOPPER) == 2


def test_a_kill_leaves_nothing_that_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(store, "adopt", killed)
        with pytest.raises(KeyboardInterrupt):
            DatasetSpec.of(HOPPER, 2000).generate()
    assert store.names() == []
    assert DatasetSpec.of(HOPPER, 2000).generate().steps > 1000
