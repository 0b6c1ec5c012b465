"""Environments by name, as objects and as functions; what a file may not choose."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from command_line import SMALL_SAC
from gymnasium.wrappers import TimeLimit
from toys import ENVIRONMENT, HORIZON, Toy, toy_data, write_toy

import cwbc
from cwbc import envs
from cwbc.cli.main import main
from cwbc.data import store
from cwbc.grids.cells import Cell
from cwbc.grids.preparation import DatasetCache, prepare
from cwbc.system.errors import InputError, UnavailableError

TINY: dict[str, Any] = {"preset": "small", "steps": 20, "width": 16, "batch_size": 4}
MODULE = "named_by_a_file"
OWN = f"{MODULE}:Own-v0"
REFUSED = rf"'{OWN}' was named by a file, .* give --env {OWN} "


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module that registers the toy as an environment of its own; it leaves a mark when it is imported."""
    code = f"""
    import gymnasium, pathlib, toys
    pathlib.Path(__file__).with_suffix(".ran").touch()
    gymnasium.register("Own-v0", entry_point=toys.Toy, max_episode_steps={HORIZON})
    gymnasium.register("Aim-v0", entry_point=toys.Aim, max_episode_steps=5)
    """
    (tmp_path / f"{MODULE}.py").write_text("".join(line.strip() + "\n" for line in code.splitlines()))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, MODULE, raising=False)
    for name in ("Own-v0", "Aim-v0"):
        monkeypatch.delitem(gymnasium.registry, name, raising=False)
    monkeypatch.setattr(envs, "_allowed", set())
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "store"))
    return tmp_path / f"{MODULE}.ran"


def command(*arguments: str | Path) -> int:
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    return int(ended.value.code or 0)


