"""Training in run directories: interrupted, killed, resumed, trained on; and what is refused."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import HORIZON, LARGEST, cloning, tiny, toy_data, write_toy

from cwbc.cli.main import main
from cwbc.core import prediction_error, training_loop
from cwbc.core.conditioning import DEFAULT_SCALE
from cwbc.core.device import Place
from cwbc.core.holdout import split
from cwbc.core.methods import Method, Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Continuous
from cwbc.core.training_loop import Interrupted
from cwbc.core.trajectories import Trajectories
from cwbc.runs import locks
from cwbc.runs.policies import Policies, Policy
from cwbc.runs.run_directory import RunDirectory
from cwbc.runs.training import Run, train, train_together
from cwbc.system import tensor_files
from cwbc.system.errors import DivergenceError, InputError

SETTINGS = Training(steps=30, batch_size=8, context=5)


def assert_same(one: Policies, other: Policies) -> None:
    jax.tree.map(np.testing.assert_array_equal, one.parameters, other.parameters)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several of them in a training, all of one length and thus of one program."""
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 5)


def stop_after(chunks: int) -> Callable[[], bool]:
    calls = iter(range(1000))
    return lambda: next(calls) >= chunks - 1


@functools.cache
def policy_of(name: str, scale: str = DEFAULT_SCALE) -> Policy:
    """A policy that was trained until it has learned the toy."""
    method = tiny(name, width=64, layers=2, condition_scale=scale)
    settings = Training(steps=1000, batch_size=32, context=5)
    return train(toy_data(full_length=True), method, settings, (0,)).policy()


def test_rvs_learns_to_achieve_its_targets() -> None:
    policy = policy_of("rvs")
    targets = np.linspace(-0.8, 0.8, 9) * LARGEST * HORIZON
    generator = np.random.default_rng(5)
    policy.begin(targets)
    rewards, achieved = None, np.zeros(len(targets))
    for _ in range(HORIZON):
        rewards = policy.act(generator.normal(size=(len(targets), 2)), rewards)[:, 0]
        achieved += rewards
    # The answer is known: the action is the average return-to-go, and the target is achieved.
    np.testing.assert_allclose(achieved, targets, atol=0.25)


def test_the_regularizer_imitates_the_best_trajectories_at_ood_targets() -> None:
    # In the paper's scale: bounded, the condition of plain RvS hardly differs from that of the best return.
    first = {}
    for name in ("rvs", "rvs+c"):
        policy = policy_of(name, "paper")
        policy.begin(2.5 * LARGEST * HORIZON)
        first[name] = float(policy.act([0.0, 0.0])[0])
    assert first["rvs"] > 1.4 * LARGEST  # tanh allows up to twice the largest logged action
    assert first["rvs+c"] == pytest.approx(LARGEST, abs=0.1)


def test_an_interrupted_run_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    name, data, seeds = "rvs+w+c", toy_data(), (3, 4)
    whole = train(data, tiny(name), SETTINGS, seeds)
    for chunks in (1, 2):
        with pytest.raises(Interrupted):
            train(data, tiny(name), SETTINGS, seeds, tmp_path / name, should_stop=stop_after(chunks))
        with pytest.raises(InputError, match=f"stopped at {5 if chunks == 1 else 15} of 30 steps"):
            Policies.load(tmp_path / name)
    steps: list[int] = []
    resumed = train(data, tiny(name), SETTINGS, seeds, tmp_path / name, progress=steps.append)
    assert steps == [20, 25, 30]
    assert_same(whole, resumed)
    assert_same(whole, Policies.load(tmp_path / name))
    rows = [json.loads(line) for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [5, 10, 15, 20, 25, 30]
    assert all(len(row["loss"]) == 2 for row in rows)
    assert all(one["seconds"] <= two["seconds"] for one, two in itertools.pairwise(rows))  # over all sessions


@pytest.mark.parametrize("places", [("host", "device"), ("device", "host"), ("host", "host")])
def test_a_run_resumes_wherever_the_data_is_stored(tmp_path: Path, places: tuple[Place, Place]) -> None:
    data, seeds = toy_data(), (3, 4)
    begun, resumed = places
    whole = train(data, tiny("rvs+w+c"), SETTINGS, seeds, tmp_path / "whole", data_on="device")
    with pytest.raises(Interrupted):
        train(
            data,
            tiny("rvs+w+c"),
            SETTINGS,
            seeds,
            tmp_path / "interrupted",
            should_stop=stop_after(2),
            data_on=begun,
        )
    assert_same(
        whole, train(data, tiny("rvs+w+c"), SETTINGS, seeds, tmp_path / "interrupted", data_on=resumed)
    )
    whole_rows, rows = (
        [json.loads(line) | {"seconds": 0} for line in path.read_text().splitlines()]
        for path in (tmp_path / "whole" / "metrics.jsonl", tmp_path / "interrupted" / "metrics.jsonl")
    )
    assert rows == whole_rows
    assert [row["step"] for row in rows] == [5, 10, 15, 20, 25, 30]


def test_metrics_after_the_checkpoint_are_dropped(tmp_path: Path) -> None:
    data = toy_data()
    with pytest.raises(Interrupted):
        train(data, tiny("rvs"), SETTINGS, (0,), tmp_path / "r", should_stop=stop_after(1))
    with (tmp_path / "r" / "metrics.jsonl").open("a") as file:  # a kill after the checkpoint, amid a line
        file.write('{"step": 10, "seconds": 1.0, "loss": [1.0]}\n{"step": 15, "sec')
    train(data, tiny("rvs"), SETTINGS, (0,), tmp_path / "r")
    rows = [json.loads(line) for line in (tmp_path / "r" / "metrics.jsonl").read_text().splitlines()]
    assert [row["step"] for row in rows] == [5, 10, 15, 20, 25, 30]


def test_a_finished_run_is_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path / "r")
    monkeypatch.setattr(training_loop, "run_chunk", None)
    assert_same(first, train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path / "r"))
    assert Policy.load(tmp_path / "r").about["dataset"] == "toy"


