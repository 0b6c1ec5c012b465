"""What is said about a dataset before training: numbers computed by hand, and laws they must keep."""

from __future__ import annotations

import dataclasses
import json
from math import sqrt
from typing import Any

import numpy as np
import pytest
from conftest import logged, with_returns
from numpy.typing import NDArray

from cwbc.core.regularizers import Conservative
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.data import statistics as module
from cwbc.data.checks import LengthStatistics
from cwbc.data.statistics import PERCENTS, DatasetStatistics, DimensionStatistics


def described(
    data: Trajectories, weighting: ByReturn | None = None, regularizer: Conservative | None = None
) -> DatasetStatistics:
    return DatasetStatistics.of(data, weighting or ByReturn(), regularizer or Conservative())


def steps(observations: NDArray[Any], actions: NDArray[Any], **settings: Any) -> Trajectories:
    """One episode of these steps."""
    count = len(observations)
    return Trajectories(
        name="steps",
        observations=observations.astype(np.float32),
        actions=actions,
        rewards=np.ones(count, np.float32),
        starts=np.array([0]),
        lengths=np.array([count]),
        terminated=np.array([False]),
        **settings,
    )


def test_episodes_lengths_and_ends() -> None:
    data = logged([1, 1, 1], [2], [0, 5], environment="Some-v0", time_limit=7)
    found = described(dataclasses.replace(data, unfinished_steps=4))
    assert (found.name, found.environment, found.episodes, found.steps) == ("logged", "Some-v0", 3, 6)
    assert (found.unfinished_steps, found.horizon, found.time_limit) == (4, 7, 7)
    assert found.lengths == LengthStatistics(
        min=1, median=2.0, max=3, terminated=3, truncated=0, terminated_at_longest=1
    )
    assert not found.discrete
    assert described(logged([1, 1, 1], [2])).horizon == 3


def test_columns_by_hand() -> None:
    data = steps(np.array([[1, -2], [3, -2], [8, -2]]), np.array([[0.5], [-0.5], [0]], np.float32))
    found = described(data)
    first, second = found.observations
    assert (first.name, second.name) == ("observations[0]", "observations[1]")
    assert (first.min, first.max, first.mean) == (1, 8, 4)
    assert first.std == pytest.approx(sqrt(26 / 3))
    assert (second.min, second.max, second.mean, second.std) == (-2, -2, -2, 0)
    (action,) = found.actions
    assert dataclasses.replace(action, std=0) == DimensionStatistics("actions[0]", -0.5, 0.5, 0, 0)
    assert action.std == pytest.approx(sqrt(1 / 6))
    assert found.rewards == DimensionStatistics("rewards", 1, 1, 1, 0)
    assert found.action_counts == ()


def test_columns_are_called_as_in_the_source() -> None:
    actions = np.zeros((2, 1), np.float32)
    data = steps(np.eye(2), actions, observation_names=("speed", "dose"), action_names=("pump",))
    found = described(data)
    assert [column.name for column in (*found.observations, *found.actions)] == ["speed", "dose", "pump"]


def test_discrete_actions_are_counted() -> None:
    data = steps(np.zeros((5, 1)), np.array([2, 0, 2, 2, 0], np.int32), action_count=4)
    found = described(data)
    assert found.discrete
    assert found.actions == ()
    assert found.action_counts == (2, 0, 3, 0)


