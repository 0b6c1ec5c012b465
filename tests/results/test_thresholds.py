"""Limits for the metrics of a report: how they are typed, and when they fail."""

from __future__ import annotations

import numpy as np
import pytest
from pages import about

from cwbc.core.tasks import Task, task_for
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.sweeps import Sweep
from cwbc.results.thresholds import Gate, check_methods, failures, metrics_of, parse
from cwbc.system.errors import InputError

TASK = Task(expert_return=10.0, random_score=0.0, expert_score=20.0, far_return=20.0, near_return=1.0)


def method(*returns: float, targets: tuple[float, ...] = (2.0, 5.0, 20.0)) -> EvaluatedMethod:
    """A method whose one seed achieves these returns; scores are five times those, the data's best is 5."""
    achieved = np.array(returns)[None, :, None]
    sweep = Sweep("", np.arange(1), np.array(targets), achieved, np.ones(achieved.shape, np.int64))
    return EvaluatedMethod.of(sweep, about(TASK, best=5.0))


# Retentions of 1 / 5 and 4 / 5, monotonicities of the same; calibration errors of 0 and (3 + 0) / 2 x 5.
TAKES = {"rvs": True, "rvs+cwbc": True}
METHODS = {"rvs": method(2.0, 5.0, 1.0), "rvs+cwbc": method(5.0, 5.0, 4.0)}


def test_limits_are_parsed_with_their_method() -> None:
    under = ["ood_retention=0.9, at_expert=-5", "rvs+cwbc:monotonicity=.5"]
    assert parse(under, ["rvs (runs/a:b=c):calibration_error=5"]) == [
        Gate("ood_retention", 0.9),
        Gate("at_expert", -5.0),
        Gate("monotonicity", 0.5, "rvs+cwbc"),
        Gate("calibration_error", 5.0, "rvs (runs/a:b=c)"),
    ]
    assert parse([], []) == []


def test_a_limit_may_name_runs_that_settings_tell_apart() -> None:
    both = "rvs (width 8, steps 5):ood_retention=0.1, rvs (width 9, steps 5):at_expert=2"
    assert parse([both], []) == [
        Gate("ood_retention", 0.1, "rvs (width 8, steps 5)"),
        Gate("at_expert", 2.0, "rvs (width 9, steps 5)"),
    ]