def longer(steps: int) -> Training:
    return dataclasses.replace(SETTINGS, steps=steps)


def metrics(directory: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (directory / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(("name", "first", "last"), [("rvs+w+c", 30, 60), ("dt", 40, 45)])
def test_a_finished_run_is_trained_on_as_one_longer_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, first: int, last: int
) -> None:
    """With a warm-up that is the same for both: here 2 steps, at most a tenth of either."""
    data, method, place = toy_data(), tiny(name, warmup_steps=2), tmp_path / "r"
    if name == "rvs+w+c":  # the two have other chunks; of a transformer, this would take long to compile
        monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 20)
    earlier = train(data, method, longer(first), (3, 4), place)
    later = train(data, method, longer(last), (3, 4), place)
    assert_same(later, train(data, method, longer(last), (3, 4)))
    assert_same(later, Policies.load(place))
    assert not np.array_equal(*(jax.tree.leaves(each.parameters)[0] for each in (earlier, later)))
    steps = [row["step"] for row in metrics(place)]
    assert steps == sorted(set(steps))
    assert (first in steps, steps[-1]) == (True, last)
    config = RunDirectory(place).config()
    assert (config["training"]["steps"], config["first_steps"]) == (last, first)
    with pytest.raises(InputError, match=rf"training\.steps was {last}, now {first}"):
        train(data, method, longer(first), (3, 4), place)


def test_a_run_that_is_trained_on_keeps_its_warm_up(tmp_path: Path) -> None:
    """A longer training would warm up for 6 steps; this one has warmed up for 3 and does not change that."""
    data, place = toy_data(), tmp_path / "r"
    train(data, tiny("rvs"), longer(30), (3,), place)
    train(data, tiny("rvs"), longer(45), (3,), place)
    on = train(data, tiny("rvs"), longer(60), (3,), place)
    assert RunDirectory(place).config()["first_steps"] == 30
    assert_same(on, train(data, tiny("rvs", warmup_steps=3), longer(60), (3,)))
    whole = train(data, tiny("rvs"), longer(60), (3,))
    assert not np.array_equal(*(jax.tree.leaves(each.parameters)[0] for each in (on, whole)))


def test_a_run_that_is_interrupted_while_trained_on_is_not_finished(tmp_path: Path) -> None:
    data, method, place = toy_data(), tiny("rvs", warmup_steps=2), tmp_path / "r"
    train(data, method, longer(30), (3,), place, notes={"command": "the first"})
    (place / "summary.json").write_text("{}")
    (place / "results.csv").write_text("of 30 steps")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_loop, "run_chunk", None)  # killed before anything is saved
        with pytest.raises(TypeError):
            train(data, method, longer(60), (3,), place, notes={"command": "the second"})
    with pytest.raises(InputError, match="training has stopped at 30 of 60 steps"):
        Policies.load(place)
    with pytest.raises(InputError, match="not trained to its end yet; this resumes it:\nthe second"):
        RunDirectory(place).dataset()
    # The evaluation after fewer steps is moved to where it does not pass for that of the run.
    assert (place / "after-30-steps" / "results.csv").read_text() == "of 30 steps"
    assert not [name for name in ("summary.json", "results.csv") if (place / name).exists()]
    assert_same(train(data, method, longer(60), (3,), place), train(data, method, longer(60), (3,)))


