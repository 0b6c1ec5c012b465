"""`cwbc video`, reports that embed videos, and `cwbc demo --game`, as users meet them."""

from __future__ import annotations

import base64
import dataclasses
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from command_line import TINY, run
from numpy.typing import NDArray
from pixels import BEST, PIXELS, pixel_data
from toys import ENVIRONMENT, HORIZON, Toy, write_toy
from videos import decoded

import cwbc
from cwbc import behaviours
from cwbc.cli.video import three_targets
from cwbc.data import store
from cwbc.runs.run_directory import VIDEO

SEEN = "cwbc-toy-seen-v0"
Said = pytest.CaptureFixture[str]


class SeenToy(Toy):
    """The toy with pictures: its noise as two gray levels."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(self, render_mode: str | None = None, missing: str = "") -> None:
        super().__init__()
        self.render_mode, self._missing = render_mode, missing

    def step(self, action: Any) -> Any:
        self._last = super().step(action)[0]
        return self._last, float(np.sum(action)), False, False, {}

    def reset(self, **options: Any) -> Any:
        self._last, facts = super().reset(**options)
        return self._last, facts

    def render(self) -> NDArray[np.uint8]:
        assert self.render_mode == "rgb_array"
        if self._missing:
            raise ModuleNotFoundError(self._missing)
        levels = np.clip(128 + 40 * self._last, 0, 255).astype(np.uint8)
        return np.broadcast_to(levels[None, :, None], (100, 2, 3)).repeat(60, axis=1)


for _name, _kwargs in ((SEEN, {}), ("cwbc-toy-unseen-v0", {"missing": "pygame is not installed"})):
    gymnasium.register(_name, entry_point=SeenToy, max_episode_steps=HORIZON, kwargs=_kwargs)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished comparison of two methods."""
    root = tmp_path_factory.mktemp("compared")
    data = write_toy(root / "toy.hdf5", environment=SEEN)
    assert run("compare", data, "bc", "rvs", *TINY, "--out", root / "out") == 0
    return root / "out"


@pytest.fixture
def out(compared: Path, tmp_path: Path) -> Path:
    return shutil.copytree(compared, tmp_path / "out")


def frames_of(path: Path) -> NDArray[np.uint8]:
    """The frames of a video. [frame, height, width, 3]"""
    return decoded(path.read_bytes())[0]


def test_a_video_shows_the_first_episode_of_the_evaluation(out: Path, capsys: Said) -> None:
    targets = ("--targets=1,2.5,4", "--device=cpu")
    assert run("video", out / "rvs", *targets) == 0
    said = capsys.readouterr()
    path = out / "rvs" / VIDEO
    assert f"video: {path} (11 frames" in said.out
    sweep = cwbc.evaluate(out / "rvs", targets=[1, 2.5, 4], episodes=1)
    for target, achieved in zip((1, 2.5, 4), sweep.returns[0, :, 0].tolist(), strict=True):
        (line,) = (line for line in said.err.splitlines() if line.startswith(f"target {target}:"))
        assert float(line.split()[3].replace("−", "-")) == pytest.approx(achieved, rel=1e-3)
        assert line.endswith(f"in {HORIZON} steps")
    frames = frames_of(path)
    assert frames.shape == (HORIZON + 1, 46 + 300, 3 * 360 + 2 * 12, 3)  # pictures of 100 x 120, enlarged
    for before, after in zip(frames[:-1, 46:], frames[1:, 46:], strict=True):
        assert (before != after).any()
    columns = np.split(frames[:, 60], [360 + 12, 2 * (360 + 12)], axis=1)  # all see the same noise
    np.testing.assert_array_equal(columns[0][:, :360], columns[2])
    written = path.read_bytes()
    assert run("video", out / "rvs", *targets, "--overwrite") == 0
    assert path.read_bytes() == written
    assert run("video", out / "rvs", *targets, "--seed=1", "--out", out / "new" / "one.png") == 0
    assert (frames_of(out / "new" / "one.png")[:, 46:] != frames[:, 46:]).any()


@pytest.mark.parametrize(
    ("low", "best", "targets"),
    [
        (-21.0, 21.0, (-7.0, 7.0, 21.0)),
        (-403.0, 3761.0, (1000.0, 2400.0, 3761.0)),
        (0.0, 2e-4, (7e-5, 1.3e-4, 2e-4)),
        (5.0, 5.0, (5.0,)),
    ],
)
def test_the_default_targets_are_round(low: float, best: float, targets: tuple[float, ...]) -> None:
    assert three_targets(low, best) == pytest.approx(targets)


@pytest.mark.usefixtures("no_pictures")
def test_reports_embed_the_videos_of_their_runs(out: Path, capsys: Said) -> None:
    assert "<h2>Videos" not in (out / "report.html").read_text()
    assert run("video", out, "--device=cpu") == 0  # of both methods; three targets
    assert f"`cwbc report {out}` writes its page again" in capsys.readouterr().err
    assert frames_of(out / "rvs" / VIDEO).shape[2] > 3 * 300 > frames_of(out / "bc" / VIDEO).shape[2]
    assert run("report", out) == 0
    page = (out / "report.html").read_text()
    assert "<h2>Videos" in page
    for method in ("bc", "rvs"):
        content = base64.b64encode((out / method / VIDEO).read_bytes()).decode()
        assert page.count(f'src="data:image/png;base64,{content}"') == 1
        assert f"<summary>{method} on " in page
    assert run("report", out / "rvs") == 0
    alone = (out / "rvs" / "report.html").read_text()
    assert f'<a href="{VIDEO}">' in alone
    assert alone.count("data:image/png;base64") == 1
    # Other targets are other results of the same policies, other settings are other policies.
    assert run("evaluate", out / "rvs", "--targets=1,2", "--episodes=1", "--device=cpu", "--overwrite") == 0
    assert (out / "rvs" / VIDEO).exists()
    data = json.loads((out / "rvs" / "config.json").read_text())["notes"]["dataset"]
    again = ("compare", data, "rvs", *TINY, "--out", out)
    assert run(*again, "--learning-rate=0.01", "--overwrite") == 0
    assert not (out / "rvs" / VIDEO).exists()
    assert "<h2>Videos" not in (out / "report.html").read_text()


