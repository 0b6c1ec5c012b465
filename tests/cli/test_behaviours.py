"""`cwbc behaviours` and `cwbc demo` as users meet them: from an environment to a compared dataset."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from command_line import SMALL_SAC, TINY, run
from toys import AIM, DISCRETE_ENVIRONMENT, HORIZON, learner, write_toy

import cwbc
from cwbc.behaviours import snapshots
from cwbc.cli import compare
from cwbc.core.methods import Method, Preset, Training, sized, with_options
from cwbc.system import tensor_files

Said = pytest.CaptureFixture[str]
OUT = Path(f"behaviours/{AIM}")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


def train(*arguments: str) -> int:
    return run("behaviours", "train", AIM, *SMALL_SAC, *arguments)


def test_from_an_environment_to_a_comparison(capsys: Said) -> None:
    assert train("--steps", "2000", "--episodes", "5") == 0
    out, err = capsys.readouterr()
    assert "after 1,000 steps: return " in err
    assert f"`cwbc data make cwbc-aim/medium-replay-v0 --behaviours {OUT}`" in err.replace("\n", " ")
    assert AIM in out
    assert (own := snapshots.read(OUT)).command.startswith(f"cwbc behaviours train {AIM}")
    manifest = (OUT / "seed-0" / "manifest.json").read_bytes()
    assert train("--steps", "1500", "--episodes", "5") == 0
    assert "already trained" in capsys.readouterr().err
    assert (OUT / "seed-0" / "manifest.json").read_bytes() == manifest
    assert run("behaviours", "show", str(OUT)) == 0
    shown = capsys.readouterr().out
    assert "medium" in shown
    assert f"{own.expert.steps:,}" in shown
    for quality in ("medium-replay", "expert"):
        assert run("data", "make", f"aim/{quality}-v0", "--behaviours", str(OUT), "--size", "500") == 0
    assert cwbc.load("aim/expert-v0").returns.mean() > cwbc.load("aim/medium-replay-v0").returns.mean()
    assert run("compare", "aim/medium-replay-v0", "rvs", *TINY, "--out", "runs/aim") == 0
    config = json.loads(Path("runs/aim/config.json").read_text())["runs"]["rvs"]
    assert config["dataset"]["environment"] == AIM
    made_by = "cwbc data make aim/medium-replay-v0 --size 500"
    assert made_by in config["notes"]["dataset from"]
    page = re.sub(r"</?span[^>]*>", "", Path("runs/aim/report.html").read_text())  # around options
    assert made_by in page


def test_discrete_actions_are_learned_by_pqn(capsys: Said) -> None:
    small = ["--copies", "8", "--rollout", "8", "--minibatches", "4", "--width", "16", "--rate", "1e-2"]
    assert run("behaviours", "train", DISCRETE_ENVIRONMENT, *small, "--steps", "1000", "--episodes", "5") == 0
    said = capsys.readouterr().err.replace("\n", " ")
    assert "`cwbc data make cwbc-toy-discrete/replay-v0 --behaviours behaviours/" in said
    own = snapshots.read(Path("behaviours") / DISCRETE_ENVIRONMENT)
    assert own.expert.deterministic.mean == 2 * HORIZON  # always the third action
    assert (own.settings["exploration"], own.settings["interval"]) == (500, 100)
    # With more steps, the training continues as it was sized at first.
    assert run("behaviours", "train", DISCRETE_ENVIRONMENT, *small, "--steps", "1100", "--episodes", "5") == 0
    assert "resuming from step 1,024" in capsys.readouterr().err
    own_policies = ("--behaviours", f"behaviours/{DISCRETE_ENVIRONMENT}")
    assert run("data", "make", "toy/expert-v0", *own_policies, "--size", "99") == 0
    data = cwbc.load("toy/expert-v0")
    assert (data.steps, data.action_count) == (90, 3)
    assert data.actions.dtype == np.int32
    assert data.returns.mean() > 1.9 * HORIZON


def test_the_zoo_is_shown(capsys: Said) -> None:
    assert run("behaviours", "show") == 0
    overview = capsys.readouterr().out
    assert all(name in overview for name in ("Hopper-v4", "Walker2d-v4", "HalfCheetah-v4"))
    for name in ("walker2d", "Walker2d-v4"):
        assert run("behaviours", "show", name) == 0
        assert "454,752" in capsys.readouterr().out
    learner(Path("hopper-mine"), 1, 7)  # a folder of one's own, though it begins like a robot
    assert run("behaviours", "show", "hopper-mine") == 0
    assert "638,896" not in capsys.readouterr().out


def test_games_need_an_extra(monkeypatch: pytest.MonkeyPatch, capsys: Said) -> None:
    monkeypatch.setitem(sys.modules, "ale_py", None)
    assert run("behaviours", "train", "ALE/Breakout-v5") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "Atari games need" in said
    assert "pip install 'cwbc[atari]'" in said
    assert not Path("behaviours").exists()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["train", "Pendulun-v1"], "unknown environment 'Pendulun-v1'; did you mean 'Pendulum-v1'"),
        (
            ["train", "MountainCarContinuous-v0", "--width", "9"],
            "--width is an option of PQN; MountainCarCont",
        ),
        (
            ["train", "CartPole-v1", "--actor-width", "9"],
            "--actor-width is an option of SAC; CartPole-v1 has d",
        ),
        (["train", "CartPole-v1", "--minibatches", "5"], "minibatches must be a divisor of copies x rollout"),
        (["train", "ALE/Brakout-v5"], "unknown game 'Brakout'; did you mean 'Breakout'"),
        (["train", AIM, "--steps", "0"], "--steps must be at least 1"),
        (["train", AIM, "--steps", "10"], "--warmup 16 leaves none of the 10 steps to learn from"),
        (["train", AIM, "--batch", "0"], "batch must be at least 1"),
        (["train", AIM, "--batch", "1000000000"], "batch must be at most 1,048,576"),
        (["train", AIM, "--updates", "1000000000"], "updates must be at most 10,000"),
        (["train", AIM, "--actor-width", "1000000000"], "actor_width must be at most 8,192"),
        (["train", AIM, "--steps", "9" * 20], "--steps must be at most 2,147,483,647"),
        (["train", AIM, "--seeds", "100000"], "--seeds must be at most 1,000"),
        (["train", AIM, "--actor-rate", "1e300"], "actor_rate must be at most 3.4e+38"),
        (["train", ""], "an argument is empty"),
        (["train", AIM, "--actor-rate", "-1"], "actor_rate must be positive"),
        (["train", AIM, "--capacity", "1001"], "capacity must be a multiple of copies (16)"),
        (["show", "hoper"], "did you mean 'hopper'?"),
        (["show", "."], "holds no behaviour policies"),
    ],
)
def test_mistakes_are_told_and_leave_nothing(arguments: list[str], why: str, capsys: Said) -> None:
    assert run("behaviours", *arguments) == 2
    assert why in capsys.readouterr().err.replace("\n", " ")
    assert not any(Path.cwd().rglob("*.safetensors"))


def test_a_kill_and_ctrl_c_lose_nothing(tmp_path: Path) -> None:
    task, out = f"toys:{AIM}", tmp_path / "behaviours" / f"toys-{AIM}"
    arguments = ["behaviours", "train", task, *SMALL_SAC, "--episodes", "1", "--steps", "1000000"]
    program = (
        "import sys; from cwbc.behaviours import training; from cwbc.cli.main import main; "
        "training.SAVE_INTERVAL = 0.3; main(sys.argv[1:])"
    )

    def steps_kept() -> int:
        path = out / "learner.safetensors"
        return int(tensor_files.read_description(path)["step"]) if path.exists() else 0

    def cut_off(number: signal.Signals, wait_for: str) -> tuple[int, str]:
        with subprocess.Popen(
            [sys.executable, "-c", program, *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])},
            cwd=tmp_path,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stderr is not None
            said = ""
            for line in process.stderr:
                said += line
                if wait_for in line:
                    while steps_kept() <= 400 and process.poll() is None:
                        time.sleep(0.01)
                    process.send_signal(number)
                    break
            rest = process.stderr.read()
            return process.wait(), said + rest

    cut_off(signal.SIGKILL, "after 1,976 steps")
    killed_at = steps_kept()
    before = [one for one in snapshots.read(out).snapshots if one.steps <= killed_at]
    status, said = cut_off(signal.SIGINT, "after ")
    assert f"resuming from step {killed_at:,}" in said
    assert status == 130
    assert "interrupted; this resumes it:" in said
    stopped = snapshots.read(out)
    assert list(stopped.snapshots[: len(before)]) == before
    assert {path.name for path in stopped.folder.glob("*.safetensors")} == {s.file for s in stopped.snapshots}
    assert not tensor_files.read_description(out / "learner.safetensors")["is_over"]


def test_an_ant_is_trained_and_walks_a_maze(tmp_path: Path, capsys: Said) -> None:
    out = tmp_path / "ant"
    settings = [*SMALL_SAC, "--steps", "440", "--episodes", "1", "--out", str(out)]
    assert run("behaviours", "train", "cwbc/ant-direction-v0", *settings) == 0
    trained = snapshots.read(out)
    assert trained.environment == "cwbc/ant-direction-v0"
    assert [snapshot.steps for snapshot in trained.snapshots] == [0, 440]
    made = ("data", "make", "my/antmaze/umaze-v0", "--behaviours", str(out), "--size", "700")
    assert run(*made) == 0
    data = cwbc.load("my/antmaze/umaze-v0")
    assert data.environment == "d4rl/antmaze-umaze-v2"
    assert data.time_limit == 700
    assert data.observations.shape[1] == 29


def test_the_demo_compares_and_tells_the_story(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    chosen: list[Preset] = []

    def tiny(name: str, preset: Preset, large_images: bool) -> tuple[Method, Training]:
        chosen.append(preset)
        return with_options(*sized(name, preset), {"width": 16, "batch_size": 4})[:2]  # as in test_cli

    monkeypatch.setattr(compare, "DEMO_DATASET", str(write_toy(tmp_path / "toy.hdf5")))
    monkeypatch.setattr("cwbc.cli.planning.sized", tiny)
    assert run("demo", "--steps", "20", "--seeds", "2") == 0
    assert chosen[-1] == "small"
    said = capsys.readouterr().out
    order = [said.index(words) for words in ("method", "OOD retention", "At the dataset's best", "report:")]
    assert order == sorted(order)
    assert "too few seeds for an interval" in " ".join(said[order[2] :].split())
    assert Path("runs/demo/report.html").exists()