def test_the_files_of_a_run_do_not_choose_what_is_imported(
    own_module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    data = toy_data(full_length=True).described(environment=OWN)
    cwbc.train(data, "bc", seeds=2, directory=run, **TINY)  # its config.json and its checkpoint name it
    with pytest.raises(UnavailableError, match=REFUSED):
        cwbc.evaluate(run, episodes=1)
    evaluate = ("evaluate", run, "--episodes=1", "--targets=1", "--device=cpu")
    assert command(*evaluate) == 2
    assert f"give --env {OWN} (in Python" in capsys.readouterr().err
    assert not own_module.exists()
    assert command("report", run) == 2
    assert f"`cwbc evaluate {run} --env {OWN}` evaluates it" in capsys.readouterr().err
    assert command(*evaluate, "--env", OWN) == 0
    assert own_module.exists()


def test_an_argument_chooses_what_is_imported(own_module: Path) -> None:
    policies = cwbc.train(toy_data(full_length=True).described(environment=OWN), "bc", seeds=2, **TINY)
    with pytest.raises(UnavailableError, match=REFUSED):
        cwbc.evaluate(policies, targets=[1.0], episodes=1)
    assert not own_module.exists()
    assert cwbc.evaluate(policies, OWN, [1.0], episodes=1).lengths.tolist() == [[[HORIZON]], [[HORIZON]]]


def test_the_store_does_not_choose_what_is_imported(
    own_module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a time limit, which reading the data would require.
    store.add(toy_data(full_length=True).described(name="own", environment=OWN, time_limit=None), "tests")
    monkeypatch.chdir(tmp_path)
    sizes = [f"--{name.replace('_', '-')}={value}" for name, value in TINY.items()]
    assert command("data", "show", "own") == 0
    assert command("train", "own", "bc", "--seeds=2", "--device=cpu", *sizes) == 0
    capsys.readouterr()
    compare = ("compare", "own", "bc", "--seeds=2", "--device=cpu", *sizes, "--targets=1", "--episodes=1")
    assert command(*compare) == 2
    assert f"give --env {OWN} (in Python" in capsys.readouterr().err
    method, settings = cwbc.METHODS["bc"], cwbc.Training(steps=20)
    cell = Cell("own", "bc", method, settings, (0,), (1.0,))
    with pytest.raises(UnavailableError, match=REFUSED):
        prepare([cell], tmp_path / "cells", {}, DatasetCache())
    assert not own_module.exists()
    __import__(MODULE)  # as the program that runs a grid does
    assert prepare([cell], tmp_path / "cells", {}, DatasetCache())[0].environment == OWN


def test_behaviours_do_not_choose_what_is_imported(
    own_module: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    aim = f"{MODULE}:Aim-v0"
    settings = [*SMALL_SAC, "--steps=440", "--episodes=1", "--out", str(tmp_path / "behaviours")]
    assert command("behaviours", "train", aim, *settings) == 0
    make = ("data", "make", "aim/random-v0", "--size=20", "--behaviours", tmp_path / "behaviours")
    own_module.unlink()
    for name in (MODULE, *[each for each in sys.modules if each.startswith(f"{MODULE}.")]):
        sys.modules.pop(name, None)
    envs._allowed.clear()
    for name in ("Own-v0", "Aim-v0"):
        gymnasium.registry.pop(name, None)
    capsys.readouterr()
    assert command(*make) == 2
    assert f"give --env {aim} (in Python" in capsys.readouterr().err
    assert not own_module.exists()
    assert command(*make, "--env=Other-v0") == 2
    assert f"act in {aim}, not in Other-v0" in capsys.readouterr().err
    assert command(*make, "--env", aim) == 0


@pytest.fixture(scope="module")
def policies(tmp_path_factory: pytest.TempPathFactory) -> cwbc.Policies:
    dataset = write_toy(tmp_path_factory.mktemp("data") / "toy.hdf5", environment=None)
    return cwbc.train(dataset, "rvs", seeds=2, **TINY)


def limited() -> gymnasium.Env[Any, Any]:
    return TimeLimit(Toy(), HORIZON)


@pytest.mark.parametrize("given", [limited, lambda: gymnasium.make(ENVIRONMENT)], ids=["class", "registered"])
def test_an_environment_or_a_function_that_makes_one_gives_what_its_id_gives(
    policies: cwbc.Policies, given: Callable[[], gymnasium.Env[Any, Any]]
) -> None:
    wanted: dict[str, Any] = {"targets": [-2, 3], "episodes": 2}
    expected = cwbc.evaluate(policies, ENVIRONMENT, **wanted)
    made = cwbc.evaluate(policies, given, **wanted)
    np.testing.assert_array_equal(made.returns, expected.returns)
    one = given()
    closed: list[str] = []
    one.close = lambda: closed.append("closed")  # type: ignore[method-assign]
    in_turn = cwbc.evaluate(policies, one, **wanted)
    np.testing.assert_allclose(in_turn.returns, expected.returns, rtol=1e-5)
    np.testing.assert_array_equal(in_turn.lengths, expected.lengths)
    assert not closed  # whoever made it closes it
    assert len(cwbc.evaluate(policies, one, episodes=1).targets) == 21  # of the dataset's own returns


def test_what_is_no_environment_is_refused(policies: cwbc.Policies) -> None:
    for wrong, shown in (
        (5, "environment must be a Gymnasium id, .* got a int"),
        (lambda: 5, "<lambda> returned a int; expected a gymnasium.Env"),
        (Toy, "Toy sets no limit on the length of an episode; .* gymnasium.wrappers.TimeLimit"),
        (Toy(), "Toy sets no limit"),
        (gymnasium.make("CartPole-v1"), "the policy does not fit CartPole-v1"),
        (lambda: 1 / 0, "'<lambda>' cannot be created: division by zero"),
    ):
        with pytest.raises(InputError, match=shown):
            cwbc.evaluate(policies, wrong, [1.0], episodes=2)  # type: ignore[arg-type]
    same = limited()
    with pytest.raises(InputError, match="returned one environment twice; give that environment itself"):
        cwbc.evaluate(policies, lambda: same, [1.0], episodes=2)
