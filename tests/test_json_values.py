"""Values from JSON: whole when they are of their kind, refused with their place when they are not."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal, TypedDict

import numpy as np
import pytest
from damage import changed

from cwbc.conditioning import AverageReturnToGo, ReturnToGo
from cwbc.design import Design
from cwbc.errors import InputError
from cwbc.json_values import decode
from cwbc.methods import METHODS, Method, Optimizer, to_json
from cwbc.networks import MLP, Transformer
from cwbc.spaces import Continuous, Discrete


@dataclasses.dataclass(frozen=True)
class Part:
    size: int
    rate: float = 0.5
    kinds: tuple[str, ...] = ()
    way: Literal["up", "down"] = "up"
    other: Optimizer | MLP | None = None


class Table(TypedDict):
    part: Part
    counts: dict[str, int]


def test_values_of_their_kinds_are_taken_and_defaults_may_be_absent() -> None:
    assert decode(Part, {"size": 3}, "part") == Part(3)
    whole = Part(3, 1, ("a", "b"), "down", MLP(width=8))
    assert decode(Part, json.loads(json.dumps(to_json(whole))), "part") == whole
    table = decode(Table, {"part": {"size": 1}, "counts": {"a": 1}, "more": "is left alone"}, "table")
    assert table == {"part": Part(1), "counts": {"a": 1}, "more": "is left alone"}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "part lacks size"),
        ([], "part is a list; expected an object"),
        ({"size": 1, "sice": 2}, "part has 'sice', which is unknown; known: size, rate"),
        ({"size": True}, "part.size is true; expected a whole number"),
        ({"size": 1.5}, "part.size is 1.5; expected a whole number"),
        ({"size": 2**70}, "part.size is .*; expected a whole number"),
        ({"size": 1, "rate": float("nan")}, "part.rate is nan; expected a number"),
        ({"size": 1, "rate": 10**400}, "part.rate is 1000.*…; expected a number"),
        ({"size": 1, "kinds": "ab"}, "part.kinds is 'ab'; expected a list"),
        ({"size": 1, "kinds": ["a", None]}, r"part.kinds\[1\] is null; expected a text"),
        ({"size": 1, "way": "left"}, "part.way is 'left'; expected 'up' or 'down'"),
        ({"size": 1, "other": 3}, "part.other is 3; expected an object or null"),
        ({"size": 1, "other": {}}, "part.other.kind is null; expected 'Optimizer' or 'MLP'"),
        ({"size": 1, "other": {"kind": ["MLP"]}}, "part.other.kind is a list; expected"),
        ({"size": 1, "other": {"kind": "MLP", "width": 0}}, "part.other: width must be"),
        ({"kind": "Whole", "size": 1}, "part.kind is 'Whole'; expected 'Part'"),
    ],
)
def test_whatever_is_wrong_is_told_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        decode(Part, value, "part")


def test_a_table_lacks_what_it_needs_and_refuses_wrong_kinds() -> None:
    with pytest.raises(InputError, match=r"^table lacks counts, part"):
        decode(Table, {}, "table")
    with pytest.raises(InputError, match=r"^table\.counts\.a is 'x'; expected a whole number"):
        decode(Table, {"part": {"size": 1}, "counts": {"a": "x"}}, "table")


@pytest.mark.parametrize("name", METHODS)
def test_every_method_comes_back(name: str) -> None:
    assert decode(Method, json.loads(json.dumps(to_json(METHODS[name]))), "method") == METHODS[name]


DESIGNS = [
    Design(
        dataclasses.replace(METHODS["rvs+cwbc"], condition=AverageReturnToGo("bounded", 1.0, 2.0)),
        3,
        Continuous((-1.0, 0.0), (1.0, 60.0)),
        10,
        4,
    ),
    Design(
        dataclasses.replace(METHODS["dt"], condition=ReturnToGo(5.0), network=Transformer(width=8)),
        3,
        Discrete(4),
        10,
        4,
    ),
]


@pytest.mark.parametrize("design", DESIGNS, ids=["rvs", "dt"])
def test_a_damaged_design_is_refused_or_still_one(design: Design) -> None:
    whole = json.loads(json.dumps(design.to_json()))
    assert Design.from_json(whole) == design
    generator, told = np.random.default_rng(0), []
    for _ in range(400):
        try:
            assert isinstance(Design.from_json(changed(whole, generator)), Design)
        except InputError as error:
            told.append(str(error))
    assert len(told) > 250
    assert all(text.startswith("design") for text in told)  # where it stands


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"horizon": 0}, "design.horizon is 0; expected 1 to"),
        ({"actions": {"count": 0}}, "design.actions.count is 0"),
        ({"actions": {"lowest": [1.0], "highest": [1.0]}}, "dimension 0 is from 1.0 to 1.0"),
        ({"actions": {"lowest": [1.0], "highest": []}}, "lowest and highest have 1 and 0 dimensions"),
        ({"actions": {"lowest": [], "highest": []}}, "lowest and highest have 0 and 0 dimensions"),
        ({"method": to_json(METHODS["dt"])}, "condition lacks numbers"),
    ],
)
def test_a_design_that_cannot_act_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Design.from_json(DESIGNS[0].to_json() | changes)
