"""Specifications of policies: fitted to data, as JSON and back, and refused where they are damaged."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from damage import changed
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
SPECS = pytest.mark.parametrize("spec", [RVS, DT, IMAGES], ids=["rvs", "dt", "images"])


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "design.horizon is 0; expected 1 to"),
        ({"actions": {"count": 0}}, "design.actions.count is 0"),
        ({"actions": {"lowest": [1.0], "highest": [1.0]}}, "dimension 0 is from 1.0 to 1.0"),
        ({"actions": {"lowest": [1.0], "highest": []}}, "lowest and highest have 1 and 0 dimensions"),
        ({"actions": {"lowest": [], "highest": []}}, "lowest and highest have 0 and 0 dimensions"),
        ({"method": to_json(METHODS["dt"])}, "condition lacks numbers"),
        ({"observation_size": 0}, "design.observation_size is 0; expected 1 to 10,000,000"),
        ({"observation_size": None}, "design.observation_size is null; expected a whole number"),
        ({"observations": {"height": 10, "width": 10}}, "design.observations lacks channels"),
        (
            {"observations": {"height": 10, "width": 10, "channels": 1, "stack": 0}},
            "design.observations.stack is 0; expected 1 to",
        ),
    ],
)
def test_a_specification_that_cannot_act_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        PolicySpec.from_json(RVS.to_json() | changes)


def test_vectors_are_written_as_in_earlier_versions() -> None:
    """Their statistics are tensors beside the JSON."""
    found = RVS.to_json()
    assert found["observation_size"] == 3
    assert "observations" not in found
    read = PolicySpec.from_json(json.loads(json.dumps(found)))
    assert read.observations == Vector((0.0,) * 3, (1.0,) * 3)


def test_only_numbers_differ_between_specifications_of_one_form() -> None:
    data = toy_data()
    scaled = dataclasses.replace(data, observations=2 * data.observations, rewards=3 * data.rewards)
    one, other = (PolicySpec.fit(tiny("rvs+c"), each, Training()) for each in (data, scaled))
    assert one != other
    assert one.form == other.form


@pytest.mark.parametrize(("name", "steps"), [("rvs", 1), ("dt", 20)])
def test_only_a_transformer_remembers_more_than_one_step(name: str, steps: int) -> None:
    assert PolicySpec.fit(tiny(name), toy_data(), Training()).memory == steps
