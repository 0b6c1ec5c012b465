"""`cwbc data` as users meet it: real files, a real server, real libraries."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from command_line import TINY, run
from hosts import Answer, serving
from tables import FORMATS, columns, write
from toys import ENVIRONMENT, toy_data, write_toy

import cwbc
from cwbc.data import store
from cwbc.data.checks import Recording
from cwbc.data.formats import arrow, assembly, hdf5, minari
from cwbc.data.formats.columns import StepTable

Said = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store"


def d4rl_file(rows: int, observations: int = 11, actions: int = 3, **changes: Any) -> bytes:
    """A small file in D4RL's layout with that many rows, all alike, in episodes of 1000."""
    ends = np.arange(1, rows + 1) % 1000 == 0
    arrays = {
        "observations": np.zeros((rows, observations), np.float32),
        "actions": np.zeros((rows, actions), np.float32),
        "rewards": np.ones(rows, np.float32),
        "terminals": np.zeros(rows, bool),
        "timeouts": ends,
    }
    content = io.BytesIO()
    with h5py.File(content, "w") as file:
        for key, array in (arrays | changes).items():
            file.create_dataset(key, data=array, compression="gzip", compression_opts=1)
    return content.getvalue()


@pytest.fixture(scope="module")
def replay() -> bytes:
    return d4rl_file(402_000)


def only_entry() -> store.Entry:
    (name,) = store.names()
    entry = store.find(name)
    assert entry is not None
    return entry


def test_a_dataset_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def counted(table: StepTable, *rest: Any) -> Recording:
        read.append(table.origin.source)
        return assembly.assemble(table, *rest)

    for module in (arrow, hdf5):
        monkeypatch.setattr(module, "assemble", counted)
    write_toy(tmp_path / "toy.hdf5")
    write(tmp_path / "logs.csv", columns())
    for command in (
        "data check logs.csv",
        "data import logs.csv",
        "data check logs",
        "data show logs",
        "data export logs --format hdf5",
        " ".join(["compare toy.hdf5 bc", *TINY, f"--env={ENVIRONMENT}"]),
    ):
        read.clear()
        assert run(*command.split()) == 0
        assert len(read) == 1, command


def test_sentinels_and_actions_numbered_from_1_are_warned_of(tmp_path: Path, capsys: Said) -> None:
    height = np.array([0.5, -999, 2, 3, -999, 5])
    actions = {"action_0": None, "action_1": None, "action": np.array([1, 2, 3, 1, 2, 3])}
    write(tmp_path / "logs.csv", columns(observation_1=height, **actions))
    assert run("data", "check", "logs.csv") == 0
    said = capsys.readouterr().out
    assert "warning: observation_1 is -999 in 2 rows, far outside the others, 0.5 to 5: line 3 " in said
    assert "warning: action has the values 1 to 3 and never 0; numbers start at 0, so 4 actions" in said


# Own logs


@pytest.mark.parametrize("kind", FORMATS)
def test_logs_of_every_format_are_imported(kind: str, tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / f"logs.{kind}", columns(note=np.arange(6)))
    assert run("data", "import", f"logs.{kind}", "--name", "mine") == 0
    said = capsys.readouterr().err
    assert "not used: note" in said
    assert "warning: 1 of 3 episodes have one step" in said
    assert "observations from observation_0, observation_1" in said
    assert "mine: 3 episodes, 6 steps, returns −0.5 to 10, environment unknown" in said
    data = cwbc.load("mine")
    assert data.returns.tolist() == [6, 10, -0.5]
    assert data.observation_names == ("observation_0", "observation_1")


