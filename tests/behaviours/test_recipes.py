"""Which policies generate a dataset: fractions computed by hand, whole episodes, the same data again."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
import pytest
from numpy.typing import NDArray
from pixels import BEST, HORIZON, SIDE, Pixels
from toys import AIM, learner, random_arrays

from cwbc.behaviours.policies import BehaviourPolicy, Floats, UniformPolicy
from cwbc.behaviours.pqn import QNetwork
from cwbc.behaviours.recipes import SnapshotRecipe, mixture
from cwbc.behaviours.snapshots import Series
from cwbc.system.errors import InputError


def constant(action: float) -> BehaviourPolicy:
    """Always the same action, drawn or not."""
    shapes = {"first": (1, 4), "second": (4, 4), "output": (4, 2)}
    actor: dict[str, Floats] = {f"actor/{name}/weight": np.zeros(shape) for name, shape in shapes.items()}
    actor |= {f"actor/{name}/bias": np.zeros(shape[1]) for name, shape in shapes.items()}
    actor["actor/output/bias"][:] = np.arctanh(action / 2), -20  # the narrowest spread there is, exp(-5)
    return BehaviourPolicy.of(actor, np.full(1, -2, np.float32), np.full(1, 2, np.float32))


@pytest.fixture
def aiming(tmp_path: Path) -> Series:
    """Five snapshots, which act by -1.5, -1, ... 0.5; the fourth, at 30 steps, is medium."""
    one = dataclasses.replace(learner(tmp_path, 0, 10, 5, 40, 120), environment=AIM)
    for number, snapshot in enumerate(one.snapshots):
        constant(-1.5 + number / 2).save(one.folder / snapshot.file)
    one.write()
    return one


def test_a_replay_is_what_the_learner_went_through(aiming: Series) -> None:
    assert aiming.medium.steps == 30
    actors, fractions = zip(*mixture(aiming, "medium-replay"), strict=True)
    assert isinstance(actors[0], UniformPolicy)
    # 15 steps of warm-up; snapshots at 20 and 30, with the way between them halved.
    np.testing.assert_allclose(fractions, [15 / 30, 10 / 30, 5 / 30])
    seen = [actor.act(np.zeros((1, 1))).item() for actor in actors[1:]]
    np.testing.assert_allclose(seen, [-0.5, 0], atol=1e-3)


def test_a_replay_of_the_whole_training_has_as_much_of_each_snapshot(aiming: Series) -> None:
    actors, fractions = zip(*mixture(aiming, "replay"), strict=True)
    np.testing.assert_allclose(
        fractions, 1 / 5
    )  # uniform actions, and four snapshots up to the last and best
    assert isinstance(actors[0], UniformPolicy)
    seen = [actor.act(np.zeros((1, 1))).item() for actor in actors[1:]]
    np.testing.assert_allclose(seen, [-1, -0.5, 0, 0.5], atol=1e-3)


class PaysThree(Pixels):
    """Pixels whose rewards are 3."""

    def step(self, action: Any) -> tuple[NDArray[np.uint8], float, bool, bool, dict[str, Any]]:
        frame, reward, terminated, truncated, facts = super().step(action)
        return frame, 3 * reward, terminated, truncated, facts


gymnasium.register("cwbc-pixels3-v0", entry_point=PaysThree, max_episode_steps=HORIZON)  # type: ignore[arg-type]


def test_the_replay_of_a_game_has_clipped_rewards(tmp_path: Path) -> None:
    series = dataclasses.replace(learner(tmp_path, 0, 10), environment="cwbc-pixels3-v0")
    network = QNetwork((SIDE, SIDE, 1), 2, 4, 2)
    policy = network.policy(jax.device_get(random_arrays(network.initialize, 0)), 1.0)
    for snapshot in series.snapshots:
        policy.save(series.folder / snapshot.file)
    series.write()
    replay, expert = (SnapshotRecipe(series, quality).generate("x", 100) for quality in ("replay", "expert"))
    assert (replay.clipped_rewards, expert.clipped_rewards) == (True, False)
    assert {*replay.rewards.tolist()} == {0.0, 1.0}
    assert {*expert.rewards.tolist()} == {0.0, 3.0}
    assert max(replay.returns) <= BEST


def test_each_quality_acts_as_it_should(aiming: Series) -> None:
    made = {
        name: SnapshotRecipe(aiming, name).generate(f"x/{name}-v0", 1000)
        for name in ("random", "medium", "expert")
    }
    assert all(data.steps == 1000 and data.environment == AIM for data in made.values())
    np.testing.assert_allclose(made["random"].actions.std(), 4 / 12**0.5, rtol=0.05)
    np.testing.assert_allclose(made["medium"].actions, 0, atol=0.1)
    np.testing.assert_allclose(made["expert"].actions, 0.5, atol=0.1)
    both = SnapshotRecipe(aiming, "medium-expert").generate("x/medium-expert-v0", 1000).actions
    np.testing.assert_allclose(both[:500], 0, atol=0.1)
    np.testing.assert_allclose(both[500:], 0.5, atol=0.1)


@pytest.mark.parametrize("size", [5, 7, 50, 1002])
def test_episodes_are_whole_and_fit(aiming: Series, size: int) -> None:
    data = SnapshotRecipe(aiming, "medium-replay").generate("x/medium-replay-v0", size)
    assert data.steps == size // 5 * 5
    np.testing.assert_array_equal(data.lengths, 5)
    assert not data.terminated.any()


def test_the_same_name_and_size_give_the_same_data(aiming: Series) -> None:
    orders = itertools.product(("x/medium-v0", "y/medium-v0"), (100, 200))
    hashes = {
        order: SnapshotRecipe(aiming, "medium").generate(order[0], order[1]).content_hash for order in orders
    }
    assert len(set(hashes.values())) == 4
    again = SnapshotRecipe(aiming, "medium").generate("x/medium-v0", 200)
    assert again.content_hash == hashes["x/medium-v0", 200]
    shorter = SnapshotRecipe(aiming, "medium").generate("x/medium-v0", 100)
    np.testing.assert_array_equal(shorter.observations, again.observations[:100])


def test_impossible_orders_are_refused(aiming: Series, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--size 4 is shorter than the first episode"):
        SnapshotRecipe(aiming, "medium").generate("x/medium-v0", 4)
    with pytest.raises(InputError, match="no snapshot is better than the untrained one"):
        mixture(learner(tmp_path / "lazy", 5, 4, 3), "medium")
