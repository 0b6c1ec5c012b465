"""Specifications of policies: fitted to data, as JSON and back, and refused where they are damaged."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from damage import changed
from pixels import pixel_data
from toys import tiny, toy_data, with_cloning

from cwbc.core.conditioning import AverageReturnToGo, ReturnToGo
from cwbc.core.encoders import Convolutions
from cwbc.core.methods import METHODS, Training, to_json
from cwbc.core.networks import Transformer
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Continuous, Discrete, Image, Vector
from cwbc.system.errors import InputError

UNIT = Vector((0.0,) * 3, (1.0,) * 3)
RVS = PolicySpec(
    with_cloning(METHODS["rvs+cwbc"], condition=AverageReturnToGo("bounded", 1.0, 2.0)),
    UNIT,
    Continuous((-1.0, 0.0), (1.0, 60.0)),
    horizon=10,
    context=4,
)
DT = PolicySpec(
    with_cloning(METHODS["dt"], condition=ReturnToGo(5.0), network=Transformer(width=8)),
    UNIT,
    Discrete(4),
    horizon=10,
    context=4,
)
IMAGES = dataclasses.replace(
    RVS,
    method=with_cloning(RVS.method, encoder=Convolutions((8,), (3,), (1,))),
    observations=Image(10, 10, 1, stack=2),
)
CLIPPED = dataclasses.replace(IMAGES, clipped_rewards=True)
SPECS = pytest.mark.parametrize("spec", [RVS, DT, CLIPPED], ids=["rvs", "dt", "images"])


@SPECS
def test_a_damaged_specification_is_refused_or_still_one(spec: PolicySpec) -> None:
    whole = json.loads(json.dumps(spec.to_json()))
    assert PolicySpec.from_json(whole) == spec
    generator, errors = np.random.default_rng(0), []
    for _ in range(400):
        try:
            assert isinstance(PolicySpec.from_json(changed(whole, generator)), PolicySpec)
        except InputError as error:
            errors.append(str(error))
    assert len(errors) > 250
    assert all(text.startswith("design") for text in errors)  # its place


def bounds(lowest: list[float], highest: list[float]) -> dict[str, Any]:
    return {"kind": "Continuous", "lowest": lowest, "highest": highest}


def vectors(mean: list[float], std: list[float]) -> dict[str, Any]:
    return {"kind": "Vector", "mean": mean, "std": std}


def images(**sizes: int) -> dict[str, Any]:
    return {"kind": "Image", "height": 10, "width": 10, **sizes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "design.horizon must be 1 to .*; got 0"),
        ({"actions": {"kind": "Discrete", "size": 0}}, "design.actions: size must be 1 to .*; got 0"),
        ({"actions": bounds([1.0], [1.0])}, "design.actions: dimension 0 is from 1.0 to 1.0"),
        ({"actions": bounds([1.0], [])}, "lowest and highest have 1 and 0 dimensions"),
        ({"actions": bounds([], [])}, "lowest and highest have 0 and 0 dimensions"),
        ({"method": to_json(METHODS["dt"])}, "condition lacks numbers"),
        ({"observations": vectors([], [])}, "0 means and 0 stds from 0; expected as many, at least one"),
        (
            {"observations": vectors([1.0], [0.0])},
            "observations: 1 means and 1 stds from 0.0; expected",
        ),
        ({"observations": None}, "design.observations is null; expected an object"),
        ({"observations": images()}, "design.observations lacks channels"),
        ({"observations": images(channels=1, stack=0)}, "design.observations: stack must be 1 to .*; got 0"),
    ],
)
def test_a_specification_that_cannot_act_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PolicySpec.from_json(RVS.to_json() | changes)


def test_only_numbers_differ_between_specifications_of_one_form() -> None:
    data = toy_data()
    scaled = dataclasses.replace(data, observations=2 * data.observations, rewards=3 * data.rewards)
    one, other = (PolicySpec.fit(tiny("rvs+c"), each, Training()) for each in (data, scaled))
    assert one != other
    assert one.form == other.form


@pytest.mark.parametrize(("name", "steps"), [("rvs", 1), ("dt", 20)])
def test_only_a_transformer_remembers_more_than_one_step(name: str, steps: int) -> None:
    assert PolicySpec.fit(tiny(name), toy_data(), Training()).memory == steps


def test_rewards_are_clipped_where_those_of_the_data_are() -> None:
    rewards = np.array([-7.0, -0.5, 0.0, 25.0])
    np.testing.assert_array_equal(IMAGES.remaining_after(np.full(4, 90.0), rewards), [97, 90.5, 90, 65])
    np.testing.assert_array_equal(CLIPPED.remaining_after(np.full(4, 90.0), rewards), [91, 90.5, 90, 89])
    assert "clipped_rewards" not in IMAGES.to_json()  # as in files of earlier versions
    assert CLIPPED.form == IMAGES.form  # one compiled program
    data = toy_data()
    assert PolicySpec.fit(tiny("rvs"), data.with_clipped_rewards(), Training()).clipped_rewards


def test_actions_are_sampled_by_default_where_observations_are_images() -> None:
    training = Training(context=4)
    pixels = PolicySpec.fit(tiny("rvs"), pixel_data(10), training)
    numbers = PolicySpec.fit(tiny("rvs"), toy_data(discrete=True), training)
    continuous = PolicySpec.fit(tiny("rvs"), toy_data(), training)
    assert [spec.sampled for spec in (pixels, numbers, continuous)] == [True, False, False]
    assert PolicySpec.from_json(json.loads(json.dumps(pixels.to_json()))) == pixels
    assert "sampled" not in numbers.to_json()  # as in files of earlier versions
    assert numbers.acting("sampled").sampled
    assert not pixels.acting("greedy").sampled
    assert (pixels.acting(None), numbers.acting(None)) == (pixels, numbers)
    with pytest.raises(InputError, match="rvs has no distribution to sample actions from; only cloned"):
        continuous.acting("sampled")
    with pytest.raises(InputError, match="unknown choice of actions 'random'; known: greedy, sampled"):
        pixels.acting("random")  # type: ignore[arg-type]
    assert PolicySpec.from_json({**RVS.to_json(), "note": "of another program"}) == RVS
    with pytest.raises(InputError, match=r"design: rvs\+cwbc has no distribution"):
        PolicySpec.from_json({**RVS.to_json(), "sampled": True})
