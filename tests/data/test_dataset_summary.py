"""What a run keeps of its dataset."""

from __future__ import annotations

import json

import pytest
from conftest import with_returns
from toys import toy_data

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.system.errors import InputError


def test_the_numbers_are_the_datasets() -> None:
    data = toy_data()
    summary = DatasetSummary.of(data)
    assert (summary.episodes, summary.steps) == (60, data.steps)
    assert (summary.lowest, summary.best) == (data.lowest, data.best)
    assert sum(summary.histogram_counts) == 60
    assert summary.content_hash == data.content_hash
    assert summary.task == data.task


def test_one_return_has_a_histogram_too() -> None:
    assert sum(DatasetSummary.of(with_returns(3, 3)).histogram_counts) == 2


def test_successes_are_returns_of_0_and_1() -> None:
    def counts(*returns: float, environment: str | None = None) -> bool:
        return DatasetSummary.of(with_returns(*returns, environment=environment)).counts_successes

    rare = [0.0] * 990 + [1.0] * 10
    assert counts(*rare)
    assert counts(0, 1)
    assert counts(*rare, environment="d4rl/antmaze-umaze-v2")
    assert not counts(*rare, environment="Hopper-v5")  # whose scores are no success rates
    assert not counts(*rare, environment="d4rl/maze2d-umaze-v1")
    assert not counts(*rare, 0.5)
    assert not counts(*rare, 0.999)  # in the bin of the successes
    assert not counts(*rare, 2)
    assert not counts(0, 0)


def test_json_and_back() -> None:
    summary = DatasetSummary.of(toy_data())
    assert DatasetSummary.from_json(json.loads(json.dumps(summary.to_json()))) == summary
    assert "clipped_rewards" not in summary.to_json()
    clipped = DatasetSummary.of(toy_data().with_clipped_rewards())
    assert DatasetSummary.from_json(json.loads(json.dumps(clipped.to_json()))) == clipped
    assert clipped.clipped_rewards
    kept = {k: v for k, v in summary.to_json().items() if k not in ("best", "histogram_counts")}
    with pytest.raises(InputError, match="lacks best, histogram_counts"):
        DatasetSummary.from_json(kept)