def test_blocks_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers far from zero, in blocks of two steps: means and deviations are joined without loss."""
    generator = np.random.default_rng(0)
    observations = (1e4 + generator.normal(size=(101, 3))).astype(np.float32)
    data = steps(observations, generator.integers(0, 3, 101).astype(np.int32))
    whole = described(data)
    monkeypatch.setattr(module, "_CELLS", 6)
    found = described(data)
    wide = observations.astype(np.float64)
    np.testing.assert_allclose([c.mean for c in found.observations], wide.mean(axis=0), rtol=1e-14)
    np.testing.assert_allclose([c.std for c in found.observations], wide.std(axis=0), rtol=1e-9)
    assert [c.min for c in found.observations] == wide.min(axis=0).tolist()
    assert [c.max for c in found.observations] == wide.max(axis=0).tolist()
    assert found.action_counts == whole.action_counts


def test_returns_and_their_percentiles() -> None:
    found = described(with_returns(*range(101), 100)).returns
    assert (found.min, found.best, found.distinct, found.at_best, found.next_best) == (0, 100, 101, 2, 99)
    assert found.mean == pytest.approx((5050 + 100) / 102)
    assert found.top == 12  # 90 to 100, and 100 again
    assert tuple(at for at, _ in found.percentiles) == PERCENTS
    assert dict(found.percentiles)[50] == 50.5
    assert not found.equal


@pytest.mark.parametrize(
    ("returns", "equal"), [((5, 5), True), ((5, 5 + 1e-6), True), ((5, 5.1), False), ((0, 1e-9), False)]
)
def test_rounding_is_no_difference(returns: tuple[float, float], equal: bool) -> None:
    assert described(with_returns(*returns)).returns.equal is equal


def test_scores_only_where_they_are_published() -> None:
    assert described(with_returns(0, 1)).scores is None
    scores = described(with_returns(-20.272305, 3234.3, environment="Hopper-v5")).scores
    assert scores is not None
    assert (scores.min, scores.mean, scores.best) == pytest.approx((0, 50, 100), abs=1e-3)
    assert scores.expert_return == 3200


def test_the_histogram_before_and_after() -> None:
    """Ninety episodes of 0 and ten of 1, these of nine steps: +w turns the draws around."""
    data = logged(*[[0]] * 90, *[[0] * 8 + [1]] * 10)
    found = described(data, ByReturn(bins=4))
    assert found.bin_edges == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert found.bin_episodes == (90, 0, 0, 10)
    assert found.by_length.probabilities == pytest.approx((0.5, 0, 0, 0.5))
    assert found.by_length.mean_return == pytest.approx(0.5)
    assert found.by_length.top_fraction == pytest.approx(0.5)
    assert found.by_length.effective_sample_size == pytest.approx(1 / (90 / 180**2 + 10 / 20**2))
    assert found.by_return.probabilities[0] < 1e-4
    assert found.by_return.effective_sample_size == pytest.approx(10, rel=1e-3)


@pytest.mark.parametrize("bins", [1, 3, 20, 1000])
def test_the_bins_are_the_weightings(bins: int) -> None:
    """Tenths are not exact in binary and fall beside the edges; a bin still holds equally likely episodes."""
    data = with_returns(*np.repeat(np.arange(8) * 0.1, np.arange(1, 9)))
    weighting = ByReturn(bins=bins)
    member = weighting.members(data)
    found = described(data, weighting)
    assert len(found.bin_edges) == bins + 1
    assert sum(found.bin_episodes) == data.episodes
    for draws in (found.by_length, found.by_return):
        assert sum(draws.probabilities) == pytest.approx(1)
    for number in set(member.tolist()):
        assert len(set(weighting.probabilities(data)[member == number])) == 1


def test_equal_returns_are_one_bin() -> None:
    found = described(with_returns(3, 3, 3))
    assert (found.bin_edges, found.bin_episodes) == ((3.0, 3.0), (3,))
    assert found.by_return.probabilities == found.by_length.probabilities == (1.0,)
    assert found.returns.next_best is None
    assert (found.noise.noise, found.noise.max_target) == (0, 3)


@pytest.mark.parametrize(
    ("returns", "weighting", "temperature", "source"),
    [
        (range(101), ByReturn(), 10, "percentile"),
        ([0] * 90 + [1] * 10, ByReturn(), 0.1, "return range"),
        ([0] * 90 + [1 - 1e-7] * 5 + [1] * 5, ByReturn(), 0.1, "return range"),  # a tie but for rounding
        (range(101), ByReturn(temperature=7.0), 7, "given"),
    ],
)
def test_where_kappa_comes_from(
    returns: list[float], weighting: ByReturn, temperature: float, source: str
) -> None:
    found = described(with_returns(*returns), weighting)
    assert found.temperature == pytest.approx(temperature)
    assert found.temperature_source == source


def test_what_the_regularizer_raises() -> None:
    data = with_returns(*range(100), environment="Hopper-v5")
    raised = described(data).noise
    assert (raised.episodes, raised.min_return) == (5, 95)
    assert raised.threshold == pytest.approx(94.05)
    assert (raised.noise, raised.noise_source) == (1000, "published")
    assert (data.best, raised.max_target) == pytest.approx((99, 99 + sqrt(12) * 1000))
    # Without a published value the targets reach one whole range beyond the best.
    raised = described(with_returns(*range(100)), regularizer=Conservative(percentile=50)).noise
    assert (raised.episodes, raised.noise_source) == (50, "return range")
    assert raised.max_target == pytest.approx(2 * 99)
    raised = described(data, regularizer=Conservative(noise=2.0)).noise
    assert (raised.noise, raised.noise_source) == (2, "given")


def test_rare_successes_are_raised_alone() -> None:
    raised = described(with_returns(*[0] * 96, *[1] * 4)).noise
    assert (raised.threshold, raised.episodes, raised.min_return) == (0, 4, 1)


def test_json_holds_plain_values_only() -> None:
    data = with_returns(*range(30), environment="Hopper-v5")
    found = json.loads(json.dumps(dataclasses.asdict(described(data, ByReturn(bins=3))), allow_nan=False))
    assert found["returns"]["percentiles"][0] == [0, 0.0]
    assert found["weighting"] == {
        "bins": 3, "smoothing": 0.01, "temperature": None, "temperature_percentile": 90.0
    }  # fmt: skip
    assert len(found["by_return"]["probabilities"]) == 3


def test_the_condition_by_hand() -> None:
    # Two episodes with omega 3, 3 and 1, 1: one standard deviation above the mean and one below.
    found = described(logged([3, 3], [1, 1])).condition
    assert (found.scale, found.mean, found.std) == ("bounded", 2.0, 1.0)
    assert found.at_best == pytest.approx(3 * np.tanh(1 / 3))
    assert found.at_min == pytest.approx(-3 * np.tanh(1 / 3))
