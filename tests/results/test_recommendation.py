"""What to deploy: the choice and its caveats, on curves for which a person would know the answer."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.recommendation import Recommendation, recommend
from cwbc.results.sweeps import Sweep
from cwbc.system.formatting import PERCENT

# Without published references: returns of 0 to 100 are their own scores, 200 is the best + range.
DATASET = DatasetSummary("mine", None, "abc", 9, 90, 0.0, 100.0, 40.0, (0.0, 50.0, 100.0), (5, 4))
TARGETS = (0.0, 40.0, 80.0, 100.0, 120.0, 160.0, 200.0)
FOLLOWS = (5.0, 41.0, 78.0, 90.0, 91.0, 90.0, 92.0)
COLLAPSES = (1.0, 40.0, 79.0, 92.0, 60.0, 10.0, -40.0)
FLAT = (70.0, 71.0, 69.0, 70.0, 72.0, 70.0, 71.0)


def sweep(*curve: float, seeds: int = 3, apart: float = 1.0, targets: tuple[float, ...] = TARGETS) -> Sweep:
    """Seeds that are this far apart around a curve."""
    around = apart * (np.arange(seeds) - (seeds - 1) / 2)
    returns = (np.array(curve) + around[:, None])[:, :, None]
    return Sweep("", np.arange(seeds), np.array(targets), returns, np.ones(returns.shape, np.int64))


def once(achieved: float, seeds: int = 3, apart: float = 1.0) -> Sweep:
    return sweep(achieved, seeds=seeds, apart=apart, targets=(np.nan,))


def recommended(warnings: tuple[str, ...] = (), **sweeps: Sweep) -> Recommendation:
    """Of methods by name; two underscores are a plus."""
    methods = {
        name.replace("__", "+"): EvaluatedMethod.of(each, DATASET, warnings) for name, each in sweeps.items()
    }
    found = recommend(methods)
    assert found is not None
    return found


def said(found: Recommendation) -> str:
    return " ".join([found.sentence(), *found.caveats]).replace(PERCENT, " %")


def test_one_method_that_follows_its_target_needs_no_caveat() -> None:
    found = recommended(rvs__cwbc=sweep(*FOLLOWS))
    # Three seeds at 89, 90 and 91 have an interval of 4.302653 / sqrt(3) around 90.
    assert said(found) == (
        "Use rvs+cwbc with target return 100: expected return 90, 95 % interval 87.52 to 92.48 (score 90.0)."
    )
    assert found.to_json()["target"] == 100.0
    assert found.to_json()["deploy"] is True


def test_a_target_within_the_data_is_preferred_to_one_beyond_that_is_no_better() -> None:
    assert recommended(rvs=sweep(*FOLLOWS[:4], 94.0, 94.9, 93.0)).point.target == 100.0
    # Twice as far below the best point, but within what seeds do to that.
    assert recommended(rvs=sweep(*FOLLOWS[:4], 94.0, 99.0, 93.0, apart=6.0)).point.target == 100.0


def test_a_target_beyond_the_data_is_the_lowest_that_is_good() -> None:
    found = recommended(rvs=sweep(0.0, 38.0, 70.0, 75.0, 95.0, 97.0, 96.0))
    assert found.point.target == 120.0
    assert "The target is out-of-distribution: the dataset's best return is 100." in found.caveats


def test_a_collapse_at_higher_targets_is_a_caveat() -> None:
    found = recommended(rvs=sweep(*COLLAPSES))
    assert found.point.target == 100.0
    assert "Do not raise the target: at 200 it achieves −40." in found.caveats


SUCCESSES = DatasetSummary("mine", None, "abc", 10, 90, 0.0, 1.0, 0.4, (0.0, 0.5, 1.0), (6, 4))
UNIT = (0.0, 0.5, 1.0, 2.0)


def of_successes(*curve: float, apart: float = 0.01) -> Recommendation:
    rates = sweep(*curve, apart=apart, targets=UNIT)
    episodes = (np.arange(200) < 200 * rates.returns).astype(np.float64)
    rates = dataclasses.replace(rates, returns=episodes, lengths=np.ones(episodes.shape, np.int64))
    method = EvaluatedMethod.of(rates, SUCCESSES)
    found = recommend({"rvs": method})
    assert found is not None
    return found


def test_of_successes_the_target_is_success_and_the_return_a_rate() -> None:
    # As good at any target: the best one is not 0, as it would be for returns.
    found = of_successes(0.93, 0.9, 0.9, 0.9)
    # 540 of 600, with Student's 4.302653 for three seeds: more than the seeds at 89, 90 and 91 % differ.
    assert said(found) == (
        "Use rvs with target return 1: expected success rate 90 %, 95 % interval 83 % to 94 %."
    )
    assert "success rate 100 %, 95 % interval 97 % to 100 %." in said(of_successes(1, 1, 1, 1, apart=0))
    assert of_successes(0.5, 0.9, 0.7, 0.6).point.target == 0.5  # clearly better
    worse = said(of_successes(0.1, 0.1, 0.2, 0.1))
    assert worse.startswith(
        "No policy to deploy. The best one, rvs with target return 1, achieves a success rate"
    )
    # A rate does not leave 0 to 1, however far apart the seeds are.
    assert "interval 5 % to 95 %" in said(of_successes(0.5, 0.5, 0.5, 0.5, apart=0.4))


def test_one_seed_that_succeeds_alone_has_no_interval_of_its_fractions() -> None:
    returns = np.zeros((3, 4, 5))
    returns[1, 2:] = 1
    lengths = np.ones(returns.shape, np.int64)
    method = EvaluatedMethod.of(Sweep("", np.arange(3), np.array(UNIT), returns, lengths), SUCCESSES)
    for name in ("ood_retention", "monotonicity"):
        estimate = method.metrics[name]
        assert estimate.value == 1
        assert np.isnan([estimate.low, estimate.high]).all()


def test_seeds_that_all_succeed_have_no_certain_fractions() -> None:
    returns = np.ones((3, 4, 5))
    sweep = Sweep("", np.arange(3), np.array(UNIT), returns, np.ones(returns.shape, np.int64))
    method = EvaluatedMethod.of(sweep, SUCCESSES)
    for name, value in (("ood_retention", 1.0), ("monotonicity", 1.0), ("calibration_error", 50.0)):
        estimate = method.metrics[name]
        assert estimate.value == value
        assert np.isnan([estimate.low, estimate.high]).all()
    at_best = method.metrics["at_dataset_best"]
    # 15 successes of 15, and Student's 4.302653 for three seeds.
    assert at_best.value == 100
    assert at_best.low == pytest.approx(100 / (1 + 4.302653**2 / 15))


def test_of_methods_alike_the_reliable_one_is_used() -> None:
    found = recommended(rvs=sweep(*COLLAPSES), rvs__cwbc=sweep(*FOLLOWS))
    assert found.method == "rvs+cwbc"
    assert found.caveats == (
        f"Inconclusive: its 95{PERCENT} interval overlaps with that of rvs (92).",
        "Preferred for its reliability at nearly the same return: "
        f"OOD retention is 100{PERCENT}, that of rvs 0{PERCENT}.",
    )
    # A method that is better for certain is used, whatever becomes of it beyond the data.
    clear = recommended(rvs=sweep(*COLLAPSES), rvs__cwbc=sweep(*(each - 10 for each in FOLLOWS)))
    assert clear.method == "rvs"
    assert "overlaps" not in said(clear)


def test_the_overlap_with_several_others_is_said() -> None:
    found = recommended(
        a=sweep(*FOLLOWS), b=sweep(*FOLLOWS), c=sweep(*(each - 1 for each in FOLLOWS)), bc=once(30.0)
    )
    assert (
        f"Inconclusive: its 95{PERCENT} interval overlaps with those of b (90) and c (89)." in found.caveats
    )


def test_a_method_without_a_target_may_be_the_best() -> None:
    found = recommended(bc=once(97.0), rvs=sweep(*FOLLOWS))
    assert found.sentence().startswith("Use bc, without a target: expected return 97, 95")
    assert found.caveats == ()
    assert recommended(bc=once(80.0), rvs=sweep(*FOLLOWS)).method == "rvs"


@pytest.mark.parametrize(("seeds", "words"), [(1, "One seed"), (2, "Two seeds")])
def test_few_seeds_are_a_caveat(seeds: int, words: str) -> None:
    found = recommended(rvs=sweep(*FOLLOWS, seeds=seeds), bc=once(50.0, seeds))
    assert said(found) == (
        f"Use rvs with target return 100: expected return 90 (score 90.0). "
        f"{words}: too few seeds for an interval."
    )


def test_a_flat_curve_does_not_follow_its_target() -> None:
    (caveat,) = recommended(dt=sweep(*FLAT)).caveats
    assert caveat == (
        "Flat curve: the policy does not follow its target (it achieves 69 to 71 for targets from 0 to 100)."
    )
    (caveat,) = recommended(dt=sweep(40.0, 60.0, 75.0, 90.0, 90.0, 90.0, 90.0)).caveats
    assert "does not follow its target closely" in caveat
    assert "by 18.8 points of score on average" in caveat  # 40, 20, 5 and 10


def test_nothing_worse_than_the_data_is_recommended() -> None:
    found = recommended(rvs=sweep(*[-20.0] * 7), bc=once(30.0))
    assert not found.deploy
    assert said(found).startswith("No policy to deploy. The best one, bc, without a target, achieves 30")
    assert "The dataset's mean return is higher: 40." in found.caveats
    # Not for certain: seeds may do that much.
    unsure = recommended(bc=once(38.0, apart=3.0))
    assert unsure.deploy
    assert "The dataset's mean return is higher: 40." in unsure.caveats


def test_training_warnings_are_a_caveat() -> None:
    assert (
        "Its training ended with warnings." in recommended(("The loss rose.",), rvs=sweep(*FOLLOWS)).caveats
    )


def test_what_was_not_evaluated_is_not_recommended() -> None:
    assert recommend({}) is None
    lost = EvaluatedMethod.of(sweep(*[np.nan] * 7), DATASET)
    assert recommend({"rvs": lost}) is None
    found = recommended(rvs=sweep(*[np.nan] * 7), dt=sweep(*FOLLOWS[:3], np.nan, *FOLLOWS[4:]))
    assert (found.method, found.point.target) == ("dt", 120.0)


@pytest.mark.parametrize("seeds", [3, 10])
def test_noise_rarely_moves_the_choice_out_of_the_data(seeds: int) -> None:
    """The best point of a curve that holds beyond the data is anywhere; it is used within all the same."""
    generator = np.random.default_rng(0)
    chosen = []
    for _ in range(100):
        curve = sweep(*FOLLOWS[:4], *[FOLLOWS[3]] * 3, seeds=seeds)
        returns = curve.returns + generator.normal(0, 6, curve.returns.shape)
        chosen.append(recommended(rvs=dataclasses.replace(curve, returns=returns)).point.target)
    assert sum(target in (80.0, 100.0) for target in chosen) >= 90


@pytest.mark.parametrize(
    ("curve", "where"),
    [((300.0,) * 7, "above the dataset's best"), ((-900.0,) * 7, "below the dataset's min")],
)
def test_clipped_rewards_are_another_unit_than_achieved_returns(curve: tuple[float, ...], where: str) -> None:
    dataset = dataclasses.replace(DATASET, clipped_rewards=True)
    evaluated = EvaluatedMethod.of(sweep(*curve), dataset)
    assert not evaluated.metrics["calibration_error"].is_known
    found = recommend({"rvs": evaluated})
    assert found is not None
    text = " ".join(found.caveats)
    assert "Targets are sums of rewards clipped to [-1, 1], as in the data; achieved returns are not." in text
    assert where not in text


@pytest.mark.parametrize(
    ("curve", "where"),
    [((300.0,) * 7, "above the dataset's best"), ((-900.0,) * 7, "below the dataset's min")],
)
def test_an_environment_in_other_units_is_a_caveat(curve: tuple[float, ...], where: str) -> None:
    found = recommended(rvs=sweep(*curve))
    wanted = (
        f"Every achieved return is {where}: are rewards, observations and actions in the units of the logs?"
    )
    assert wanted in found.caveats