def described(directory: Path, **changes: Any) -> None:
    """Rewrite the description of a checkpoint with valid checksums; None removes an entry."""
    path = directory / "checkpoint.safetensors"
    tensors, description = tensor_files.read(path)
    description = {name: value for name, value in {**description, **changes}.items() if value is not None}
    tensor_files.write(path, tensors, description)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": 29}, r"it says step 29, but optimizer/.*count counts \[5\]"),
        ({"step": -500}, r"description\.step is -500; expected 0 to 30"),
        ({"step": 30}, r"it says step 30, but optimizer/.*count counts \[5\]"),
        ({"step": 31}, r"description\.step is 31; expected 0 to 30"),
        ({"step": "7"}, r"description\.step is '7'; expected a whole number"),
        ({"step": 7.0}, r"description\.step is 7\.0; expected a whole number"),
        ({"seeds": [0, 0]}, r"description\.seeds is no list of different seeds"),
        ({"seeds": [1]}, r"is of another run than config\.json beside it: seeds was \[1\], now \[0\]"),
        ({"design": {}}, "design lacks .*actions"),
        ({"steps": None}, r"description\.steps is null"),
    ],
)
def test_a_checkpoint_that_contradicts_itself_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    place = tmp_path / "r"
    with pytest.raises(Interrupted):
        train(toy_data(), tiny("rvs"), SETTINGS, (0,), place, should_stop=stop_after(1))
    described(place, **changes)
    before = {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()}
    with pytest.raises(InputError, match=message):
        train(toy_data(), tiny("rvs"), SETTINGS, (0,), place)
    assert {file.name: file.read_bytes() for file in place.iterdir() if file.is_file()} == before
    with pytest.raises(InputError):
        Policies.load(place)


def test_the_checkpoint_of_a_run_loads_like_its_directory(tmp_path: Path) -> None:
    place = tmp_path / "r"
    train(toy_data(), tiny("rvs"), SETTINGS, (3, 4), place)
    path = place / "checkpoint.safetensors"
    assert_same(Policies.load(path), Policies.load(place))
    for seed in (None, 3, 4):
        one, other = Policy.load(path, seed), Policy.load(place, seed)
        assert one.about["seed"] == other.about["seed"] == (seed or 3)
        one.begin([1.0, 2.0])
        other.begin([1.0, 2.0])
        np.testing.assert_array_equal(one.act(np.zeros((2, 2))), other.act(np.zeros((2, 2))))
    with pytest.raises(InputError, match="no seed 5; trained were 3, 4"):
        Policy.load(path, seed=5)
    with pytest.raises(InputError, match=f"is missing; give one of those in it: {re.escape(str(place))}"):
        Policy.load(tmp_path)  # as that of a comparison


def test_acting_does_not_read_the_optimizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "r"
    train(toy_data(), tiny("rvs"), SETTINGS, (3,), place)
    names: list[str] = []
    original = tensor_files._tensor_hash

    def noted(name: str, tensor: NDArray[Any]) -> str:
        names.append(name)
        return original(name, tensor)

    monkeypatch.setattr(tensor_files, "_tensor_hash", noted)
    Policies.load(place)
    assert "parameters/layer0/weight" in names
    assert all(name.endswith("/count") for name in names if name.startswith("optimizer/"))
    stored = tensor_files.read(place / "checkpoint.safetensors")[0]
    assert any(name.startswith("optimizer/") and not name.endswith("/count") for name in stored)


@pytest.mark.parametrize(
    "damage", [b"\xff\xfe\n", b'{"step": 5, "seconds": "x", "loss": [1]}\n', b"[" * 9999]
)
def test_damaged_metrics_do_not_stop_a_run(tmp_path: Path, damage: bytes) -> None:
    place = tmp_path / "r"
    train(toy_data(), tiny("rvs"), SETTINGS, (0,), place)
    path = place / "metrics.jsonl"
    rest = path.read_bytes().split(b"\n", 1)[1]
    path.write_bytes(damage + b"\n" + rest)
    assert [row["step"] for row in RunDirectory(place).metrics()] == [10, 15, 20, 25, 30]
    train(toy_data(), tiny("rvs"), SETTINGS, (0,), place)
    assert RunDirectory(place).training_seconds() is not None


