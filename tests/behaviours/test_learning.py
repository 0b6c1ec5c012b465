"""The whole loop on environments that take no time: learning, snapshots, resuming, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from cwbc.behaviours import Behaviour, Settings, load, measure
from cwbc.behaviours.collecting import Collector
from cwbc.behaviours.learning import train
from cwbc.errors import InputError

SETTINGS = Settings(
    copies=8,
    updates=4,
    batch=64,
    capacity=8000,
    warmup=400,
    actor_width=16,
    critic_width=32,
    actor_rate=3e-3,
    critic_rate=3e-3,
)


class Aim(gymnasium.Env[Any, Any]):
    """Five steps, each paid by how near the action is to a mark that is seen; actions reach from -2 to 2."""

    observation_space = gymnasium.spaces.Box(-2, 2, (1,))
    action_space = gymnasium.spaces.Box(-2, 2, (1,))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._mark = self.np_random.uniform(-1.5, 1.5, 1).astype(np.float32)
        return self._mark, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = 1 - float(np.abs(action - self._mark).sum())
        self._mark = self.np_random.uniform(-1.5, 1.5, 1).astype(np.float32)
        return self._mark, reward, False, False, {}


@pytest.fixture(scope="module", autouse=True)
def _registered() -> None:
    gymnasium.register("Aim-v0", Aim, max_episode_steps=5)  # type: ignore[arg-type]


def test_a_learner_finds_the_mark_and_leaves_snapshots(tmp_path: Path) -> None:
    told: list[int] = []
    reported: list[Behaviour] = []
    done = train(
        "Aim-v0", SETTINGS, (3, 4), 2800, tmp_path, episodes=20, progress=told.append, report=reported.append
    )
    assert done == told[-1] == 2800
    assert len(reported) == 2 * 11  # the beginning, and 1000, 1120, 1254, ... of each
    for seed in (3, 4):
        paths = sorted((tmp_path / f"seed-{seed}").iterdir())
        assert [path.stem for path in paths[:3]] == ["000000000", "000001000", "000001120"]
        first, last = load(paths[0]), load(paths[-1])
        assert last.about["return"] > 4 > first.about["return"]  # of 5 at best
        again = measure("Aim-v0", [last], 20, 1_000_003)
        assert again.mean() == pytest.approx(last.about["return"])


def test_a_stopped_training_goes_on(tmp_path: Path) -> None:
    assert train("Aim-v0", SETTINGS, (3, 4), 2000, tmp_path, episodes=1, should_stop=lambda: True) == 8
    assert train("Aim-v0", SETTINGS, (3, 4), 480, tmp_path, episodes=1) == 480
    told: list[int] = []
    assert train("Aim-v0", SETTINGS, (3, 4), 600, tmp_path, episodes=1, progress=told.append) == 600
    assert told[0] == 488
    with pytest.raises(InputError, match="other seeds"):
        train("Aim-v0", SETTINGS, (3, 5), 600, tmp_path, episodes=1)


def test_rows_keep_where_an_episode_ended_and_a_time_limit_is_no_termination() -> None:
    collector = Collector("Aim-v0", (0, 1), 3)
    for _ in range(5):
        before = collector.observations.copy()
        rows = collector.step(np.zeros((2, 3, 1), np.float32))
        np.testing.assert_array_equal(rows[..., 0], before[..., 0])
        assert not rows[..., 3].any()
    assert not np.isin(rows[..., 4], collector.observations).any()  # they began anew after the fifth step


def test_behaviours_are_measured_from_the_same_starts() -> None:
    collector = Collector("Aim-v0", (0,), 1)
    actor = {
        name: {"weight": np.zeros(shape, np.float32), "bias": np.zeros(shape[1], np.float32)}
        for name, shape in {"first": (1, 4), "second": (4, 4), "output": (4, 2)}.items()
    }
    still = Behaviour(actor, *collector.bounds)
    returns = measure("Aim-v0", [still, still], 6, seed=0)
    np.testing.assert_array_equal(returns[0], returns[1])
    assert len(np.unique(returns[0])) == 6
    noisy = measure("Aim-v0", [still, still], 6, seed=0, stochastic=True)
    assert not np.allclose(noisy[0], noisy[1])


def test_discrete_actions_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="CartPole-v1 has no bounded continuous actions"):
        train("CartPole-v1", SETTINGS, (3, 4), 10, tmp_path)
