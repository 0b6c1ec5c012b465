"""What is said in words: when each sentence is said, when not, and that it is true when it is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import logged, with_returns

from cwbc.core.regularizers import Conservative
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.data.advice import advice
from cwbc.data.statistics import DatasetStatistics

RANDOM = np.random.default_rng(0)
SPREAD = RANDOM.normal(50, 20, 200)


def described(data: Trajectories, **settings: Any) -> DatasetStatistics:
    weighting = {k: v for k, v in settings.items() if k in ByReturn.__dataclass_fields__}
    regularizer = {k: v for k, v in settings.items() if k in Conservative.__dataclass_fields__}
    return DatasetStatistics.of(data, ByReturn(**weighting), Conservative(**regularizer))


def said(data: Trajectories, **settings: Any) -> str:
    """All advice, in one text with plain spaces."""
    return "\n".join(advice(described(data, **settings))).replace("\u00a0", " ")


def lasting(*returns: float, steps: int = 4, **settings: Any) -> Trajectories:
    """Episodes of several steps, paid at the end."""
    return logged(*([0] * (steps - 1) + [each] for each in returns), **settings)


def known(*returns: float, **settings: Any) -> Trajectories:
    """The same in an environment with a limit, so that nothing has to be said about that."""
    return lasting(*returns, environment="Some-v0", time_limit=4, **settings)


def test_ordinary_data_needs_few_words() -> None:
    lines = advice(described(known(*SPREAD)))
    assert len(lines) == 2
    assert lines[-1].startswith("Next: `cwbc compare logged rvs rvs+cwbc`")


@pytest.mark.parametrize(
    "data",
    [
        known(*SPREAD),
        lasting(1, 2, 4),
        lasting(*[0] * 90, *[1] * 10),
        lasting(*RANDOM.uniform(0, 9, 100), 1000),
        lasting(*-SPREAD, environment="Hopper-v5"),
    ],
)
def test_advice_is_short_and_ends_with_a_command(data: Trajectories) -> None:
    lines = advice(described(data))
    assert len(lines) <= 6
    assert [line.startswith("Next: `cwbc ") for line in lines] == [False] * (len(lines) - 1) + [True]
    assert all(len(line) < 250 for line in lines)


def test_equal_returns_are_for_bc() -> None:
    text = said(lasting(*[5] * 30))
    assert "All 30 episodes return 5: conditioning on the return has nothing to learn; plain bc" in text
    assert "Next: `cwbc compare logged bc`" in text
    assert "Next: `cwbc compare logged bc`" in said(known(*[5] * 30))
    for word in ("eighting", "regularizer", "Near the best"):
        assert word not in text
    assert "return about 5:" in said(lasting(*np.linspace(5, 5 + 2e-6, 30)))
    assert "The only episode returns 3.5: " in said(lasting(3.5))
    assert "bc is the right choice" not in said(lasting(5, 5.1))


def test_few_episodes() -> None:
    assert "Only 3 episodes: " in said(lasting(1, 2, 4))
    assert "Only 1 episode: " in said(lasting(1))
    assert "Only" not in said(lasting(*range(20)))


def test_single_steps() -> None:
    assert "Every episode is a single step." in said(with_returns(*range(30)))
    assert "single step" not in said(logged([1], [1, 2]))


def test_missing_ends() -> None:
    data = known(*SPREAD)
    assert "50 % of the steps are excluded" in said(dataclasses.replace(data, unfinished_steps=data.steps))
    assert "excluded" not in said(dataclasses.replace(data, unfinished_steps=30))


def test_the_expert_lies_beyond() -> None:
    text = said(lasting(*SPREAD, environment="Hopper-v5", time_limit=1000))
    assert "The expert return, 3,200, exceeds the best in the dataset" in text
    assert "expert" not in said(lasting(*SPREAD, 3200, environment="Hopper-v5", time_limit=1000))
    assert "expert" not in said(known(*SPREAD))


def test_an_outlier_and_that_the_remedies_work() -> None:
    data = known(*RANDOM.uniform(0, 9, 100), 1000)
    text = said(data)
    assert "One episode has a far higher return than the rest: it returns 1,000, the next 8.9" in text
    assert "effective sample size" not in text
    before = described(data)
    share = before.by_return.top_fraction
    assert f"Weighting samples it {100 * share:.0f} % of the time" in text
    assert described(data, smoothing=0.1).by_return.top_fraction < share
    assert described(data, temperature=2 * before.temperature).by_return.top_fraction < share
    assert "Is it genuine?" in said(data, smoothing=100.0)
    assert "far higher return" not in said(known(*SPREAD))
    assert "far higher return" not in said(known(*[0] * 99, 1))  # a success, not an outlier


def test_weighting_that_concentrates() -> None:
    data = known(*SPREAD)
    text = said(data, temperature=1.0)
    count = described(data, temperature=1.0).by_return.effective_sample_size
    assert f"With weighting, the effective sample size is only {count:.0f} episode" in text
    assert "A --temperature above 1 prefers high returns less, a --smoothing above 0.01" in text
    assert described(data, temperature=9.0).by_return.effective_sample_size > count
    assert "effective sample size" not in said(data)
    assert "effective sample size" not in said(known(*[0] * 90, *[1] * 10))  # ten to learn from


def test_ties_at_the_top() -> None:
    text = said(known(*[0] * 90, *[1] * 10))
    assert "top 5 % tie at 1: 10 of 100 episodes, 10 % of the samples without weighting, over 99 %" in text
    assert "weighting matters, and the regularizer little" in text
    # Where nearly all are at the top, weighting has nothing to do either.
    text = said(known(*[0] * 5, *[1] * 95))
    assert "The top 5 % tie at 1: 95 of 100 episodes. If no higher" in text
    assert "then the regularizer matters little" in text
    # Where an expert is known to earn more, asking for more makes sense.
    text = said(lasting(*[0] * 90, *[1] * 10, environment="Hopper-v5"))
    assert "tie at 1" in text
    assert "no higher return" not in text


def test_weighting_of_successes_and_that_the_remedy_works() -> None:
    data = known(*[0] * 60, *[1] * 40)
    text = said(data)
    assert "With weighting, over 99 % of the samples are successes: the policy clones them" in text
    assert "a --temperature above 0.1 samples more failures beside them" in text
    before = described(data).by_return.top_fraction
    assert described(data, temperature=0.5).by_return.top_fraction < before - 0.05
    assert "Next: `cwbc compare logged bc rvs rvs+w`" in text
    assert "successes" not in said(known(*[0] * 5, *[1] * 95))  # which weighting does not change
    assert "successes" not in said(known(*[0] * 60, *[2] * 40))
    assert "rvs rvs+cwbc`" in said(known(*[0] * 60, *[2] * 40))


def test_rare_successes() -> None:
    data = known(*[0] * 96, *[1] * 4)
    text = "4 of 100 episodes have a return above the min, 0; the regularizer adds noise to no others"
    assert text in said(data)
    assert described(data).noise.episodes == 4
    assert "a --percentile below" not in said(data)


def test_a_thin_top_and_a_broad_one() -> None:
    data = known(*SPREAD)
    found = described(data)
    assert f"{found.returns.top} of 200 episodes have a return near the best " in said(data)
    assert found.by_return.top_fraction > 2 * found.by_length.top_fraction
    broad = known(*RANDOM.uniform(95, 100, 100), 0)
    assert "99 % of the steps are from episodes near the best return already" in said(broad)


def test_weighting_that_lowers_the_returns_and_that_the_remedy_works() -> None:
    data = known(*range(20), *RANDOM.uniform(19, 20, 500))
    found = described(data, temperature=100.0, smoothing=0.0)
    assert found.by_return.mean_return < found.by_length.mean_return
    assert "Weighting lowers the mean return" in said(data, temperature=100.0, smoothing=0.0)
    better = described(data, temperature=10.0, smoothing=0.0)
    assert better.by_return.mean_return > found.by_return.mean_return
    assert "Weighting lowers" not in said(data)


def test_what_the_regularizer_rests_on() -> None:
    data = known(*range(40))
    assert "The regularizer adds noise to 2 episodes only; a --percentile below 95 includes" in said(data)
    assert described(data, percentile=80.0).noise.episodes > described(data).noise.episodes
    assert "adds noise to" not in said(data, percentile=80.0)
    assert "With a noise of 0" in said(data, noise=0.0)
    assert "noise of 0" not in said(data)


def test_short_successes() -> None:
    data = logged(*[[0] * 20] * 30, *[[0, 1]] * 30)
    text = said(data)
    assert "High returns are in short episodes" in text
    assert "the mean return is 0.09091 sampled by length, 0.5 per episode" in text
    assert "short episodes" not in said(known(*SPREAD))


def test_returns_below_zero() -> None:
    assert "No return is above zero" in said(known(*-np.arange(1, 40)))
    assert "above zero" not in said(known(*range(-20, 20)))


def test_rewards_that_only_count_the_steps() -> None:
    data = logged(*[[1.0] * length for length in range(1, 40)])
    assert "Every reward is 1: a return is only the length of its episode" in said(data)
    assert "Every reward" not in said(known(*SPREAD))


def changed(edit: Callable[[Any], Any], field: str, **settings: Any) -> Trajectories:
    data = known(*SPREAD)
    return dataclasses.replace(data, **{field: edit(getattr(data, field).copy())}, **settings)


def test_observations_and_actions_that_never_change() -> None:
    still = changed(lambda a: a * 0, "observations", observation_names=("speed", "dose"))
    assert "2 observations never change (speed, dose): " in said(still)
    assert "1 action never changes (actions[0]): every policy will output only that" in said(
        changed(lambda a: a * 0 + 0.3, "actions")
    )
    many = changed(lambda a: np.zeros((len(a), 5), np.float32), "observations")
    assert "(observations[0], observations[1], observations[2], and 2 more)" in said(many)
    assert "never" not in said(known(*SPREAD))


def test_discrete_actions_that_never_occur() -> None:
    data = changed(lambda a: np.arange(len(a), dtype=np.int32) % 3, "actions", action_count=5)
    assert "2 actions never occur (3, 4): " in said(data)
    assert "never occur" not in said(dataclasses.replace(data, action_count=3))


def test_wide_actions() -> None:
    assert "Actions reach 2.99" in said(changed(lambda a: a * -3, "actions"))
    assert "Actions reach" not in said(known(*SPREAD))


def test_what_is_not_known_of_the_environment() -> None:
    text = said(lasting(*SPREAD))
    assert "No environment is known: returns are estimated from the data" in text
    assert "the longest episode, 4 steps, is used instead. 200 of 200 terminations are there: " in text
    assert "if that is the limit, import with --time-limit 4." in text
    assert "is used instead (rvs" in said(logged([1], [1, 2], [1, 2, 3]))
    assert "Next: `cwbc compare logged rvs rvs+cwbc`" in text
    text = said(lasting(*SPREAD, environment="Some-v0", time_limit=3))
    assert "Episodes have up to 4 steps, but the time limit of Some-v0 is 3. Is it the right one?" in text


def test_the_command_carries_the_name_and_the_options() -> None:
    found = described(known(*SPREAD), bins=7, temperature_percentile=80.0, noise=2.5)
    line = advice(found, "my data/$x.hdf5")[-1]
    assert "`cwbc compare 'my data/$x.hdf5' rvs rvs+cwbc" in line
    assert "rvs+cwbc --bins 7 --temperature-percentile 80.0 --noise 2.5`" in line
