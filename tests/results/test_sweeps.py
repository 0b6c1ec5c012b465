from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cwbc.core.tasks import Task
from cwbc.results.sweeps import Sweep, read_results, results_text
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


def test_returns_may_be_asked_for_in_32_bits() -> None:
    target = 3234.3
    assert sweep([[[4.0], [8.0]]], (5.0, float(np.float32(target)))).index_of(target) == 1