def test_columns_can_be_named(tmp_path: Path, capsys: Said) -> None:
    renamed = {
        "episode": "run", "step": "tick", "observation_0": "speed", "observation_1": "height",
        "action_0": "left", "action_1": "right", "reward": "paid", "terminated": "fell", "truncated": "cut",
    }  # fmt: skip
    write(tmp_path / "logs.csv", {renamed[name]: column for name, column in columns().items()})
    assert run("data", "import", "logs.csv") == 2
    said = capsys.readouterr().err
    assert (
        "no column for observations (looked for observation, observations, obs, state or observation_*; "
        in said
    )
    assert "(and 2 more: `cwbc data check` lists all)" in said
    options = (
        "--episode=run", "--step=tick", "--observations=speed,height", "--actions=left,right",
        "--reward=paid", "--terminated=fell", "--truncated=cut", "--time-limit=50",
    )  # fmt: skip
    assert run("data", "import", "logs.csv", *options) == 0
    data = cwbc.load("logs")
    assert (data.observation_names, data.action_names) == (("speed", "height"), ("left", "right"))
    assert (data.horizon, data.terminated.tolist()) == (50, [True, False, True])


def test_an_environment_can_be_attached_if_it_fits(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    assert run("data", "import", "logs.csv", "--name=mine", "--env=Hopper-v4") == 2
    assert "does not fit Hopper-v4: it has 2 observation dimensions" in capsys.readouterr().err
    assert run("data", "import", "logs.csv", "--name=mine", "--env=Unheard-v0") == 0
    said = capsys.readouterr().err
    assert "warning: whether the data fits Unheard-v0 cannot be checked here; unknown environment" in said
    assert cwbc.load("mine").environment == "Unheard-v0"
    one = columns(action_0=None, action_1=None, action=np.array([0, 1, 0, 0, 1, 1]))
    write(tmp_path / "discrete.csv", one)
    assert run("data", "import", "discrete.csv", "--env=cwbc-toy-discrete-v0") == 0
    data = cwbc.load("discrete")
    assert (data.action_size, data.time_limit) == (3, 10)


def test_a_discrete_action_beyond_the_environments(tmp_path: Path, capsys: Said) -> None:
    one = columns(action_0=None, action_1=None, action=np.array([0, 1, 0, 5, 1, 1]))
    write(tmp_path / "logs.csv", one)
    for option in ("--action-count=3", "--env=cwbc-toy-discrete-v0"):
        text = "action is outside the discrete range: 5 at line 5 (episode 1); the 3 actions"
        assert run("data", "check", "logs.csv", option) == 2
        assert f"error: {text}" in capsys.readouterr().out
        assert run("data", "import", "logs.csv", option) == 2
        assert text in capsys.readouterr().err


def test_a_name_that_is_taken(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    assert run("data", "import", "logs.csv", "--name=mine") == 0
    assert run("data", "import", "logs.csv", "--name=mine") == 2
    assert "there is a dataset mine already; --overwrite replaces it" in capsys.readouterr().err
    assert run("data", "import", "logs.csv", "--name=mine", "--overwrite") == 0
    assert run("data", "import", "logs.csv", "--name=hopper-medium-v2") == 2
    assert "hopper-medium-v2 is the name of another dataset; choose another --name" in capsys.readouterr().err
    assert run("data", "check", "nothere.csv", "--reward=paid") == 2
    assert "unknown dataset 'nothere.csv': no such file" in capsys.readouterr().out
    assert run("data", "import", "logs.csv", "--name=../mine") == 2
    assert "'../mine' is not a name for a dataset" in capsys.readouterr().err
    write(tmp_path / "my logs 1.csv", columns())
    assert run("data", "import", "my logs 1.csv") == 2
    err = capsys.readouterr().err
    assert "'my logs 1' is not a name for a dataset" in err
    assert "choose another one (of an import, with --name)" in err


# Checks


def test_check_prints_every_problem(tmp_path: Path, capsys: Said) -> None:
    odd = columns(
        observation_0=np.array([0.5, np.nan, np.inf, 3, 4, 5]),
        action_1=np.array([0, 0, 0, 0, 0, np.nan]),
        step=np.array([0, 1, 5, 0, 0, 1]),
    )
    write(tmp_path / "logs.csv", odd)
    assert run("data", "check", "logs.csv") == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "error: observation_0 is not finite: nan at line 3 (episode 0), inf at line 4 (episode 0); "
        "every value must be a finite number",
        "error: action_1 is not finite: nan at line 7 (episode 2); every value must be a finite number",
        "warning: step has gaps: 5 after 1 at line 4 (episode 0); the rewards of missing steps are "
        "missing from the returns",
        "warning: 1 of 3 episodes have one step: line 5 (episode 1); an episode of one step is "
        "rarely meant: are the ends of episodes marked correctly?",
        "logs.csv: 3 episodes, 6 steps; cannot be used: 2 errors",
    ]


def test_a_word_among_numbers_hides_nothing_else(tmp_path: Path, capsys: Said) -> None:
    odd = columns(
        observation_0=np.array([0.5, 1, np.nan, 3, 4, 5]),
        action_0=["-0.5", "oops", "0.25", None, "0.5", "1"],
        reward=np.array([1, 2, 3, 10, np.inf, 0.5]),
    )
    write(tmp_path / "logs.csv", odd)
    assert run("data", "check", "logs.csv") == 2
    lines = capsys.readouterr().out.splitlines()
    assert lines[:4] == [
        "error: action_0 holds text: 'oops' at line 3; expected a number in every row",
        "error: observation_0 is not finite: nan at line 4 (episode 0); every value must be a finite number",
        "error: action_0 is not finite: nan at line 5 (episode 1); every value must be a finite number",
        "error: reward is not finite: inf at line 6 (episode 2); every value must be a finite number",
    ]
    assert lines[-1] == "logs.csv: 3 episodes, 6 steps; cannot be used: 4 errors"
    assert run("data", "import", "logs.csv") == 2
    assert "'oops' at line 3; expected a number in every row (and 3 more" in capsys.readouterr().err


def test_a_word_among_choices_and_what_keeps_the_rest_from_being_read(tmp_path: Path, capsys: Said) -> None:
    one = columns(action_0=None, action_1=None, action=["0", "1", "left", None, "1", "1"])
    write(tmp_path / "logs.csv", one)
    assert run("data", "check", "logs.csv") == 2
    assert capsys.readouterr().out.splitlines() == [
        "error: action holds text: 'left' at line 4; expected a number in every row",
        "error: action has no value: line 5; every step has an action",
        "logs.csv: cannot be used: 2 errors; nothing else could be checked",
    ]
    write(tmp_path / "logs.csv", columns(step=["0", "1", "two", "0", "0", "1"]))
    assert run("data", "check", "logs.csv") == 2
    assert capsys.readouterr().out.splitlines() == [
        "error: step holds text: 'two' at line 4; expected a number in every row",
        "logs.csv: cannot be used: 1 error; nothing else could be checked",
    ]


def test_decimal_commas_and_choices_in_words(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns(reward=["-0,46", "1", "2,5", "0,5", "1,5", "0,1"]))
    assert run("data", "check", "logs.csv") == 2
    assert "reward holds text: '-0,46' at line 2; decimals have a point: -0.46" in capsys.readouterr().out
    write(tmp_path / "logs.csv", columns(action_0=None, action_1=None, action=["left", "right"] * 3))
    assert run("data", "check", "logs.csv") == 2
    assert "'left' at line 2; expected a number, or a list" in (out := capsys.readouterr().out)
    assert "number the discrete actions 0, 1, ..." in out


def test_returns_among_which_there_is_nothing_to_choose(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns(reward=np.array([1, 1, 1, 3, 3, 0])))
    shown = "warning: all 3 episodes return 3; conditioning on the return has nothing to learn; plain bc is"
    assert run("data", "check", "logs.csv") == 0
    assert shown in capsys.readouterr().out
    assert run("data", "import", "logs.csv", "--name=mine") == 0
    assert shown in capsys.readouterr().err
    options = ("--preset=small", "--device=cpu", "--seeds=1", "--steps=5", "--width=8")
    assert run("train", "mine", "rvs", *options) == 0
    assert shown in capsys.readouterr().err
    assert run("train", "mine", "bc", *options) == 0
    assert "warning" not in capsys.readouterr().err


def test_ends_that_look_like_a_time_limit(tmp_path: Path, capsys: Said) -> None:
    rows = np.arange(40)
    same = {
        "episode": rows // 4, "observation_0": rows / 7, "action_0": np.sin(rows), "reward": rows,
        "done": rows % 4 == 3,
    }  # fmt: skip
    write(tmp_path / "logs.csv", same)
    shown = "10 of 10 episodes end after exactly 4 steps; if that is a time limit, import with --time-limit 4"
    assert run("data", "check", "logs.csv") == 0
    assert shown in capsys.readouterr().out
    assert run("data", "check", "logs.csv", "--time-limit=4") == 0
    assert "limit" not in capsys.readouterr().out
    write(tmp_path / "logs.csv", same | {"done": rows % 4 == 2})  # no end at the last steps: none is known
    assert run("data", "check", "logs.csv") == 0
    assert "limit" not in capsys.readouterr().out


def test_check_warns_of_what_is_seldom_meant(tmp_path: Path, capsys: Said) -> None:
    odd = columns(
        observation_1=np.full(6, 4.0),
        action_0=np.array([0, 0, 2.5, 0, 0, -7]),
        reward=np.ones(6),
    )
    write(tmp_path / "logs.parquet", odd)
    assert run("data", "check", "logs.parquet", "--places=1") == 0
    out = capsys.readouterr().out
    assert "warning: action_0 is outside [-1, 1]: 2.5 at row 2 (episode 0) and 1 more; " in out
    assert "warning: 1 of 3 episodes have one step: row 3 (episode 1); " in out
    assert "warning: reward is 1 in every row; " in out
    assert "warning: observation_1 is 4 in every row; " in out
    assert out.splitlines()[-1] == "logs.parquet: 3 episodes, 6 steps; can be used, 4 warnings"


def test_check_goes_on_after_an_error(tmp_path: Path, capsys: Said) -> None:
    odd = columns(
        step=np.array([0, 1, 1, 0, 0, 1]),
        reward=np.array([0, np.nan, 0, 1, 2, 3]),
        action_0=None,
        action_1=None,
        action=np.array([0, 1, -1, 1, 0, 0]),
    )
    write(tmp_path / "logs.csv", odd)
    assert run("data", "check", "logs.csv") == 2
    lines = capsys.readouterr().out.splitlines()
    starts = (
        "error: step repeats: 1 (as at line 3) at line 4",
        "error: reward is not finite",
        "error: action is outside the disc",
    )
    for start in starts:
        assert any(line.startswith(start) for line in lines)
    assert lines[-1] == "logs.csv: 3 episodes, 6 steps; cannot be used: 3 errors"


def test_check_tells_of_an_episode_without_an_end(tmp_path: Path, capsys: Said) -> None:
    done = np.array([0, 0, 1, 0, 0, 0])
    write(tmp_path / "logs.csv", columns(episode=None, step=None, terminated=None, truncated=None, done=done))
    assert run("data", "check", "logs.csv") == 0
    out = capsys.readouterr().out
    assert "warning: the last 3 steps are an episode without an end; they are excluded" in out
    assert "logs.csv: 1 episode, 3 steps; can be used, 2 warnings" in out


def test_check_in_json(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns(reward=np.array([0, 0, 0, 0, np.nan, 0]), user=np.arange(6)))
    assert run("data", "check", "logs.csv", "--json") == 2
    shown = json.loads(capsys.readouterr().out)
    assert (shown["usable"], shown["ignored_columns"]) == (False, ["user"])
    issue = shown["issues"][0]
    assert (issue["severity"], issue["column"]) == ("error", "reward")
    assert issue["locations"] == [{"row": 6, "unit": "line", "episode": "2", "step": None, "value": "nan"}]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"reward": ["a"] * 6}, "error: reward holds text: 'a' at line 2; expected one number per row"),
        ({"reward": None, "observation_0": ["x"] * 6}, "error: no column for the reward"),
        (
            {"step": np.array([0, 0, 2, 0, 0, 1])},
            "error: step repeats: 0 (as at line 2) at line 3 (episode 0)",
        ),
    ],
)
def test_check_of_what_cannot_be_read(
    tmp_path: Path, capsys: Said, changes: dict[str, Any], text: str
) -> None:
    write(tmp_path / "logs.csv", columns(**changes))
    assert run("data", "check", "logs.csv") == 2
    assert text in capsys.readouterr().out