def test_a_grid_report_embeds_them_too(tmp_path: Path, out: Path) -> None:
    data = json.loads((out / "rvs" / "config.json").read_text())["notes"]["dataset"]
    options = {"steps": 20, "width": 16, "batch_size": 4}
    variants = [cwbc.Variant("plain", "rvs", options)]
    cells = cwbc.grid(data, variants, cwbc.Scale("small", seeds=2, episodes=2), targets=[1.0, 5.0])
    results = cwbc.run(cells, tmp_path / "cells")
    (directory,) = (outcome.directory for outcome in results.outcomes)
    assert run("video", directory, "--device=cpu", "--targets=2") == 0
    page = cwbc.report(results, tmp_path / "report").read_text()
    assert base64.b64encode((directory / VIDEO).read_bytes()).decode() in page
    assert "plain on " in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--env", ENVIRONMENT], f"{ENVIRONMENT} cannot be drawn: it is no robot of MuJoCo, observes no"),
        (["--env", "cwbc-toy-unseen-v0"], "cwbc-toy-unseen-v0 cannot be drawn: pygame is not installed"),
        (["--env", "Toy-v9"], "unknown environment 'Toy-v9'"),
        (["--env", "HalfCheetah-v5"], "the policy does not fit HalfCheetah-v5"),
        (["--seed=7"], "no seed 7; trained were 0, 1"),
        (["--targets=1,2,3,4,5,6,7"], "--targets must be at most 6 numbers; got 7"),
        (["--targets=few"], "--targets takes numbers"),
        (["--out=video.mp4"], "--out video.mp4 must end in .png"),
    ],
)
def test_what_cannot_be_filmed(out: Path, capsys: Said, options: list[str], message: str) -> None:
    assert run("video", out / "rvs", "--device=cpu", *options) == 2
    assert message in capsys.readouterr().err
    assert not (out / "rvs" / VIDEO).exists()


def test_a_video_needs_a_run_with_an_environment(out: Path, capsys: Said) -> None:
    assert run("video", out / "nothing") == 2
    assert "no such run" in capsys.readouterr().err
    assert run("video", out, "--out=one.png") == 2
    assert "holds 2 runs; --out takes the video of one" in capsys.readouterr().err
    config = json.loads((out / "rvs" / "config.json").read_text())
    config["dataset"]["environment"] = None
    (out / "rvs" / "config.json").write_text(json.dumps(config))
    (out / "rvs" / "summary.json").unlink()
    assert run("video", out / "rvs") == 2
    assert "names no environment to act in; a video needs one: give --env ID" in capsys.readouterr().err
    assert run("video", out / "rvs", "--env", SEEN, "--targets=1", "--device=cpu") == 0
    assert run("video", out / "rvs", "--env", SEEN, "--targets=1", "--device=cpu") == 2
    assert f"{VIDEO} exists; --overwrite replaces it" in capsys.readouterr().err


def test_a_video_needs_pillow(out: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert run("video", out / "rvs", "--device=cpu") == 2
    assert "pip install 'cwbc[plots]'" in capsys.readouterr().err


def test_the_demo_of_a_game_ends_with_a_video(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Said
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    assert run("demo", "--game", "pnog") == 2
    assert "unknown game 'pnog'; did you mean 'pong'?" in capsys.readouterr().err
    monkeypatch.setattr(behaviours, "ZOO", tmp_path)
    assert run("demo", "--game", "pong") == 2
    assert "`cwbc behaviours train ALE/Pong-v5` trains some" in capsys.readouterr().err
    assert not Path("runs").exists()
    # A dataset of that name, with a task in pixels instead of the game.
    name = "cwbc/pong/replay-v0"
    with store.place(name, overwrite=False, wait=False) as folder:
        store.write(dataclasses.replace(pixel_data(), name=name, environment=PIXELS), folder, "a test")
    assert run("demo", "--game", "pong", "--steps=20", "--device=cpu") == 0
    said = capsys.readouterr()
    assert said.out.index("video:") < said.out.index("report:")
    root = Path("runs/demo-pong")
    frames = frames_of(root / "rvs+cwbc" / VIDEO)
    assert frames.shape == (5, 46 + 240, 3 * 240 + 2 * 12, 3)  # images of 10 x 10, enlarged 24 times
    assert (frames[:, 46:, :240].reshape(5, -1) == 255).sum(axis=1).tolist() == [3 * 24 * 24] * 5
    content = base64.b64encode((root / "rvs+cwbc" / VIDEO).read_bytes()).decode()
    assert content in (root / "report.html").read_text()
    targets = {line.split(",")[2] for line in (root / "results.csv").read_text().splitlines()[1:]}
    assert sorted(map(float, targets)) == [1.0, 2.0, BEST]
    assert run("demo", "--game", "pong", "--steps=20", "--device=cpu") == 0  # nothing is done again
    assert "video:" not in capsys.readouterr().out
