"""The file of an offline evaluation's estimates, and what a recommendation says about them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hand_made import summary
from numpy.typing import NDArray

from cwbc.core.simulation import is_offline, offline
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import evaluated
from cwbc.results.recommendation import Recommendation, recommend
from cwbc.results.sweeps import Sweep
from cwbc.system.errors import InputError

TARGETS = np.array([1000.0, 2000.0])


def estimates(
    fitted: float = 900.0, support: float = 0.9, targets: NDArray[np.float64] = TARGETS
) -> Estimates:
    shape = (3, len(targets))
    return Estimates(np.arange(3), targets, np.full(shape, fitted), np.full(shape, support))


def recommended(known: Estimates) -> Recommendation:
    """That of a method that achieves 900, give or take 10."""
    returns = np.array([890.0, 900.0, 910.0])[:, None, None] * np.ones((3, 2, 2))
    sweep = Sweep("rvs", np.arange(3), TARGETS, returns, np.ones((3, 2, 2), np.int64))
    about = summary("hopper-medium", mean=500.0)
    dataset: DatasetSummary = dataclasses.replace(about, environment=offline(about.environment))
    found = recommend(evaluated([sweep], dataset, estimates={"rvs": known}))
    assert found is not None
    return found


def test_the_file_reads_back_exactly(tmp_path: Path) -> None:
    random, path = np.random.default_rng(0), tmp_path / "estimates.csv"
    for targets in (TARGETS, np.array([np.nan])):
        shape = (3, len(targets))
        written = Estimates(
            np.array([2, 0, 5]), targets, random.normal(size=shape), random.uniform(size=shape)
        )
        path.write_text(written.to_csv())
        read = Estimates.read(path)
        assert read is not None
        for field in dataclasses.fields(Estimates):
            np.testing.assert_array_equal(getattr(read, field.name), getattr(written, field.name))
    assert Estimates.read(tmp_path / "none.csv") is None


@pytest.mark.parametrize("text", ["", "seed\n1\n", "seed,target,fitted_return,support\n0,1,x,1\n"])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "estimates.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"estimates\.csv is damaged"):
        Estimates.read(path)


def test_an_estimate_is_found_by_its_target() -> None:
    np.testing.assert_allclose(estimates().at(2000.0) or (), (900.0, 0.9))
    assert estimates().at(1500.0) is None
    assert estimates(targets=np.array([np.nan])).at(1500.0) is not None  # whatever the target, it takes none


def test_a_recommendation_says_what_it_rests_on() -> None:
    agreeing = recommended(estimates())
    assert agreeing.sentence().startswith("Use rvs with target return 1,000: estimated return 900")
    assert any("Fitted Q evaluation, a second estimate, says 900" in each for each in agreeing.caveats)
    assert not any("like logged ones" in each for each in agreeing.caveats)
    doubtful = recommended(estimates(fitted=3000.0, support=0.4))
    assert any("The two estimates disagree" in each for each in doubtful.caveats)
    assert any("of its steps are like logged ones" in each for each in doubtful.caveats)


def test_offline_environments_keep_the_task() -> None:
    about = summary("hopper-medium")
    learned = dataclasses.replace(about, environment=offline(about.environment))
    assert learned.task == about.task
    assert learned.is_estimated
    assert is_offline(offline(None))
    assert not any(map(is_offline, (None, "Hopper-v4", "ALE/Pong-v5")))