def test_check_of_garbage(tmp_path: Path, capsys: Said) -> None:
    (tmp_path / "logs.npz").write_bytes(b"PK\x03\x04garbage")
    assert run("data", "check", "logs.npz") == 2
    error, verdict = capsys.readouterr().out.splitlines()
    assert error.startswith("error: logs.npz cannot be read as NPZ (truncated, damaged, or")
    assert verdict == "logs.npz: cannot be used: 1 error; nothing else could be checked"


def test_check_finds_a_damaged_entry_of_the_store(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    assert run("data", "import", "logs.csv", "--name=mine") == 0
    entry = only_entry()
    content = entry.path.read_bytes()
    entry.path.write_bytes(content.replace(np.float32(-2.5).tobytes(), np.float32(2.5).tobytes()))
    for command in (
        ("data", "show", "mine"),
        ("train", "mine", "rvs"),
        ("data", "export", "mine", "--format=hdf5"),
    ):
        assert run(*command) == 2
        assert "dataset mine is damaged" in capsys.readouterr().err
    assert run("data", "check", "mine") == 2
    assert "error: dataset mine is damaged" in capsys.readouterr().out


# Downloads


def test_a_download_is_verified_and_kept(replay: bytes, capsys: Said) -> None:
    with serving(replay) as host:
        assert run("data", "download", "hopper-medium-replay-v2", "--url", host.url) == 0
    said = capsys.readouterr().err
    assert (
        "d4rl/hopper/medium-replay-v2: 402 episodes, 402,000 steps, returns 1,000 to 1,000, environment"
        in said
    )
    data = cwbc.load("hopper-medium-replay-v2")
    assert (data.environment, data.horizon, data.task.expert_return) == ("Hopper-v4", 1000, 3200)
    entry = only_entry()
    assert entry.source == host.url
    assert [path.name for path in entry.path.parent.glob(".*")] == [".lock"]
    assert run("data", "download", "d4rl/hopper/medium-replay-v2") == 2
    assert "there is a dataset d4rl/hopper/medium-replay-v2 already" in capsys.readouterr().err


def test_a_later_download_is_compared_with_the_first(replay: bytes, capsys: Said) -> None:
    command = ["data", "download", "hopper-medium-replay-v2", "--overwrite", "--url"]
    with serving(replay) as host:
        assert run(*command, host.url) == 0
        said = capsys.readouterr().err
        assert (
            "D4RL publishes no hashes: dimensions and number of steps are right; later downloads are" in said
        )
        first = only_entry()
        assert first.download_hash == hashlib.sha256(replay).hexdigest()
        assert run(*command, host.url) == 0
        assert "it equals the first download (SHA-256" in capsys.readouterr().err
        # The same data in other bytes is the same; other data is not.
        host.body = d4rl_file(402_000, extra=np.zeros(3))
        assert run(*command, f"{host.url}?packed") == 0
        assert only_entry().download_hash == first.download_hash
        capsys.readouterr()
        host.body = d4rl_file(402_000, rewards=np.zeros(402_000, np.float32))
        assert run(*command, f"{host.url}?other") == 2
    said = capsys.readouterr().err
    assert "this is not the hopper-medium-replay-v2 that was downloaded first, on 20" in said
    assert "`cwbc data remove d4rl/hopper/medium-replay-v2` before downloading it" in said
    assert cwbc.load("hopper-medium-replay-v2").content_hash == first.content_hash
    assert not list(first.path.parent.glob(".data*"))


def test_a_download_of_far_more_than_was_published(replay: bytes, capsys: Said) -> None:
    with serving(replay) as host:
        host.answers = [Answer(headers=(("Content-Length", str(10**12)),), length=False)]
        assert run("data", "download", "hopper-medium-replay-v2", "--url", host.url) == 2
    assert "has more than the 151,708,914 bytes that are expected" in capsys.readouterr().err


def test_a_disk_that_fills_up_is_named(
    replay: bytes, place: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(file: int) -> None:
        if os.fstat(file).st_size > 1000:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with serving(replay) as host:
        assert run("data", "download", "hopper-medium-replay-v2", "--url", host.url) == 1
    part = place / "d4rl" / "hopper" / "medium-replay-v2" / ".data.part"
    assert f"cwbc: {part}: No space left on device" in capsys.readouterr().err


def test_a_broken_download_goes_on_with_the_same_command(
    replay: bytes, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: None)
    with serving(replay) as host:
        host.answers = [Answer(cut=len(replay) // 2), Answer(status=503)]
        assert run("data", "download", "hopper-medium-replay-v2", "--url", host.url) == 2
        assert "bytes arrived: the same command resumes the download" in capsys.readouterr().err
        assert store.names() == []
        host.answers, host.requests = [Answer()], []
        assert run("data", "download", "hopper-medium-replay-v2", "--url", host.url) == 0
        assert host.ranges == [f"bytes={len(replay) // 2}-"]
    assert cwbc.load("hopper-medium-replay-v2").steps == 402_000


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (d4rl_file(5000), "it has 5,000 steps in finished episodes, expected about 402,000"),
        (d4rl_file(402_000, observations=17, actions=6), "17 observation dimensions, expected 11"),
        (d4rl_file(402_000)[:-5000], "cannot be read as HDF5 (truncated, damaged, or another format)"),
        (b"<html>moved</html>", "cannot be read as HDF5"),
        (d4rl_file(402_000, rewards=np.full(402_000, np.nan)), "rewards is not finite: nan at row 0"),
    ],
    ids=["another count", "another robot", "truncated at the source", "a page", "not a number"],
)
def test_a_wrong_file_is_refused_and_not_kept(content: bytes, text: str, capsys: Said) -> None:
    with serving(content) as host:
        assert run("data", "download", "hopper-medium-replay-v2", "--url", host.url) == 2
        said = capsys.readouterr().err
        assert said.startswith(f"cwbc: {host.url}: ")
        assert text in said
    assert store.names() == []
    assert not list(store.root().rglob(".data.part*"))


def test_a_mirror_takes_the_place_of_the_host(
    replay: bytes, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(replay) as host:
        monkeypatch.setenv("CWBC_D4RL_MIRROR", host.url.removesuffix("/set.hdf5"))
        host.answers = [Answer(status=404)]
        assert run("data", "download", "hopper-medium-replay-v2") == 2
        said = capsys.readouterr().err
        assert "/gym_mujoco_v2/hopper_medium_replay-v2.hdf5 answered 404" in said
        assert "--url URL" in said


def test_antmaze_ends_at_the_goal() -> None:
    rows = 1_000_000
    rewards, timeouts = np.zeros(rows, np.float32), np.arange(1, rows + 1) % 1000 == 0
    rewards[500:505] = 1  # some steps at the goal, away, and back at the very end
    rewards[990:1000] = 1
    rewards[1999] = 1
    changes = {"rewards": rewards, "terminals": rewards > 0, "timeouts": timeouts}
    with serving(d4rl_file(rows, 29, 8, **changes)) as host:
        assert run("data", "download", "antmaze-umaze-v2", "--url", host.url) == 0
    data = cwbc.load("antmaze-umaze-v2")
    assert data.lengths[:3].tolist() == [501, 1000, 1000]
    assert data.returns[:3].tolist() == [1, 1, 0]
    assert data.terminated[:3].tolist() == [True, True, False]
    assert (data.episodes, data.environment, data.time_limit) == (1000, "d4rl/antmaze-umaze-v2", 700)


def test_what_cannot_be_downloaded(capsys: Said) -> None:
    assert run("data", "download", "hoper-medium-v2") == 2
    assert "unknown dataset 'hoper-medium-v2'; did you mean 'hopper-medium-v2'" in capsys.readouterr().err
    assert run("data", "download", "hopper-medium-v2", "--url", "ftp://somewhere/x") == 2
    assert "an address starts with http:// or https://" in capsys.readouterr().err


# A look


def test_show_prints_numbers_and_advice(tmp_path: Path, capsys: Said) -> None:
    write_toy(tmp_path / "toy.hdf5")
    assert run("data", "show", "toy.hdf5", "--plot", "toy.png", "--bins=5", "--percentile=50") == 0
    out = capsys.readouterr().out
    assert "60, 10 steps each; 600 steps in all" in out
    assert "+w  samples by return: 5 bins" in out
    assert "+c  regularizes 30 of 60 episodes" in out
    assert "cwbc compare toy.hdf5 rvs rvs+cwbc" in out
    assert (tmp_path / "toy.png").read_bytes().startswith(b"\x89PNG")
    assert run("data", "show", "toy.hdf5", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["episodes"], shown["returns"]["best"]) == (60, 5.0)
    assert shown["advice"]
    assert run("data", "show", "toy.hdf5", "--bins=0") == 2
    assert "bins must be at least 1; got 0" in capsys.readouterr().err
    assert run("data", "check", "toy.hdf5", "--time-limit=4000000000") == 2
    assert "--time-limit must be from 1 to 2,147,483,647; got 4000000000" in capsys.readouterr().out
    assert run("data", "show", "") == 2
    assert "an argument is empty; `cwbc data show --help` describes it" in capsys.readouterr().err
    assert run("data", "show", "toy.hdf5", "--plot=x.gif") == 2
    capsys.readouterr()
    (tmp_path / "taken.png").mkdir()
    assert run("data", "show", "toy.hdf5", "--plot=taken.png") == 2
    assert "taken.png cannot be written (Is a directory); give another --plot" in capsys.readouterr().err


# Export


def test_export_as_hdf5(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    assert run("data", "export", "logs.csv", "--format=hdf5") == 0
    assert cwbc.load("logs.hdf5").content_hash == cwbc.load("logs.csv").content_hash
    assert run("data", "export", "logs.csv", "--format=hdf5") == 2
    assert "logs.hdf5 exists; --overwrite replaces it" in capsys.readouterr().err
    assert run("data", "export", "logs.csv", "--format=hdf5", "--overwrite", "--out=logs.hdf5") == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_file()) == ["logs.csv", "logs.hdf5"]


def test_export_to_places_that_are_none(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    for to, text in (
        (".", ". is a folder; --to names"),
        ("nowhere/x.hdf5", "nowhere is no folder; --to names"),
    ):
        assert run("data", "export", "logs.csv", "--format=hdf5", "--overwrite", "--to", to) == 2
        assert text in capsys.readouterr().err
    (tmp_path / ".x.hdf5.tmp").mkdir()  # as good as a folder in which nothing may be written
    assert run("data", "export", "logs.csv", "--format=hdf5", "--to=x.hdf5") == 2
    assert capsys.readouterr().err.endswith("x.hdf5 cannot be written (Is a directory); give another --to\n")


def test_export_as_minari_and_back(tmp_path: Path) -> None:
    write(tmp_path / "logs.csv", columns())
    assert run("data", "import", "logs.csv", "--name=mine") == 0
    assert run("data", "export", "mine", "--format=minari") == 0
    assert cwbc.load("mine-v0").content_hash == cwbc.load("mine").content_hash
    assert run("data", "import", "mine-v0", "--name=again") == 0
    assert cwbc.load("again").content_hash == cwbc.load("mine").content_hash


# Training on all of them


@pytest.mark.usefixtures("no_pictures")
def test_compare_takes_a_minari_id_a_table_a_file_and_a_name_alike(tmp_path: Path) -> None:
    data = toy_data(full_length=True)
    write_toy(tmp_path / "toy.hdf5")
    minari.export(data, "toy-v0")
    frame: dict[str, Any] = {"episode": np.repeat(np.arange(data.episodes), data.lengths)}
    frame |= {f"observation_{i}": data.observations[:, i] for i in range(2)}
    frame |= {"action_0": data.actions[:, 0], "reward": data.rewards}
    write(tmp_path / "toy.parquet", frame)
    assert run("data", "import", "toy.parquet", "--name=toy", "--env", ENVIRONMENT) == 0
    results = []
    for number, dataset in enumerate(("toy.hdf5", "toy-v0", "toy.parquet", "toy")):
        out = tmp_path / f"out{number}"
        assert run("compare", dataset, "rvs+cwbc", *TINY, "--env", ENVIRONMENT, "--out", out) == 0
        results.append((out / "results.csv").read_text())
    assert results[0] == results[1] == results[2] == results[3]


def test_training_needs_no_environment(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    options = ("--preset=small", "--device=cpu", "--seeds=1", "--steps=5", "--width=8")
    assert run("data", "import", "logs.csv", "--name=mine") == 0
    assert run("train", "mine", "rvs+cwbc", *options) == 0
    policy = cwbc.Policy.load(tmp_path / "runs" / "mine" / "rvs+cwbc")
    policy.begin(target=10.0)
    assert policy.act(np.zeros(2)).shape == (2,)
    names = ["observation_0", "observation_1"]
    assert list(policy.observation_names) == names
    config = json.loads((tmp_path / "runs" / "mine" / "rvs+cwbc" / "config.json").read_text())
    assert config["observation_names"] == names
    assert run("evaluate", "runs/mine/rvs+cwbc") == 2
    assert "names no environment to act in; give --env ID, or --offline" in capsys.readouterr().err


# What the store may remove


def test_importing_leaves_the_files_of_others_alone(place: Path, tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "a.csv", columns())
    (place / "cart").mkdir(parents=True)
    (place / "cart" / "precious.hdf5").write_bytes(b"precious")
    assert run("data", "import", "a.csv", "--name", "cart") == 2
    assert "has files that are not the store's (precious.hdf5)" in capsys.readouterr().err
    assert (place / "cart" / "precious.hdf5").read_bytes() == b"precious"


def test_a_dataset_is_removed(place: Path, tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "a.csv", columns())
    assert run("data", "import", "a.csv", "--name", "mine/cart") == 0
    size = sum(file.stat().st_size for file in (place / "mine" / "cart").iterdir())
    capsys.readouterr()
    assert run("data", "remove", "mine/cart") == 0
    assert f"removed mine/cart: {size:,} bytes from {place / 'mine' / 'cart'}" in capsys.readouterr().err
    assert list(place.iterdir()) == []
    assert (tmp_path / "a.csv").exists()


def test_what_cannot_be_removed(place: Path, tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "a.csv", columns())
    assert run("data", "import", "a.csv", "--name", "cart") == 0
    minari.export(cwbc.load("cart"), "cart-v0")
    for name, text in (
        ("crat", "the store has no dataset 'crat'; did you mean 'cart'?"),
        ("a.csv", "a.csv is a path; only datasets of the store are removed, by their names"),
        ("cart-v0", "cart-v0 is in Minari's own folder, not in the store: "),
        ("hopper-medium-v2", "the store has no dataset 'hopper-medium-v2'; known: cart"),
    ):
        capsys.readouterr()
        assert run("data", "remove", name) == 2
        assert text in capsys.readouterr().err
    assert store.names() == ["cart"]


@pytest.mark.parametrize("identity", ["../../../../ESCAPED", "{tmp}/ESCAPED", "a/../../../../ESCAPED", "\0"])
def test_a_minari_dataset_does_not_choose_where_a_run_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, identity: str
) -> None:
    folder = minari.export(toy_data(), "toy-v0")
    metadata = folder / "data" / "metadata.json"
    identity = identity.format(tmp=tmp_path)
    metadata.write_text(json.dumps(json.loads(metadata.read_text()) | {"dataset_id": identity}))
    planned: list[Path] = []

    def stop(self: Any, data: Any, directories: list[Path]) -> None:
        planned.extend(directories)
        raise cwbc.InputError("far enough")

    monkeypatch.setattr("cwbc.cli.planning.Plan.check", stop)
    assert run("train", str(folder), "bc", "--preset=small", "--device=cpu") == 2
    (directory,) = planned
    assert (tmp_path / directory).resolve().is_relative_to(tmp_path / "runs")
    assert "\0" not in str(directory)


def test_an_action_count_beyond_all_reason(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns(action_0=None, action_1=None, action=np.arange(6) % 2))
    for verb in ("check", "import"):
        assert run("data", verb, "logs.csv", "--action-count", str(10**12)) == 2
        said = capsys.readouterr()
        assert "--action-count must be from 1 to 65,536; got 1000000000000" in said.out + said.err
    assert store.names() == []
