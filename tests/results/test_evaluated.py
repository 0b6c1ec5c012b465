"""The numbers of an evaluated method, by hand: those of summary.json, and the warnings about its seeds."""

from __future__ import annotations

import dataclasses
import json
import math
from typing import Any

import numpy as np
import pytest
from pages import about

from cwbc.core.tasks import Task, task_for
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.sweeps import Sweep

TASK = Task(expert_return=10.0, random_score=0.0, expert_score=20.0, far_return=20.0, near_return=1.0)
SEEDS = (0, 1, 7)


def sweep(returns: object, targets: tuple[float, ...] = (5.0, 10.0, 20.0), method: str = "rvs") -> Sweep:
    achieved = np.array(returns, np.float64)  # [seed, target, episode]
    lengths = np.arange(achieved.size, dtype=np.int64).reshape(achieved.shape)
    return Sweep(method, np.arange(len(achieved), dtype=np.int64), np.array(targets), achieved, lengths)


def summarize(sweep: Sweep, task: Task, best: float) -> dict[str, Any]:
    return EvaluatedMethod.of(sweep, about(task, best)).to_json()


# Two seeds, three targets, two episodes. Means per seed: 4 8 2 and 6 12 2; over seeds: 5 10 2.
CURVE = sweep([[[3, 5], [8, 8], [1, 3]], [[6, 6], [11, 13], [2, 2]]])


ONCE = Sweep(
    "bc", np.arange(2), np.array([np.nan]), np.array([[[3.0, 5.0]], [[6.0, 6.0]]]), np.ones((2, 1, 2), int)
)


def test_summary_by_hand() -> None:
    third = sweep([*CURVE.returns, [[5, 5], [10, 10], [2, 2]]])
    summary = summarize(third, TASK, best=5.0)
    assert (summary["seeds"], summary["episodes"], summary["takes_target"]) == (3, 2, True)
    assert summary["training_warnings"] == []
    # Scores of the seeds: 20 40 10, 30 60 10 and 25 50 10, whose deviations are 5, 10 and 0.
    t = 4.302653
    reach = 5 * t / math.sqrt(3)
    assert summary["at_dataset_best"] == pytest.approx(
        {"target": 5.0, "value": 25.0, "low": 25 - reach, "high": 25 + reach}
    )
    at_expert = {"target": 10.0, "value": 50.0, "low": 50 - 2 * reach, "high": 50 + 2 * reach}
    assert summary["at_expert"] == pytest.approx(at_expert)
    assert summary["best_point"] == pytest.approx(at_expert)
    assert summary["at_twice_expert"] == {"target": 20.0, "value": 10.0, "low": 10.0, "high": 10.0}
    # The ratio of means is 10 / 50; without each seed in turn 10 / 55, 10 / 45 and 10 / 50.
    without = np.array([10 / 55, 10 / 45, 10 / 50])
    bias = (without.mean() - 0.2) / (math.sqrt(3 / 2) - 1)  # by chance, as far as the interval knows
    around = t * without.std() * math.sqrt(2)
    assert summary["ood_retention"] == pytest.approx(
        {"target": 20.0, "value": 0.2, "low": 0.2 - bias - around, "high": 0.2 + around}
    )
    assert [point["return"] for point in summary["curve"]] == [5.0, 10.0, 2.0]
    assert summary["curve"][0] == pytest.approx(
        {
            "target": 5.0,
            "return": 5.0,
            "return_low": 5 - reach / 5,
            "return_high": 5 + reach / 5,
            "normalized": 25.0,
            "normalized_low": 25 - reach,
            "normalized_high": 25 + reach,
        }
    )


def test_retention_never_exceeds_one() -> None:
    seeds = [[[9.0], [10.0], [9.5]], [[9.0], [10.0], [8.0]], [[9.0], [10.0], [8.75]]]
    retention = summarize(sweep(seeds), TASK, 5.0)["ood_retention"]
    assert retention is not None
    assert retention["value"] == pytest.approx(8.75 / 10)
    assert retention["high"] == 1.0


@pytest.mark.parametrize("seeds", [1, 2])
def test_one_and_two_seeds_have_values_but_no_intervals(seeds: int) -> None:
    summary = summarize(sweep([[[4.0], [8.0], [2.0]]] * seeds), TASK, best=5.0)
    assert summary["at_expert"] == {"target": 10.0, "value": 40.0, "low": None, "high": None}
    assert summary["ood_retention"] == {"target": 20.0, "value": 0.25, "low": None, "high": None}
    assert summary["curve"][1]["return_low"] is None


def test_a_method_that_takes_no_target_has_one_score_and_nothing_to_follow() -> None:
    summary = summarize(ONCE, TASK, best=5.0)
    assert summary["takes_target"] is False
    score = {"target": None, "value": 25.0, "low": None, "high": None}
    for key in ("at_dataset_best", "at_expert", "at_twice_expert", "best_point"):
        assert summary[key] == score
    for key in ("ood_retention", "monotonicity", "calibration_error"):
        assert summary[key] is None
    assert [(point["target"], point["return"]) for point in summary["curve"]] == [(None, 5.0)]
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_without_a_published_expert_no_key_names_one() -> None:
    task = task_for(None, -10.0, 10.0)
    text = json.dumps([summarize(sweep([[[4.0], [8.0]]], (10.0, 30.0)), task, best=10.0), task.to_json()])
    assert "expert" not in text
    assert "at_best_plus_range" in text