@pytest.mark.parametrize(
    ("under", "over", "message"),
    [
        ("ood_retenton=0.9", "", "metric for --fail-under 'ood_retenton'; did you mean 'ood_retention'"),
        (
            "seeds=3",
            "",
            "unknown metric for --fail-under 'seeds'; known: at_best_plus_range, at_dataset_best, at_e",
        ),
        ("ood_retention", "", "takes METRIC=NUMBER, such as ood_retention=0.9; got 'ood_retention'"),
        ("ood_retention=0.9,", "", "--fail-under takes METRIC=NUMBER, such as ood_retention=0.9; got ''"),
        ("rvs:=0.9", "", "takes METRIC=NUMBER"),
        ("ood_retention=high", "", "ood_retention takes a number, such as ood_retention=0.9; got 'high'"),
        ("at_expert=", "", "at_expert takes a number, such as ood_retention=0.9; got ''"),
        ("ood_retention=nan", "", "takes a number"),
        ("best_point=-inf", "", "takes a number"),
        ("ood_retention=90", "", "takes a fraction, at most 1, such as ood_retention=0.9; got 90"),
        ("rvs:calibration_error=5", "", "better when lower; give --fail-over rvs:calibration_error=5"),
        ("", "monotonicity=1", "better when higher; give --fail-under monotonicity=1"),
    ],
)
def test_what_makes_no_sense_is_refused(under: str, over: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse([under] if under else [], [over] if over else [])


def test_a_limit_holds_for_every_method() -> None:
    (line,) = failures([Gate("ood_retention", 0.75)], METHODS)
    assert line == "rvs: ood_retention is 0.2, below 0.75"
    assert len(failures([Gate("ood_retention", 0.9)], METHODS)) == 2
    assert failures([Gate("ood_retention", 0.1), Gate("calibration_error", 8.0)], METHODS) == []


def test_a_limit_itself_is_kept() -> None:
    assert failures([Gate("best_point", 25.0), Gate("calibration_error", 7.5)], METHODS) == []
    assert failures([Gate("best_point", 25.0 * (1 + 1e-15))], METHODS) == []  # rounding is nobody's failure
    lines = failures([Gate("best_point", 25.1), Gate("calibration_error", 7.4)], METHODS)
    assert lines == [
        "rvs: best_point is 25, below 25.1",
        "rvs+cwbc: best_point is 25, below 25.1",
        "rvs+cwbc: calibration_error is 7.5, above 7.4",
    ]


def test_a_limit_may_be_for_one_method() -> None:
    assert failures([Gate("monotonicity", 0.75, "rvs+cwbc")], METHODS) == []
    assert failures([Gate("monotonicity", 0.75, "rvs")], METHODS) == ["rvs: monotonicity is 0.2, below 0.75"]
    with pytest.raises(InputError, match=r"unknown method 'rvs\+cwb'; did you mean 'rvs\+cwbc'"):
        check_methods([Gate("monotonicity", 0.75, "rvs+cwb")], TAKES)
    check_methods([Gate("monotonicity", 0.75), Gate("monotonicity", 0.75, "rvs")], TAKES)


def test_a_limit_on_following_targets_is_not_about_methods_without_one() -> None:
    returns = np.array([[[5.0]]])
    once = Sweep("bc", np.arange(1), np.array([np.nan]), returns, np.ones(returns.shape, np.int64))
    methods = {"bc": EvaluatedMethod.of(once, about(TASK, best=5.0)), **METHODS}
    takes = {"bc": False, **TAKES}
    every = Gate("ood_retention", 0.75)
    check_methods([every, Gate("at_expert", 1.0, "bc")], takes)
    assert failures([every], methods) == ["rvs: ood_retention is 0.2, below 0.75"]
    assert failures([Gate("at_twice_expert", 30.0, "bc")], methods) == ["bc: at_twice_expert is 25, below 30"]
    for gate, among in ((Gate("ood_retention", 0.75, "bc"), takes), (every, {"bc": False})):
        with pytest.raises(InputError, match="bc has no target, so there is no ood_retention to limit"):
            check_methods([gate], among)


def test_limits_have_the_names_of_the_task() -> None:
    unpublished = metrics_of(task_for(None, -5.0, 5.0))
    assert parse(["at_best_plus_range=50"], [], unpublished) == [Gate("at_best_plus_range", 50.0)]
    for wrong in ("at_expert", "at_twice_expert"):
        with pytest.raises(InputError, match=f"no {wrong} on this task; known: .*at_best_plus_range") as info:
            parse([f"{wrong}=50"], [], unpublished)
        assert "expert" not in str(info.value).replace(wrong, "")
    with pytest.raises(InputError, match=r"no at_best_plus_range on this task; known: .*at_twice"):
        parse(["at_best_plus_range=50"], [], metrics_of(TASK))


def test_what_could_not_be_computed_fails() -> None:
    near = {"rvs": method(4.0, targets=(3.0,)), "dt": method(np.nan, targets=(3.0,))}
    assert failures([Gate("ood_retention", 0.0), Gate("calibration_error", 100.0)], near) == [
        "rvs: ood_retention could not be computed; wanted at least 0",
        "dt: ood_retention could not be computed; wanted at least 0",
        "rvs: calibration_error could not be computed; wanted at most 100",
        "dt: calibration_error could not be computed; wanted at most 100",
    ]
    assert failures([Gate("best_point", -100.0)], near) == [
        "dt: best_point could not be computed; wanted at least -100"
    ]