def test_other_settings_are_refused_by_name(tmp_path: Path) -> None:
    train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path / "r")
    with pytest.raises(InputError, match=r"training\.steps was 30, now 29"):
        train(toy_data(), tiny("rvs"), dataclasses.replace(SETTINGS, steps=29), (0,), tmp_path / "r")
    with pytest.raises(InputError, match=r"optimizer\.learning_rate was 0\.0003, now 0\.1"):
        train(toy_data(), tiny("rvs", learning_rate=0.1), SETTINGS, (0,), tmp_path / "r")
    with pytest.raises(InputError, match=r"seeds was \[0\], now \[1\]"):
        train(toy_data(), tiny("rvs"), SETTINGS, (1,), tmp_path / "r")
    with pytest.raises(InputError, match=r"dataset\.content_hash was"):
        train(toy_data(episodes=61), tiny("rvs"), SETTINGS, (0,), tmp_path / "r")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "diary.txt").write_text("dear diary")
    with pytest.raises(InputError, match="not empty and holds no run"):
        train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path / "mine")
    assert [file.name for file in (tmp_path / "mine").iterdir()] == ["diary.txt"]


def test_a_diverged_training_leaves_no_checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = training_loop.run_chunk

    def poisoned(*arguments: Any) -> Any:
        state, losses = original(*arguments)
        if arguments[5] == 10:  # the first step
            losses["loss"][3, 1] = np.inf
        return state, losses

    monkeypatch.setattr(training_loop, "run_chunk", poisoned)
    with pytest.raises(DivergenceError, match="the loss of rvs became inf for seed 9 at step 13"):
        train(toy_data(), tiny("rvs"), SETTINGS, (8, 9), tmp_path / "r")
    assert not (tmp_path / "r" / "checkpoint.safetensors").exists()


def test_a_run_that_diverged_at_once_starts_over_with_other_settings(tmp_path: Path) -> None:
    place = tmp_path / "r"
    with pytest.raises(DivergenceError, match="a lower learning rate"):
        train(toy_data(), tiny("rvs", learning_rate=1e38), SETTINGS, (0,), place)
    assert RunDirectory(place).config()["method"]["optimizer"]["learning_rate"] == 1e38
    with RunDirectory(place).lock(), pytest.raises(InputError, match="another process is working"):
        train(toy_data(), tiny("rvs"), SETTINGS, (0,), place)  # it may be on its way to a checkpoint
    train(toy_data(), tiny("rvs"), SETTINGS, (0,), place)
    assert RunDirectory(place).config()["method"]["optimizer"]["learning_rate"] == 3e-4
    assert RunDirectory(place).steps_done() == SETTINGS.steps


def test_a_run_does_not_resume_with_more_actions_than_it_began_with(tmp_path: Path) -> None:
    seen = toy_data(discrete=True).described(environment=None)
    train(seen, tiny("bc"), SETTINGS, (0,), tmp_path / "r")
    known = seen.described(environment="cwbc-toy-discrete-v0", action_count=3)
    assert train(known, tiny("bc"), SETTINGS, (0,), tmp_path / "r").spec.actions.size == 3
    with pytest.raises(InputError, match="was trained for 3 actions, now there are 5"):
        train(known.described(action_count=5), tiny("bc"), SETTINGS, (0,), tmp_path / "r")


def test_a_sitting_with_other_versions_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Interrupted):
        train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path / "r", should_stop=lambda: True)
    monkeypatch.setattr("cwbc.runs.configuration.os.cpu_count", lambda: 1234)
    train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path / "r")
    config = RunDirectory(tmp_path / "r").config()
    assert config["hardware"]["cores"] != 1234
    assert [sitting["hardware"]["cores"] for sitting in config["later_sittings"]] == [1234]


