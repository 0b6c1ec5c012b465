"""Own data without a simulator: from a CSV file to a report, a recommendation and a policy."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import TINY, run
from drifting import STEPS, drifting_data

import cwbc
from cwbc.core.methods import Training, sized, with_options
from cwbc.runs import offline
from cwbc.runs.evaluating import evaluate_offline
from cwbc.runs.training import train


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(offline, "FEWEST", 40)
    monkeypatch.setattr(offline, "VALUES", Training(20, batch_size=32))
    monkeypatch.setattr(offline, "CLONE", Training(20, batch_size=4))
    monkeypatch.chdir(tmp_path)


def walk(path: Path) -> Path:
    """The walk as a CSV file."""
    data, rows = drifting_data(30), ["episode,observation,action,reward,terminated,truncated"]
    episodes = np.repeat(np.arange(data.episodes), data.lengths)
    for row in range(data.steps):
        episode = episodes[row]
        is_last = row == data.starts[episode] + data.lengths[episode] - 1
        over = bool(data.terminated[episode] and is_last)
        numbers = (data.observations[row, 0], data.actions[row, 0], data.rewards[row])
        rows.append(
            ",".join([str(episode), *map(str, numbers), str(int(over)), str(int(is_last and not over))])
        )
    path.write_text("\n".join(rows) + "\n")
    return path


def test_from_a_table_to_a_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = walk(tmp_path / "walk.csv"), tmp_path / "out"
    assert run("compare", data, "bc", "rvs", *TINY, "--out", out) == 0
    printed = capsys.readouterr()
    assert "no environment: returns are estimated with a model of the data" in printed.err
    assert "Returns are estimated offline" in printed.out
    summary = json.loads((out / "summary.json").read_text())
    assert summary["dataset"]["environment"] == "offline"
    method = summary["methods"]["rvs"]
    assert len(method["offline"]["support"]) == len(method["offline"]["model_error"]) == len(method["curve"])
    assert isinstance(summary["recommendation"]["reliable"], bool)
    page = (out / "report.html").read_text()
    assert "estimated return" in page
    assert "Held-out episodes with a mean return of" in page
    replays = (out / "rvs" / "replays.csv").read_text()
    assert len(replays.splitlines()) == 1 + 5  # of 30 episodes; a tenth would be too few
    assert (out / "bc" / "replays.csv").read_text() == replays
    (model,) = (out / "offline").iterdir()  # one for both methods
    assert run("export", model, "--format", "numpy") == 2
    assert "holds models of the data for offline evaluation, no policies" in capsys.readouterr().err
    assert cwbc.Policy.load(out / "rvs").spec.horizon == STEPS

    assert run("recommend", out) == 0
    recommended = capsys.readouterr().out
    assert "confirmed" in recommended
    assert "Held-out episodes with a mean return of" in recommended
    assert run("recommend", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["method"] in ("bc", "rvs")

    before = (out / "rvs" / "results.csv").read_bytes()
    assert run("compare", data, "bc", "rvs", *TINY, "--out", out) == 0  # nothing is done again
    assert "already evaluated" in capsys.readouterr().err
    assert run("evaluate", out / "rvs", "--offline", "--episodes", "3", "--overwrite") == 0
    assert not (out / "rvs" / "offline").exists()  # the comparison's model
    assert (out / "rvs" / "results.csv").read_bytes() != before


def test_a_trained_run_is_evaluated_offline(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = walk(tmp_path / "walk.csv"), tmp_path / "run"
    training = [option for option in TINY if "episodes" not in option]
    assert run("train", data, "rvs", *training, "--out", out) == 0
    assert "--offline" in capsys.readouterr().err  # the next command
    assert run("evaluate", out) == 2
    assert "or --offline" in capsys.readouterr().err
    assert run("evaluate", out, "--offline", "--env", "CartPole-v1") == 2
    data.rename(tmp_path / "moved.csv")
    assert run("evaluate", out, "--offline") == 2
    other = walk(tmp_path / "other.csv")
    other.write_text("\n".join(other.read_text().splitlines()[:-6]) + "\n")
    assert run("evaluate", out, "--offline", "--dataset", other) == 2
    assert "is not the data that" in capsys.readouterr().err
    assert run("evaluate", out, "--offline", "--dataset", tmp_path / "moved.csv", "--episodes", "2") == 0
    assert (out / "estimates.csv").exists()


def test_the_progress_is_that_of_all_trainings() -> None:
    data, steps = drifting_data(30), list[int]()
    known = offline.offline_data(data, progress=steps.append)
    assert steps == sorted(steps)
    assert steps[-1] == offline.training_steps(data) == 40 + 40 + 20
    assert known.replays is not None
    assert len(known.replays.logged) == 5

    method, training = with_options(*sized("rvs", "small"), {"steps": 20, "batch_size": 4, "width": 16})[:2]
    policies = train(data, method, training, (0, 1))
    timesteps = list[int]()
    evaluate_offline(policies, known, [data.best], 2, progress=timesteps.append)
    assert timesteps == sorted(timesteps)
    assert timesteps[-1] == STEPS  # after fitted Q evaluation, which takes as long


def test_of_few_episodes_none_is_held_out() -> None:
    data = drifting_data(9)
    assert offline._replays(data, None, {}) is None
    assert offline.training_steps(data) == 40
