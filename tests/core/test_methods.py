"""Names of methods, the paper's values behind them, and their way to JSON and back."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from conftest import with_returns
from toys import cloning, with_cloning

from cwbc.core.cloning import Cloning
from cwbc.core.conditioning import AverageReturnToGo, ReturnToGo
from cwbc.core.methods import (
    METHODS,
    Method,
    Training,
    as_begun,
    method_from_json,
    parse,
    sized,
    to_json,
    with_options,
)
from cwbc.core.networks import MLP, Transformer
from cwbc.core.optimizers import Optimizer
from cwbc.core.regularizers import Conservative
from cwbc.core.weighting import ByLength, ByReturn, TopFraction
from cwbc.system.errors import InputError
from cwbc.system.typed_json import decode


def same_but_for_the_name(one: str, other: str) -> bool:
    return dataclasses.replace(parse(one), name="") == dataclasses.replace(parse(other), name="")


@pytest.mark.parametrize("base", ["bc", "rvs", "dt", "dt-concat"])
@pytest.mark.parametrize(
    ("parts", "weighting", "regularizer"),
    [
        ("", ByLength(), None),
        ("+w", ByReturn(), None),
        ("+f", TopFraction(), None),
        ("+c", ByLength(), Conservative()),
        ("+w+c", ByReturn(), Conservative()),
        ("+c+w", ByReturn(), Conservative()),
        ("+f+c", TopFraction(), Conservative()),
    ],
)
def test_parts_change_their_choice_and_no_other(
    base: str, parts: str, weighting: Any, regularizer: Conservative | None
) -> None:
    method = parse(base + parts)
    assert method.name == base + parts
    assert method.weighting == weighting
    assert method.learner == dataclasses.replace(cloning(parse(base)), regularizer=regularizer)


@pytest.mark.parametrize(
    ("alias", "meaning"),
    [
        ("rvs+cwbc", "rvs+w+c"),
        ("dt+cwbc", "dt+w"),
        ("filtered-bc", "bc+f"),
        ("filtered-bc+c", "bc+f+c"),
        ("dt+cwbc+c", "dt+w+c"),
        ("rvs+w+cwbc", "rvs+w+c"),
        ("RvS+CWBC", "rvs+cwbc"),
    ],
)
def test_aliases(alias: str, meaning: str) -> None:
    assert same_but_for_the_name(alias, meaning)
    assert parse(alias).name == alias.lower()


def test_different_names_are_different_methods() -> None:
    names = ["bc", "bc+f", "rvs", "rvs+w", "rvs+c", "rvs+w+c", "dt", "dt+w", "dt-concat"]
    for i, one in enumerate(names):
        assert not any(same_but_for_the_name(one, other) for other in names[:i])


def test_listed_methods_are_what_their_names_say() -> None:
    assert all(method == parse(name) for name, method in METHODS.items())
    assert {"bc", "filtered-bc", "rvs", "rvs+cwbc", "dt", "dt+cwbc", "dt+w+c", "dt-concat"} <= METHODS.keys()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rsv", r"^unknown method 'rsv'; did you mean 'rvs'\?$"),
        ("rvs+cwcb", r"unknown method 'rvs\+cwcb'; did you mean 'rvs\+cwbc'"),
        ("filterd-bc", r"did you mean 'filtered-bc'"),
        ("rvs+", r"unknown method 'rvs\+'; did you mean"),
        ("rvs w", r"unknown method 'rvs w'; did you mean .*'rvs\+w'"),
        ("+w", r"unknown method '\+w'"),
        ("", r"unknown method ''; known: bc, cql, discrete-cql, dt, "),
        ("zzzzzzz", r"unknown method 'zzzzzzz'; known: bc, cql, discrete-cql, dt, .*filtered-bc, .*rvs"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_near_ones(name: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse(name)


@pytest.mark.parametrize("name", ["rvs+w+f", "dt+f+w", "rvs+cwbc+f", "rvs+f+cwbc", "filtered-bc+w"])
def test_two_weightings_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"\+w and \+f are two weightings; take one of them"):
        parse(name)


def test_the_papers_values() -> None:
    rvs, dt = cloning(parse("rvs+w+c")), cloning(parse("dt+w+c"))
    assert rvs.network == MLP(width=1024, layers=2, dropout=0.0)
    assert rvs.condition == AverageReturnToGo("bounded")  # the one that is not the paper's
    assert rvs.optimizer == Optimizer(
        learning_rate=1e-3, weight_decay=1e-4, warmup_steps=10_000, clip_norm=None
    )
    assert dt.network == Transformer(width=128, layers=3, heads=1, dropout=0.1, tokens="separate")
    assert dt.condition == ReturnToGo(return_scale=None, condition_scale="bounded")
    assert dt.optimizer == Optimizer(
        learning_rate=1e-4, weight_decay=1e-4, warmup_steps=10_000, clip_norm=0.25
    )
    for learner in (rvs, dt):
        assert learner.regularizer == Conservative(percentile=95.0, noise=None, coefficient=1.0)
    weighting = ByReturn(bins=20, smoothing=0.01, temperature=None, temperature_percentile=90.0)
    assert parse("rvs+w+c").weighting == parse("dt+w+c").weighting == weighting
    assert parse("rvs+f").weighting == TopFraction(0.1)
    assert Training() == Training(steps=100_000, batch_size=64, context=20, precision="float32")


def test_bases_differ_where_they_should() -> None:
    rvs, bc, dt, concatenated = map(parse, ("rvs", "bc", "dt", "dt-concat"))
    assert bc == with_cloning(dataclasses.replace(rvs, name="bc"), condition=None)
    tokens = Transformer(tokens="concatenated")
    assert concatenated == with_cloning(dataclasses.replace(dt, name="dt-concat"), network=tokens)


def test_fitting_fills_in_what_depends_on_the_data() -> None:
    fitted = parse("dt+w+c").fit(with_returns(-4, 8))
    learner = cloning(fitted)
    assert learner.condition == ReturnToGo(6.0, "bounded", center=2.0)  # 6 below the mean and 6 above
    assert learner.regularizer is not None
    assert learner.regularizer.width == pytest.approx(12)
    assert fitted.weighting == ByReturn()
    assert fitted.fit(with_returns(0, 100)) == fitted
    assert parse("bc").fit(with_returns(1, 2)) == parse("bc")


@pytest.mark.parametrize("name", METHODS)
def test_methods_come_back_from_json(name: str) -> None:
    data = with_returns(-1, 2 / 3)
    if name == "discrete-cql":
        data = dataclasses.replace(data, actions=np.array([0, 1], np.int32))
    for method in (METHODS[name], sized(name, "small")[0], METHODS[name].fit(data)):
        text = json.dumps(to_json(method), allow_nan=False)
        assert method_from_json(json.loads(text), "method") == method


def test_the_json_of_a_method_has_the_fields_of_its_learner() -> None:
    """As in files of earlier versions, in which cloning was the only learner."""
    assert list(to_json(METHODS["rvs+cwbc"])) == [
        "kind", "name", "network", "condition", "regularizer", "optimizer", "weighting"
    ]  # fmt: skip
    assert to_json(METHODS["bc"])["weighting"] == {"kind": "ByLength"}


def test_training_comes_back_from_json() -> None:
    training = Training(steps=7, batch_size=3, context=2, precision="bfloat16")
    assert "frame_stack" not in to_json(training)  # as in files of earlier versions
    for each in (training, dataclasses.replace(training, frame_stack=2)):
        assert decode(Training, json.loads(json.dumps(to_json(each))), "training") == each


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "Methods"}, r"method\.kind is 'Methods'; expected 'Method'"),
        ({"learner": "Clonning"}, r"method\.learner is 'Clonning'; expected 'Cloning'"),
        ({"learner": ["Cloning"]}, r"method\.learner is \["),
        ({"weighting": {"kind": "ByReturns"}}, r"method\.weighting\.kind is 'ByReturns'; expected"),
        ({"weighting": None}, "method lacks weighting"),
        ({"name": None}, "method lacks name"),
        ({"name": 3}, r"method\.name is 3; expected"),
        ({"network": {"kind": "Perceptron"}}, r"method\.network\.kind is 'Perceptron'; expected 'MLP' or"),
        ({"colour": 1}, "method has 'colour', which is unknown"),
    ],
)
def test_json_that_is_no_method_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        method_from_json({**to_json(METHODS["rvs"]), **changes}, "method")
    with pytest.raises(InputError, match="method is no object"):
        method_from_json([], "method")


@pytest.mark.parametrize("name", METHODS)
def test_small_changes_sizes_only(name: str) -> None:
    method, training = sized(name, "small")
    paper, _ = sized(name, "paper")
    assert paper == METHODS[name]
    assert (method.name, method.weighting) == (paper.name, paper.weighting)
    assert training.steps < Training().steps
    assert training.context == Training().context
    small, large = (getattr(each.learner, "base", each.learner) for each in (method, paper))
    if not isinstance(small, Cloning) or not isinstance(large, Cloning):
        assert small == large
        return
    assert small.network.width < large.network.width
    assert (small.condition, small.regularizer) == (large.condition, large.regularizer)


def test_options_reach_every_choice_and_those_that_did_are_returned() -> None:
    options = {
        "width": 32,
        "return_scale": 5.0,
        "bins": 7,
        "percentile": 80.0,
        "learning_rate": 0.1,
        "steps": 9,
        "top_fraction": 0.5,  # of +f, which this method has not
        "nonsense": 1,
    }
    method, training, used = with_options(parse("dt+w+c"), Training(), options)
    assert used == options.keys() - {"top_fraction", "nonsense"}
    assert method == Method(
        "dt+w+c",
        Cloning(
            Transformer(width=32),
            ReturnToGo(5.0, "bounded"),
            Conservative(percentile=80.0),
            Optimizer(0.1, clip_norm=0.25),
        ),
        ByReturn(bins=7),
    )
    assert training == Training(steps=9)


def test_options_of_absent_choices_are_not_used() -> None:
    options: dict[str, Any] = {"return_scale": 5.0, "percentile": 80.0, "bins": 7, "heads": 2, "name": "x"}
    options |= {"network": 1, "condition": 1, "regularizer": 1, "encoder": 1, "learner": 1, "weighting": 1}
    method, training, used = with_options(parse("bc"), Training(), options)
    assert (method, training, used) == (parse("bc"), Training(), set())


def test_numbers_of_numpy_become_pythons() -> None:
    options = {"coefficient": np.float32(0.5), "width": np.int64(32), "noise": None}
    method, _, _ = with_options(parse("rvs+w+c"), Training(), options)
    assert method_from_json(json.loads(json.dumps(to_json(method))), "method") == method
    assert cloning(method).regularizer == Conservative(coefficient=0.5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 0.0}, "learning_rate must be positive; got 0.0"),
        ({"weight_decay": -1.0}, "weight_decay must be at least 0; got -1.0"),
        ({"warmup_steps": -1}, "warmup_steps must be at least 0 and at most 2,147,483,647; got -1"),
        ({"clip_norm": 0.0}, "clip_norm must be positive; got 0.0"),
        ({"steps": 0}, "steps must be at least 1; got 0"),
        ({"batch_size": -3}, "batch_size must be at least 1; got -3"),
        ({"context": 0}, "context must be at least 1; got 0"),
        ({"bins": 0}, "bins must be at least 1; got 0"),
        ({"percentile": 200.0}, "percentile must be between 0 and 100; got 200.0"),
        ({"learning_rate": float("nan")}, "learning_rate must be positive; got nan"),
        ({"width": 0}, "width must be "),
        ({"dropout": 1.5}, "dropout must be "),
        ({"coefficient": "1"}, "coefficient must be a number; got '1'"),
        ({"noise": True}, "noise must be a number; got True"),
        ({"width": 64.0}, "width must be a whole number; got 64.0"),
        ({"steps": None}, "steps must be a whole number; got None"),
        ({"precision": "float16"}, "precision must be float32 or bfloat16; got 'float16'"),
        ({"channels": 3}, "channels must be a list of whole numbers; got 3"),
        ({"kernels": (3, 0.5)}, r"kernels must be a list of whole numbers; got \(3, 0.5\)"),
        ({"kernels": (3, 3), "strides": (1,)}, "channels, kernels and strides must be equally many"),
        ({"strides": (0,)}, "strides must be 1 to 65,536 each"),
        ({"frame_stack": 65}, "frame_stack must be at most 64; got 65"),
    ],
)
def test_values_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        with_options(parse("rvs+w+c"), Training(), options)


def test_a_training_warms_up_for_a_tenth_of_the_steps_that_it_began_with() -> None:
    method = parse("rvs+w+c")
    begun = as_begun(method, 50)
    assert cloning(begun).optimizer.warmup_steps == 5
    assert with_cloning(begun, optimizer=cloning(method).optimizer) == method
    assert as_begun(method, 10**6) == method
