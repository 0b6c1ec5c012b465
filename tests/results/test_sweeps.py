from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import numpy as np
import pytest

from cwbc.core.tasks import Task, task_for
from cwbc.results.sweeps import Sweep, read_results, results_text, summarize
from cwbc.system.errors import InputError

TASK = Task(expert_return=10.0, random_score=0.0, expert_score=20.0, far_return=20.0, near_return=1.0)
HEADER = "method,seed,target,episode,return,normalized,length"


def sweep(returns: object, targets: tuple[float, ...] = (5.0, 10.0, 20.0), method: str = "rvs") -> Sweep:
    achieved = np.array(returns, np.float64)  # [seed, target, episode]
    lengths = np.arange(achieved.size, dtype=np.int64).reshape(achieved.shape)
    return Sweep(method, np.arange(len(achieved), dtype=np.int64), np.array(targets), achieved, lengths)


# Two seeds, three targets, two episodes. Means per seed: 4 8 2 and 6 12 2; over seeds: 5 10 2.
CURVE = sweep([[[3, 5], [8, 8], [1, 3]], [[6, 6], [11, 13], [2, 2]]])


def read_text(tmp_path: Path, *lines: str) -> list[Sweep]:
    path = tmp_path / "results.csv"
    path.write_text("\n".join(lines) + "\n")
    return read_results(path)


def test_results_round_trip_exactly(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    first = sweep(random.normal(size=(3, 2, 4)) * 1e4, (-1 / 3, 0.1 + 0.2))
    second = sweep([[[math.nan], [1e-300]]], (0.0, 1e6), "dt, \"quoted\"\nand 'odd'")
    (tmp_path / "results.csv").write_text(results_text([first, second], TASK))
    for written, read in zip([first, second], read_results(tmp_path / "results.csv"), strict=True):
        assert read.method == written.method
        for name in ("seeds", "targets", "returns", "lengths"):
            np.testing.assert_array_equal(getattr(read, name), getattr(written, name))
            assert getattr(read, name).dtype == getattr(written, name).dtype


def test_results_are_one_row_per_episode() -> None:
    text = results_text([sweep([[[3.5, 5.0]]], (10.0,))], TASK)
    assert text == f"{HEADER}\nrvs,0,10.0,0,3.5,17.5,0\nrvs,0,10.0,1,5.0,25.0,1\n"


def test_rows_may_stand_in_any_order(tmp_path: Path) -> None:
    (read,) = read_text(
        tmp_path, HEADER, "bc,7,2,0,4,0,9", "bc,3,1,0,1,0,8", "bc,3,2,0,2,0,7", "bc,7,1,0,3,0,6"
    )
    assert read.seeds.tolist() == [7, 3]
    assert read.targets.tolist() == [1.0, 2.0]
    assert read.returns[:, :, 0].tolist() == [[3.0, 4.0], [1.0, 2.0]]
    assert read.lengths[:, :, 0].tolist() == [[6, 9], [8, 7]]


def test_a_file_saved_by_a_spreadsheet_reads_too(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_bytes(f"\ufeff{HEADER},note\r\nmöthod,0,1,0,2,10,3,mine\r\n".encode())
    (read,) = read_results(path)
    assert (read.method, read.returns.item()) == ("möthod", 2.0)


def test_two_sweeps_of_one_name_are_refused() -> None:
    with pytest.raises(InputError, match="two sweeps are called 'rvs'"):
        results_text([CURVE, CURVE], TASK)


GOOD = "rvs,0,10,0,1.5,7.5,1000"


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""], r"results.csv, line 1: no column 'method', 'seed', .* expected 'method,seed,"),
        (
            ["method,seed,target,episode,return,length"],
            r"line 1: no column 'normalized'; found 'method,seed,t",
        ),
        ([HEADER], r"results.csv, line 2: no rows; expected one per method, seed, target and episode"),
        (
            [HEADER, GOOD, "rvs,1,10,0,high,7.5,1"],
            r"results.csv, line 3: return is 'high'; expected a number",
        ),
        ([HEADER, f"rvs,{10**20},10,0,1,1,1"], r"line 2: seed 10+, length 1; expected whole numbers below 2"),
        ([HEADER, "rvs,0.5,10,0,1,1,1"], r"line 2: seed is '0.5'; expected a whole number"),
        ([HEADER, "rvs,0,nan,0,1,1,1"], r"line 2: target is 'nan'; expected a finite number, or nothing"),
        ([HEADER, "rvs,0,,0,1,1,1", GOOD], r"'rvs' has lines with and without a target; expected one or"),
        ([HEADER, "rvs,0,10,0,1,1"], r"line 2: length is ''; expected a whole number"),
        ([HEADER, GOOD, GOOD], r"line 3: method 'rvs', seed 0, target 10.0, episode 0 is there twice"),
        (
            [HEADER, GOOD, "rvs,1,10,0,1,1,1", "rvs,1,20,0,1,1,1"],
            r"no line for method 'rvs', seed 0, target 20.0, episode 0 \(3 of 4 rows are there\)",
        ),
    ],
)
def test_a_bad_file_is_told_by_place_and_remedy(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_text(tmp_path, *lines)


def test_a_missing_or_binary_file_is_the_users_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere.csv does not exist; expected the results.csv"):
        read_results(tmp_path / "nowhere.csv")
    (tmp_path / "results.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match=r"results.csv is damaged: line 1 has a byte that is no text"):
        read_results(tmp_path / "results.csv")


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


ONCE = Sweep(
    "bc", np.arange(2), np.array([np.nan]), np.array([[[3.0, 5.0]], [[6.0, 6.0]]]), np.ones((2, 1, 2), int)
)


def test_a_method_that_takes_no_target_is_written_without_one(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(results_text([CURVE, ONCE], TASK))
    assert path.read_text().splitlines()[-4:] == [
        "bc,0,,0,3.0,15.0,1", "bc,0,,1,5.0,25.0,1", "bc,1,,0,6.0,30.0,1", "bc,1,,1,6.0,30.0,1",
    ]  # fmt: skip
    rvs, bc = read_results(path)
    assert (rvs.takes_target, bc.takes_target) == (True, False)
    np.testing.assert_array_equal(bc.returns, ONCE.returns)
    assert bc.index_of(5.0) == bc.index_of(1e9) == 0  # it does the same whatever the target


def test_a_method_that_takes_no_target_has_one_score_and_nothing_to_follow() -> None:
    summary = summarize(ONCE, TASK, best=5.0)
    assert summary["takes_target"] is False
    score = {"target": None, "value": 25.0, "low": None, "high": None}
    for key in ("at_dataset_best", "at_expert", "at_twice_expert", "best_point"):
        assert summary[key] == score
    for key in ("ood_retention", "monotonicity", "calibration_error"):
        assert summary[key] is None  # type: ignore[literal-required]
    assert [(point["target"], point["return"]) for point in summary["curve"]] == [(None, 5.0)]
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_an_older_sweep_without_a_target_is_one_evaluation() -> None:
    once = CURVE.once()
    assert not once.takes_target
    np.testing.assert_array_equal(once.returns, CURVE.returns[:, :1])
    assert once.once() is once


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


def test_returns_may_be_asked_for_in_32_bits() -> None:
    target = 3234.3
    assert sweep([[[4.0], [8.0]]], (5.0, float(np.float32(target)))).index_of(target) == 1


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
    # Scores are five times the returns: 15 25 40 10, asked were 10 20 30 100.
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