def test_a_killed_command_resumes_and_ends_with_the_same_bits(tmp_path: Path) -> None:
    """SIGKILL to real `cwbc train` processes; the end is bit for bit the uninterrupted one."""
    dataset = write_toy(tmp_path / "toy.hdf5", environment=None)
    program = (
        "import os, signal\n"
        "from cwbc.core import training_loop\n"
        "training_loop.SAVE_INTERVAL = 0.0\n"  # a checkpoint after every chunk
        "training_loop.chunk_length = lambda *_: 5\n"
        "name, left = os.environ.get('KILLED_IN', 'replace 0').split()\n"
        "call, left = getattr(os, name), [int(left)]\n"
        "def fatal(*arguments):\n"
        "    left[0] -= 1\n"
        "    return os.kill(os.getpid(), signal.SIGKILL) if left[0] == 0 else call(*arguments)\n"
        "setattr(os, name, fatal)\n"
        "from cwbc.cli.main import main\n"
        "main()\n"
    )
    options = "--steps=400 --seeds=2 --width=16 --batch-size=4 --preset=small --device=cpu"

    def words(out: Path) -> list[str]:
        return f"train {dataset} rvs+cwbc {options} --out={out}".split()

    def command(out: Path) -> list[str]:
        return [sys.executable, "-c", program, *words(out)]

    with pytest.raises(SystemExit, match="0"):
        main(words(tmp_path / "whole"))
    killed = tmp_path / "killed"
    for place in ("replace 6", "fsync 9"):  # with a checkpoint before it, and half of the next one
        ended = subprocess.run(
            command(killed), env=os.environ | {"KILLED_IN": place}, capture_output=True, check=False
        )
        assert ended.returncode == -signal.SIGKILL
        assert [file for file in killed.iterdir() if file.name.endswith(".tmp")]
    assert 0 < RunDirectory(killed).steps_done() < 400
    subprocess.run(command(killed), check=True, capture_output=True)
    assert_same(Policies.load(tmp_path / "whole"), Policies.load(killed))
    assert not [file for file in killed.iterdir() if file.name.endswith(".tmp")]


def run(data: Trajectories, method: Method, place: Path) -> Run:
    return Run(data, PolicySpec.fit(method, data, SETTINGS), place)


def test_methods_trained_together_have_the_files_of_those_trained_alone(tmp_path: Path) -> None:
    data, seeds = toy_data(), (3, 4)
    methods = [tiny("rvs+w+c"), tiny("rvs+c", learning_rate=0.01)]
    places = [tmp_path / str(number) for number in range(len(methods))]
    together = train_together(
        [run(data, *each) for each in zip(methods, places, strict=True)], SETTINGS, seeds
    )
    for method, place, one in zip(methods, places, together, strict=True):
        alone_in = tmp_path / f"{place.name}-alone"
        assert_same(one, train(data, method, SETTINGS, seeds, alone_in))
        assert_same(one, Policies.load(place))
        assert [row["loss"] for row in metrics(place)] == [row["loss"] for row in metrics(alone_in)]


def test_runs_that_were_interrupted_together_resume_each_from_its_own_step(tmp_path: Path) -> None:
    data, seeds = toy_data(), (3,)
    methods = [tiny("rvs+w+c"), tiny("rvs+w+c", learning_rate=0.01)]
    places = [tmp_path / "one", tmp_path / "two"]
    runs = [run(data, *each) for each in zip(methods, places, strict=True)]
    with pytest.raises(Interrupted):
        train_together(runs, SETTINGS, seeds, should_stop=stop_after(2))
    with pytest.raises(Interrupted):  # the second is one chunk further now
        train(data, methods[1], SETTINGS, seeds, places[1], should_stop=stop_after(1))
    steps: list[int] = []
    resumed = train_together(runs, SETTINGS, seeds, progress=steps.append)
    assert steps == [15, 17, 20, 22, 25, 27, 30]
    for one, method in zip(resumed, methods, strict=True):
        assert_same(one, train(data, method, SETTINGS, seeds))


def test_nothing_is_written_once_before_writing_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_loop, "SAVE_INTERVAL", 0.0)
    files: list[dict[str, bytes]] = []
    asides: list[dict[str, bytes]] = []

    def contents(pattern: str) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.glob(pattern)}

    def lost_at_the_fourth_write() -> None:
        files.append(contents("[!.]*"))
        asides.append(contents(".*"))
        if len(files) == 4:
            raise KeyboardInterrupt

    arguments = ([run(toy_data(), tiny("rvs"), tmp_path)], SETTINGS, (3,))
    with pytest.raises(KeyboardInterrupt):
        train_together(*arguments, before_writing=lost_at_the_fourth_write)
    assert contents("*") == files[-1]  # and what was written aside is gone
    assert list(map(bool, asides)) == [False, False, True, False]  # a checkpoint, ready to be put there
    names = [set(each) for each in files]
    assert names[0] == set()  # called before the configuration, too; then come metrics and checkpoint
    assert names[0] < names[1] < names[2] < names[3]