def test_targets_that_were_not_asked_are_absent() -> None:
    summary = summarize(sweep([[[4.0], [8.0]]], (5.0000004, 9.9)), TASK, best=5.0)
    assert summary["at_dataset_best"] is not None  # as sweeps round their targets
    assert summary["at_expert"] is None
    assert summary["at_twice_expert"] is None
    assert summary["ood_retention"] is None


def test_large_returns_that_lie_close_are_different_ones() -> None:
    targets = (999_999.5, 1_000_000.0, 1_000_000.5)
    task = dataclasses.replace(TASK, random_score=999_999.0, expert_score=1_000_000.0)
    one = sweep([[[999_999.5], [1_000_000.0], [0.0]]], targets)
    assert summarize(one, task, best=1_000_000.0)["calibration_error"] == pytest.approx(
        {"value": 0.0, "low": None, "high": None}  # the collapse is beyond the best
    )


def test_calibration_counts_targets_up_to_the_best_and_monotonicity_all() -> None:
    targets = (2.0, 4.0, 6.0, 20.0)
    one = sweep([[[2.0, 4.0], [5.0, 5.0], [8.0, 8.0], [2.0, 2.0]]], targets)
    # Scores are five times the returns: 15 25 40 10, the targets were 10 20 30 100.
    summary = summarize(one, TASK, best=5.9999996)  # as sweeps round their targets
    assert summary["calibration_error"] == {"value": pytest.approx(20 / 3), "low": None, "high": None}
    assert summary["monotonicity"] == {"value": pytest.approx(1 - 30 / 40), "low": None, "high": None}
    assert summarize(one, TASK, best=5.0)["calibration_error"] == pytest.approx(
        {"value": 5.0, "low": None, "high": None}
    )
    assert summarize(one, TASK, best=3.0)["calibration_error"] is None  # one point is no curve


@pytest.mark.parametrize(
    "returns",
    [
        [[[-4.0], [0.0], [-9.0]]],
        [[[0.0], [0.8], [-0.9]]],  # a best score of 4: the ratio would be -113 %
    ],
)
def test_no_retention_where_the_best_point_is_not_clearly_above_zero(returns: object) -> None:
    summary = summarize(sweep(returns), TASK, best=5.0)
    assert summary["ood_retention"] is None
    assert summary["monotonicity"] is None


def test_the_interval_of_a_retention_is_of_a_fraction() -> None:
    seeds = [[[5.0], [each], [far]] for each, far in ((9.0, -6.0), (10.0, 9.0), (11.0, -5.0))]
    retention = summarize(sweep(seeds), TASK, best=5.0)["ood_retention"]
    assert retention is not None
    assert retention == pytest.approx({"target": 20.0, "value": -2 / 30, "low": -2 / 30, "high": 1.0})


def test_exploded_episodes_become_null_not_nan() -> None:
    broken = sweep([[[4.0], [math.nan], [2.0]], [[4.0], [1.0], [2.0]], [[4.0], [1.0], [2.0]]])
    summary = summarize(broken, TASK, best=5.0)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["curve"][1]["normalized"] is None
    assert summary["best_point"]["target"] == 5.0
    assert summary["ood_retention"] == {"target": 20.0, "value": 0.5, "low": 0.5, "high": 0.5}
    assert summary["monotonicity"] is None


def test_a_seed_that_achieves_far_less_than_the_others_is_named() -> None:
    targets, scores = np.array([1.0, 2.0, 3.0, 4.0]), np.full((3, 4), 80.0)
    scores[1, 3] = 10.0
    task = task_for(None, 0.0, 1000.0)
    (text,) = warned(10 * scores, targets, task)
    assert text == "seed 1 is far below the others at target 4: it achieves 100, the median seed 800."
    (text,) = warned(10 * scores[:, 3:], np.array([np.nan]), task)
    assert text.startswith("seed 1 is far below the others: it")


@pytest.mark.parametrize("seen", [[80, 80, 65], [80, 50, 10], [80, 10]])
def test_seeds_that_differ_as_the_others_do_are_not(seen: list[float]) -> None:
    scores = np.repeat(np.array(seen)[:, None], 4, axis=1)
    assert warned(scores, np.arange(4.0), task_for(None, 0.0, 100.0)) == []


def warned(returns: np.ndarray, targets: np.ndarray, task: Task) -> list[str]:
    episodes = returns[:, :, None]
    found = Sweep(
        "any", np.array(SEEDS)[: len(returns)], targets, episodes, np.ones(episodes.shape, np.int64)
    )
    return list(EvaluatedMethod.of(found, about(task, 1.0)).training_warnings)
