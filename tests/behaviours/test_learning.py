"""The whole loop on environments that take no time: learning, snapshots, resuming, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from toys import AIM

from cwbc import checkpoints
from cwbc.behaviours import series
from cwbc.behaviours.collecting import Collector
from cwbc.behaviours.learning import train
from cwbc.behaviours.rollouts import measure
from cwbc.behaviours.sac import Settings
from cwbc.behaviours.series import EVALUATION_SEED, Snapshot
from cwbc.errors import InputError
from cwbc.files import locked

SETTINGS = Settings(
    copies=8,
    updates=4,
    batch=64,
    capacity=2000,  # of all replays here, and those of the commands' tests: another size compiles anew
    warmup=400,
    actor_width=16,
    critic_width=32,
    actor_rate=3e-3,
    critic_rate=3e-3,
)


def until(step: int) -> dict[str, Any]:
    """What stops a training once it has come so far."""
    seen = [0]
    return {"progress": seen.append, "should_stop": lambda: seen[-1] >= step}


def test_a_learner_finds_the_mark_and_leaves_snapshots(tmp_path: Path) -> None:
    told: list[int] = []
    reported: list[tuple[int, Snapshot]] = []
    done = train(
        AIM,
        SETTINGS,
        (3, 4),
        2800,
        tmp_path,
        episodes=20,
        command="cwbc behaviours train",
        progress=told.append,
        report=lambda *one: reported.append(one),
    )
    assert done == told[-1] == 2800
    assert not (tmp_path / "replay.npy").exists()
    for seed in (3, 4):
        own = series.read(tmp_path / f"seed-{seed}")
        # The beginning, then 1000, 1120, 1254, ..., and the end.
        assert [one.steps for one in own.snapshots[:4]] == [0, 1000, 1120, 1256]
        assert own.snapshots[-1].steps == 2800
        assert own.snapshots == tuple(snapshot for of, snapshot in reported if of == seed)
        assert (own.seed, own.episodes, own.command) == (seed, 20, "cwbc behaviours train")
        assert own.snapshots[-1].deterministic.mean > 4 > own.snapshots[0].deterministic.mean  # of 5 at best
        for sampled in (False, True):
            again = measure(AIM, [own.behaviour(own.snapshots[-1])], 20, EVALUATION_SEED, sampled).mean()
            kept = own.snapshots[-1].stochastic if sampled else own.snapshots[-1].deterministic
            assert again == pytest.approx(kept.mean, rel=1e-5)


def test_a_stopped_training_goes_on_with_all_that_it_had_seen(tmp_path: Path) -> None:
    assert train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1, **until(1200)) == 1200
    replay = np.load(tmp_path / "replay.npy", mmap_mode="r")
    assert (replay[:, :1200, 4] != 0).all()  # where the next mark stands
    assert not replay[:, 1200:].any()
    before = series.read(tmp_path / "seed-3").snapshots
    told: list[int] = []
    assert train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1, progress=told.append) == 2000
    assert told[0] == 1208
    after = series.read(tmp_path / "seed-3")
    assert after.snapshots[: len(before)] == before
    assert after.snapshots[-1].stochastic.mean > before[0].stochastic.mean
    assert train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1) == 2000  # nothing is left to do
    with pytest.raises(InputError, match=r"made with seeds \[3, 4\], not \[3, 5\]; give another --out"):
        train(AIM, SETTINGS, (3, 5), 2000, tmp_path, episodes=1)
    with pytest.raises(InputError, match="trained to its end, 2,000 steps"):
        train(AIM, SETTINGS, (3, 4), 2400, tmp_path, episodes=1)
    # The same training is never begun anew.
    assert train(AIM, SETTINGS, (3, 4), 800, tmp_path, episodes=1, overwrite=True) == 2000


def test_what_came_after_the_checkpoint_is_dropped(tmp_path: Path) -> None:
    assert train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1, should_stop=lambda: True) == 8
    folder = tmp_path / "seed-3"
    (folder / "000000500.safetensors").write_bytes(b"of a run that was killed")
    (folder / "mine.safetensors").write_bytes(b"of somebody else")
    train(AIM, SETTINGS, (3, 4), 480, tmp_path, episodes=1)
    names = {path.name for path in folder.glob("*.safetensors")}
    assert names == {"000000000.safetensors", "000000480.safetensors", "mine.safetensors"}


def test_behaviours_without_their_checkpoint_are_not_overwritten(tmp_path: Path) -> None:
    train(AIM, SETTINGS, (3, 4), 80, tmp_path, episodes=1)
    (tmp_path / "learner.safetensors").unlink()
    with pytest.raises(InputError, match="holds other files, such as seed-3; give another --out, or --over"):
        train(AIM, SETTINGS, (3, 4), 80, tmp_path, episodes=1)
    assert train(AIM, SETTINGS, (3, 4), 80, tmp_path, episodes=1, overwrite=True) == 80


def test_beginning_anew_leaves_nothing_of_another_training(tmp_path: Path) -> None:
    train(AIM, SETTINGS, (0, 1), 80, tmp_path, episodes=1)
    train(AIM, SETTINGS, (0, 3), 80, tmp_path, episodes=1, overwrite=True)
    assert sorted(path.parent.name for path in tmp_path.glob("*/manifest.json")) == ["seed-0", "seed-3"]
    assert not list((tmp_path / "seed-1").iterdir())
    (tmp_path / "learner.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="is not a file that cwbc saved"):
        train(AIM, SETTINGS, (0, 3), 80, tmp_path, episodes=1)
    assert train(AIM, SETTINGS, (0, 3), 80, tmp_path, episodes=1, overwrite=True) == 80


def test_what_a_kill_leaves_is_gone_on_with(tmp_path: Path) -> None:
    """An earlier checkpoint is put back, as if the process had been killed before the next one."""
    train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1, **until(1080))
    checkpoint = tmp_path / "learner.safetensors"
    saved = checkpoint.read_bytes()
    state, _ = checkpoints.read(checkpoint)
    train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1, **until(1400))
    assert series.read(tmp_path / "seed-3").snapshots[-1].steps == 1256
    checkpoint.write_bytes(saved)
    begun: list[int] = []
    train(AIM, SETTINGS, (3, 4), 2000, tmp_path, episodes=1, begin=begun.append, **until(1088))
    assert begun == [1080]
    own = series.read(tmp_path / "seed-3")
    assert [one.steps for one in own.snapshots] == [0, 1000]
    assert {path.name for path in own.folder.glob("*.safetensors")} == {one.file for one in own.snapshots}
    # One batch of experience later: nothing was learned from it yet, and nothing forgotten.
    after, _ = checkpoints.read(checkpoint)
    np.testing.assert_array_equal(after["state/targets/first/weight"], state["state/targets/first/weight"])


def test_a_seed_alone_is_that_seed_in_a_stack(tmp_path: Path) -> None:
    train(AIM, SETTINGS, (3, 4), 2000, tmp_path / "both", episodes=2, **until(480))
    train(AIM, SETTINGS, (4,), 2000, tmp_path / "alone", episodes=2, **until(480))
    both, alone = (series.read(tmp_path / where / "seed-4").snapshots for where in ("both", "alone"))
    assert both == alone
    assert series.read(tmp_path / "both" / "seed-3").snapshots[0] != both[0]
    states = [checkpoints.read(tmp_path / where / "learner.safetensors")[0] for where in ("both", "alone")]
    assert states[0].keys() == states[1].keys()
    for name, of_both in states[0].items():
        np.testing.assert_allclose(of_both[1], states[1][name][0], rtol=1e-4, atol=1e-6, err_msg=name)


def test_two_processes_do_not_train_in_one_place(tmp_path: Path) -> None:
    with (
        locked(tmp_path / ".lock", "busy"),
        pytest.raises(InputError, match="another process is training in"),
    ):
        train(AIM, SETTINGS, (3, 4), 80, tmp_path, episodes=1)


def test_rows_keep_where_an_episode_ended_and_a_time_limit_is_no_termination() -> None:
    collector = Collector(AIM, (0, 1), 3)
    for _ in range(5):
        before = collector.observations.copy()
        rows = collector.step(np.zeros((2, 3, 1), np.float32))
        np.testing.assert_array_equal(rows[..., 0], before[..., 0])
        assert not rows[..., 3].any()
    assert not np.isin(rows[..., 4], collector.observations).any()  # they began anew after the fifth step


def test_discrete_actions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="CartPole-v1 has no bounded continuous actions"):
        train("CartPole-v1", SETTINGS, (3, 4), 10, tmp_path)
