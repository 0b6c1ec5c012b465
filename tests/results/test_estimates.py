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
from cwbc.results.replays import Replays
from cwbc.results.sweeps import Sweep
from cwbc.system.errors import InputError

TARGETS = np.array([1000.0, 2000.0])


# Of episodes from 0 to 1900, which return a tenth less in the model.
REPLAYS = Replays(np.linspace(0, 1900, 20), np.linspace(0, 1710, 20))


def estimates(
    fitted: float = 900.0,
    support: float = 0.9,
    targets: NDArray[np.float64] = TARGETS,
    replays: Replays | None = REPLAYS,
) -> Estimates:
    shape = (3, len(targets))
    return Estimates(np.arange(3), targets, np.full(shape, fitted), np.full(shape, support), replays)


def recommended(known: Estimates | None, simulated: bool = False) -> Recommendation:
    """That of a method that achieves 900, give or take 10."""
    returns = np.array([890.0, 900.0, 910.0])[:, None, None] * np.ones((3, 2, 2))
    sweep = Sweep("rvs", np.arange(3), TARGETS, returns, np.ones((3, 2, 2), np.int64))
    about = summary("hopper-medium", mean=500.0)
    environment = about.environment if simulated else offline(about.environment)
    dataset: DatasetSummary = dataclasses.replace(about, environment=environment)
    found = recommend(evaluated([sweep], dataset, estimates={"rvs": None if simulated else known}))
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
        for field in dataclasses.fields(Estimates)[:4]:
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


def said(found: Recommendation) -> str:
    return " ".join([found.sentence(), *found.caveats])


def test_a_recommendation_says_what_it_rests_on() -> None:
    found = recommended(estimates())
    assert found.sentence().startswith("Use rvs with target return 1,000: estimated return 900")
    assert found.to_json()["reliable"] is True
    assert "Fitted Q evaluation, a second estimate, says 900." in said(found)
    # The five episodes around the target return 800 to 1200, a tenth less in the model.
    assert "Held-out episodes with a mean return of 1,000 have one of 900 in the model." in said(found)


def test_intervals_include_the_error_of_the_model() -> None:
    found = recommended(estimates())
    seeds, bias, apart = 10 * 4.302653 / np.sqrt(3), 100.0, np.std([80, 90, 100, 110, 120], ddof=1)
    reach = np.hypot(seeds, 1.959964 * np.hypot(bias, apart / np.sqrt(5)))
    _, achieved, scored = found.point
    assert achieved == pytest.approx((900, 900 - reach, 900 + reach), rel=1e-5)
    unit = (scored.high - scored.low) / (achieved.high - achieved.low)
    assert unit == pytest.approx(100 / (3234.3 + 20.272425))  # of Hopper's scores
    alone = recommended(estimates(replays=None))
    assert alone.point.achieved == pytest.approx((900, 900 - seeds, 900 + seeds), rel=1e-5)
    assert "so its error is unknown" in said(alone)


@pytest.mark.parametrize(
    ("known", "doubt"),
    [
        (estimates(fitted=1500.0), "The two estimates disagree: fitted Q evaluation says 1,500."),
        (estimates(support=0.4), "of its steps are like logged ones: in the model, it leaves the data."),
        (
            estimates(replays=Replays(REPLAYS.logged, 0.3 * REPLAYS.logged)),
            "Held-out episodes with a mean return of 1,000 have one of 300 in the model: it does not "
            "reproduce them.",
        ),
        (None, "Nothing is known of the model's error"),
    ],
)
def test_an_estimate_is_not_relied_on(known: Estimates | None, doubt: str) -> None:
    found = recommended(known)
    start = "These estimates are not to be relied on. By them, the best is rvs with target return 1,000"
    assert found.sentence().startswith(start)
    assert doubt in found.caveats[0]
    assert found.to_json()["reliable"] is False
    assert found.point.target == 1000.0  # which is recommended does not depend on the error of the model


def test_simulated_returns_need_no_reliance() -> None:
    found = recommended(estimates(), simulated=True)
    assert found.sentence().startswith("Use rvs with target return 1,000: expected return 900")
    assert "reliable" not in found.to_json()


def test_offline_environments_keep_the_task() -> None:
    about = summary("hopper-medium")
    learned = dataclasses.replace(about, environment=offline(about.environment))
    assert learned.task == about.task
    assert learned.is_estimated
    assert is_offline(offline(None))
    assert not any(map(is_offline, (None, "Hopper-v4", "ALE/Pong-v5")))
