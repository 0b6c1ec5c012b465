"""What replays of held-out episodes say about the error of a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from cwbc.results.replays import Replays
from cwbc.system.errors import InputError


def test_the_error_is_that_of_episodes_with_about_the_same_return() -> None:
    logged = np.arange(100.0)
    replays = Replays(logged, np.where(logged < 50, logged, logged - 20))
    near = replays.near(10.0)
    assert near == pytest.approx((9.5, 9.5, 0.0))
    near = replays.near(1000.0)  # the highest ten
    assert near == pytest.approx((94.5, 74.5, 1.959964 * 20))


def test_errors_that_differ_make_their_mean_uncertain() -> None:
    replays = Replays(np.full(5, 3.0), 3.0 + np.array([-2.0, -1.0, 0.0, 1.0, 2.0]))
    standard_error = np.sqrt(10 / 4 / 5)  # of five errors whose mean is 0
    assert replays.near(0.0).error == pytest.approx(1.959964 * standard_error)


def test_the_file_reads_back_exactly(tmp_path: Path) -> None:
    path, random = tmp_path / "replays.csv", np.random.default_rng(0)
    written = Replays(random.normal(size=7), random.normal(size=7))
    path.write_text(written.to_csv())
    read = Replays.read(path)
    assert read is not None
    np.testing.assert_array_equal(read.logged, written.logged)
    np.testing.assert_array_equal(read.replayed, written.replayed)
    assert Replays.read(tmp_path / "none.csv") is None


@pytest.mark.parametrize("row", ["1,2", "x,2", "1", "1,nan"])
def test_a_damaged_file_is_named(row: str, tmp_path: Path) -> None:
    path, good = tmp_path / "replays.csv", 3 if row == "1,2" else 9
    path.write_text("\n".join(["logged_return,replayed_return", *["1,2"] * good, row]))
    with pytest.raises(InputError, match=r"replays\.csv is damaged; expected a row logged_return"):
        Replays.read(path)