def test_two_processes_do_not_train_in_one_run(tmp_path: Path) -> None:
    with RunDirectory(tmp_path).lock():
        with pytest.raises(InputError, match=f"another process is working in {tmp_path}"):
            train(toy_data(), tiny("rvs"), SETTINGS, (3,), tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [locks.FOLDER]
        # The caller of train_together locks the directories.
        (together,) = train_together([run(toy_data(), tiny("rvs"), tmp_path)], SETTINGS, (3,))
    assert_same(together, train(toy_data(), tiny("rvs"), SETTINGS, (3,), tmp_path))


def test_overwriting_a_run_that_was_trained_on_leaves_one_that_trains(tmp_path: Path) -> None:
    """Evaluations after fewer steps are in folders of the run, and are removed with it."""
    data, first = write_toy(tmp_path / "toy.hdf5"), ["--out", str(tmp_path / "run"), "--seeds=1", "--width=8"]
    more = ["--preset=small", "--batch-size=4", "--context=2"]
    command = ["train", str(data), "bc", *first, *more]
    for options in (["--steps=10"], ["--steps=15"], ["--steps=15", "--learning-rate=0.1", "--overwrite"]):
        with pytest.raises(SystemExit, match=r"^0$"):
            main([*command, *options])
        if options == ["--steps=10"]:
            (tmp_path / "run" / "results.csv").write_text("evaluated")
        folder = tmp_path / "run" / "after-10-steps"
        assert folder.exists() == (options == ["--steps=15"])
    assert cloning(Policies.load(tmp_path / "run").spec.method).optimizer.learning_rate == 0.1


def test_a_run_keeps_the_bounds_on_actions_that_it_began_with(tmp_path: Path) -> None:
    data = toy_data()
    with pytest.raises(Interrupted):
        train(data, tiny("rvs"), SETTINGS, (0,), tmp_path, should_stop=lambda: True)
    found = train(data.described(action_bounds=None), tiny("rvs"), SETTINGS, (0,), tmp_path)
    assert found.spec.actions == Continuous((-1.0,), (1.0,))
    assert Policies.load(tmp_path).spec == found.spec


def test_the_error_about_another_condition_scale_names_the_option_that_resumes(tmp_path: Path) -> None:
    train(toy_data(), tiny("rvs", condition_scale="paper"), SETTINGS, (0,), tmp_path)
    wanted = "condition_scale was 'paper', now 'bounded'; .*; --condition-scale paper resumes it"
    with pytest.raises(InputError, match=wanted) as raised:
        train(toy_data(), tiny("rvs"), SETTINGS, (0,), tmp_path)
    assert "center" not in str(raised.value)


@pytest.mark.usefixtures("short_chunks")
def test_held_out_episodes_are_not_trained_on_and_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prediction_error, "_COST", 1000.0)  # after every chunk, though these are tiny
    data, held_out, seeds = toy_data(), dataclasses.replace(SETTINGS, holdout=0.2), (3, 4)
    whole = train(data, tiny("rvs+w+c"), held_out, seeds, tmp_path / "whole")
    assert_same(whole, train(split(data, 0.2).training, tiny("rvs+w+c"), SETTINGS, seeds))
    with pytest.raises(Interrupted):
        train(data, tiny("rvs+w+c"), held_out, seeds, tmp_path / "cut", should_stop=stop_after(2))
    train(data, tiny("rvs+w+c"), held_out, seeds, tmp_path / "cut")
    train(data, tiny("rvs+w+c"), held_out, (4,), tmp_path / "alone")
    rows, again, alone = (
        [{**row, "seconds": 0} for row in RunDirectory(tmp_path / name).metrics()]
        for name in ("whole", "cut", "alone")
    )
    assert rows == again
    names = ("heldout", "heldout_low", "heldout_middle", "heldout_high", "training_error")
    for name in names:
        values = np.array([row[name] for row in rows])
        assert values.shape == (len(rows), 2)
        assert ((values > 0) & (values < 4)).all()
        np.testing.assert_array_equal(values[:, 1:], [row[name] for row in alone])
    bands = np.mean([rows[-1][name] for name in names[1:4]], axis=0)
    np.testing.assert_allclose(rows[-1]["heldout"], bands, rtol=1e-5)
    config = RunDirectory(tmp_path / "whole").config()
    assert config["dataset"]["content_hash"] == data.content_hash
    assert (config["dataset"]["episodes"], config["training"]["holdout"]) == (60, 0.2)
    assert sum(config["drawn"]) == pytest.approx(1)
