"""Values from JSON: whole when they are of their kind, refused with their place when they are not."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Literal, TypedDict

import pytest

from cwbc.core.methods import to_json
from cwbc.core.networks import MLP
from cwbc.core.optimizers import Optimizer
from cwbc.system.errors import InputError
from cwbc.system.typed_json import decode


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
def test_an_error_names_the_place_of_what_is_wrong(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"^{message}"):
        decode(Part, value, "part")


def test_a_table_lacks_what_it_needs_and_refuses_wrong_kinds() -> None:
    with pytest.raises(InputError, match=r"^table lacks part, counts"):
        decode(Table, {}, "table")
    with pytest.raises(InputError, match=r"^table\.counts\.a is 'x'; expected a whole number"):
        decode(Table, {"part": {"size": 1}, "counts": {"a": "x"}}, "table")
