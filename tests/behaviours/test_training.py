"""The whole loop on environments that take no time: learning, snapshots, resuming, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pixels import BEST, PIXELS
from toys import AIM

from cwbc.behaviours import snapshots
from cwbc.behaviours.collector import Collector
from cwbc.behaviours.pqn import PQN
from cwbc.behaviours.rollouts import evaluate
from cwbc.behaviours.sac import SAC
from cwbc.behaviours.snapshots import EVALUATION_SEED, Snapshot
from cwbc.behaviours.training import BehaviourTraining, checkpointed, resume_step, train
from cwbc.behaviours.value_policies import ValuePolicy
from cwbc.core.training_loop import Interrupted
from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.files import locked

SETTINGS = SAC(
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


LOOKING = PQN(
    copies=16,
    rollout=8,
    epochs=4,
    minibatches=8,
    rate=1e-3,
    exploration=3000,
    width=64,
    stack=2,
    interval=1024,
)


def train_to(
    steps: int,
    directory: Path,
    seeds: tuple[int, ...] = (3, 4),
    episodes: int = 1,
    stop_at: int | None = None,
    learner: SAC | PQN = SETTINGS,
    **options: Any,
) -> int:
    """Train, but stop at an earlier step where one is given; the step of the checkpoint."""
    environment = AIM if isinstance(learner, SAC) else PIXELS
    training = BehaviourTraining(environment, learner, seeds, episodes)
    if stop_at is None:
        train(training, steps, directory, **options)
    else:
        seen = [0]
        options |= {"progress": seen.append, "should_stop": lambda: seen[-1] >= stop_at}
        with pytest.raises(Interrupted):
            train(training, steps, directory, **options)
    return int(checkpointed(directory)["step"])


def test_a_learner_finds_the_mark_and_leaves_snapshots(tmp_path: Path) -> None:
    steps: list[int] = []
    recorded: list[list[Snapshot]] = []
    command = "cwbc behaviours train"
    done = train_to(
        2800, tmp_path, episodes=20, command=command, progress=steps.append, record=recorded.append
    )
    assert done == steps[-1] == 2800
    tensors, _ = tensor_files.read(tmp_path / "learner.safetensors")
    assert not any(name.startswith("replay/") for name in tensors)  # none once the training is done
    for row, seed in enumerate((3, 4)):
        own = snapshots.read(tmp_path / f"seed-{seed}")
        # The beginning, then 1000, 1120, 1254, ..., and the end.
        assert [one.steps for one in own.snapshots[:4]] == [0, 1000, 1120, 1256]
        assert own.snapshots[-1].steps == 2800
        assert own.snapshots == tuple(new[row] for new in recorded)
        assert (own.seed, own.episodes, own.command) == (seed, 20, command)
        last = own.snapshots[-1]
        assert last.deterministic.mean > 4 > own.snapshots[0].deterministic.mean  # of 5 at best
        for noisy, stored in ((False, last.deterministic), (True, last.stochastic)):
            again = evaluate(AIM, [own.policy(last)], 20, EVALUATION_SEED, noisy).mean()
            assert again == pytest.approx(stored.mean, rel=1e-5)


def test_a_stopped_training_resumes_with_all_its_transitions(tmp_path: Path) -> None:
    assert train_to(2000, tmp_path, stop_at=1200) == 1200
    tensors, _ = tensor_files.read(tmp_path / "learner.safetensors")
    assert tensors["replay/next_observations"].shape == (2, 1200, 1)
    assert tensors["replay/next_observations"].all()  # where the next mark stands
    assert train_to(800, tmp_path) == 1200  # fewer steps than are done: nothing is lost
    before = snapshots.read(tmp_path / "seed-3").snapshots
    steps: list[int] = []
    assert train_to(2000, tmp_path, progress=steps.append) == 2000
    assert steps[0] == 1208
    after = snapshots.read(tmp_path / "seed-3")
    assert after.snapshots[: len(before)] == before
    assert after.snapshots[-1].stochastic.mean > before[0].stochastic.mean
    assert train_to(2000, tmp_path) == 2000  # nothing is left to do
    with pytest.raises(InputError, match=r"trained with seeds \[3, 4\], not \[3, 5\]; give another --out"):
        train_to(2000, tmp_path, (3, 5))
    with pytest.raises(InputError, match="trained to its end, 2,000 steps"):
        train_to(2400, tmp_path)
    # The same training never starts over.
    assert train_to(800, tmp_path, overwrite=True) == 2000


def test_a_damaged_replay_is_refused(tmp_path: Path) -> None:
    train_to(2000, tmp_path, stop_at=16)
    checkpoint = tmp_path / "learner.safetensors"
    tensors, description = tensor_files.read(checkpoint)
    tensors["replay/rewards"] = tensors["replay/rewards"][:, :8]
    tensor_files.write(checkpoint, tensors, description)
    with pytest.raises(InputError, match=r"tensor replay/rewards is \[2, 8\] of float32; expected \[2, 16\]"):
        train_to(2000, tmp_path)


def test_a_resumed_training_has_the_replays_of_its_checkpoint(tmp_path: Path) -> None:
    train_to(2000, tmp_path, stop_at=16)
    before, _ = tensor_files.read(tmp_path / "learner.safetensors")
    train_to(2400, tmp_path, stop_at=24)
    after, _ = tensor_files.read(tmp_path / "learner.safetensors")
    np.testing.assert_array_equal(after["replay/actions"][:, :16], before["replay/actions"])


def test_what_came_after_the_checkpoint_is_dropped(tmp_path: Path) -> None:
    assert train_to(2000, tmp_path, stop_at=8) == 8
    folder = tmp_path / "seed-3"
    (folder / "000000500.safetensors").write_bytes(b"of a run that was killed")
    (folder / "mine.safetensors").write_bytes(b"of somebody else")
    train_to(480, tmp_path)
    names = {path.name for path in folder.glob("*.safetensors")}
    assert names == {"000000000.safetensors", "000000480.safetensors", "mine.safetensors"}


def test_snapshots_without_their_checkpoint_are_not_overwritten(tmp_path: Path) -> None:
    train_to(80, tmp_path)
    (tmp_path / "learner.safetensors").unlink()
    with pytest.raises(InputError, match="holds other files, such as seed-3; give another --out, or --over"):
        train_to(80, tmp_path)
    assert train_to(80, tmp_path, overwrite=True) == 80


def test_starting_over_leaves_nothing_of_another_training(tmp_path: Path) -> None:
    train_to(80, tmp_path, (0, 1))
    train_to(80, tmp_path, (0, 3), overwrite=True)
    assert sorted(path.parent.name for path in tmp_path.glob("*/manifest.json")) == ["seed-0", "seed-3"]
    assert not list((tmp_path / "seed-1").iterdir())
    (tmp_path / "learner.safetensors").write_bytes(b"damaged")
    with pytest.raises(InputError, match="is not a file that cwbc saved"):
        train_to(80, tmp_path, (0, 3))
    assert train_to(80, tmp_path, (0, 3), overwrite=True) == 80


def test_a_training_resumes_from_what_a_kill_leaves(tmp_path: Path) -> None:
    """An earlier checkpoint is put back, as if the process had been killed before the next one."""
    train_to(2000, tmp_path, stop_at=1080)
    checkpoint = tmp_path / "learner.safetensors"
    saved = checkpoint.read_bytes()
    train_to(2000, tmp_path, stop_at=1400)
    assert snapshots.read(tmp_path / "seed-3").snapshots[-1].steps == 1256
    checkpoint.write_bytes(saved)
    assert resume_step(tmp_path, BehaviourTraining(AIM, SETTINGS, (3, 4), 1), 2000, overwrite=False) == 1080
    train_to(2000, tmp_path, stop_at=1088)
    own = snapshots.read(tmp_path / "seed-3")
    assert [one.steps for one in own.snapshots] == [0, 1000]
    assert {path.name for path in own.folder.glob("*.safetensors")} == {one.file for one in own.snapshots}


@pytest.mark.parametrize(
    ("learner", "stops", "last"), [(SETTINGS, (208, 808), 1008), (LOOKING, (128, 256), 384)]
)
def test_a_killed_training_ends_with_the_same_bits_as_one_that_was_never_stopped(
    learner: SAC | PQN, stops: tuple[int, ...], last: int, tmp_path: Path
) -> None:
    """SAC is killed during the warm-up, and again while it learns; episodes are running at each kill."""
    for name, ends in (("killed", (*stops, last)), ("whole", (last,))):
        for end in ends:
            train_to(2000, tmp_path / name, stop_at=end, learner=learner)
    killed, whole = (
        tensor_files.read(tmp_path / name / "learner.safetensors") for name in ("killed", "whole")
    )
    assert killed[1] == whole[1]
    assert killed[0].keys() == whole[0].keys()
    for name, expected in whole[0].items():
        np.testing.assert_array_equal(killed[0][name], expected, err_msg=name)


def test_running_episodes_are_restored_with_the_frames_before(tmp_path: Path) -> None:
    before, after = (Collector(PIXELS, (0, 1), 3, stack=2) for _ in range(2))
    before.reset(0)
    for step in range(6):  # two after the end of the first episodes
        taken = before.step(np.full((2, 3), step % 2, np.int32))
    tensors, description = before.saved()
    np.testing.assert_array_equal(tensors["episodes/steps"], 2)
    after.restore(tmp_path, tensors, description, step=6)
    np.testing.assert_array_equal(after.observations, before.observations)
    np.testing.assert_array_equal(after.previous[:, :, 1], taken.observations)
    assert after.saved()[1] == description
    after.restore(tmp_path, {}, {}, step=6)  # of a checkpoint that another version wrote
    assert not after.saved()[0]["episodes/steps"].any()


def test_a_seed_alone_is_that_seed_in_a_stack(tmp_path: Path) -> None:
    train_to(2000, tmp_path / "both", episodes=2, stop_at=480)
    train_to(2000, tmp_path / "alone", (4,), episodes=2, stop_at=480)
    both, alone = (snapshots.read(tmp_path / where / "seed-4").snapshots for where in ("both", "alone"))
    assert both == alone
    assert snapshots.read(tmp_path / "both" / "seed-3").snapshots[0] != both[0]
    states = [tensor_files.read(tmp_path / where / "learner.safetensors")[0] for where in ("both", "alone")]
    assert states[0].keys() == states[1].keys()
    for name, of_both in states[0].items():
        if not name.startswith("episodes/"):  # one after another, not by seed
            np.testing.assert_allclose(of_both[1], states[1][name][0], rtol=1e-4, atol=1e-6, err_msg=name)


def test_two_processes_do_not_train_in_one_place(tmp_path: Path) -> None:
    with (
        locked(tmp_path / ".lock", "busy"),
        pytest.raises(InputError, match="another process is training in"),
    ):
        train_to(80, tmp_path)


def test_transitions_keep_where_an_episode_ended_and_a_time_limit_is_no_termination() -> None:
    collector = Collector(AIM, (0, 1), 3)
    collector.reset(0)
    for _ in range(5):
        before = collector.observations.copy()
        rows = collector.step(np.zeros((2, 3, 1), np.float32))
        np.testing.assert_array_equal(rows.observations, before)
        assert not rows.terminated.any()
    assert not np.isin(rows.next_observations, collector.observations).any()  # reset after the fifth step


def test_discrete_actions_are_refused_by_sac(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="CartPole-v1 has no bounded continuous actions, which SAC needs"):
        train(BehaviourTraining("CartPole-v1", SETTINGS, (3, 4)), 10, tmp_path)


def test_a_learner_of_images_finds_the_direction_that_no_single_frame_shows(tmp_path: Path) -> None:
    assert train_to(2048, tmp_path, (0, 1), episodes=10, learner=LOOKING) == 2048
    for seed in (0, 1):
        own = snapshots.read(tmp_path / f"seed-{seed}")
        assert [one.steps for one in own.snapshots] == [0, 1024, 2048]
        assert own.snapshots[-1].deterministic.mean == BEST > own.snapshots[0].stochastic.mean
        policy = own.policy(own.snapshots[1])
        assert isinstance(policy, ValuePolicy)
        assert policy.epsilon == pytest.approx(1 - 0.999 * 1024 / 3000)
    # There is no replay to lose: with more steps, it continues.
    assert train_to(2100, tmp_path, (0, 1), episodes=10, learner=LOOKING) == 2176
