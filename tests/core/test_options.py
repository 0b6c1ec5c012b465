"""Options: as documented, they are the fields of the classes that they configure."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, get_args, get_type_hints

import pytest

from cwbc.core.actor_critic import ActorCritic
from cwbc.core.conditioning import AverageReturnToGo, ReturnToGo
from cwbc.core.cql import ConservativeQ
from cwbc.core.encoders import Convolutions
from cwbc.core.iql import ImplicitQ
from cwbc.core.methods import CHOICES, METHODS, Training, options_of
from cwbc.core.networks import MLP, Transformer
from cwbc.core.optimizers import Optimizer
from cwbc.core.options import documented
from cwbc.core.regularizers import Conservative
from cwbc.core.target_choice import TargetChoice
from cwbc.core.weighting import ByReturn, TopFraction

CLASSES = (
    Training, MLP, Transformer, Convolutions, Optimizer, ReturnToGo, AverageReturnToGo, ByReturn, TopFraction,
    Conservative, ActorCritic, ImplicitQ, ConservativeQ, TargetChoice,
)  # fmt: skip
PARTS = {"network", "base"}  # fields with fields of their own
OPTIONS = documented(CHOICES)


@pytest.mark.parametrize("kind", CLASSES)
def test_options_have_the_types_of_the_fields(kind: type[Any]) -> None:
    hints = get_type_hints(kind)
    for field in (each for each in dataclasses.fields(kind) if each.name not in PARTS):
        assert OPTIONS[field.name].type in (hints[field.name], *get_args(hints[field.name]))


def test_every_option_of_every_method_is_documented() -> None:
    fields = {field.name for kind in CLASSES for field in dataclasses.fields(kind)} - PARTS
    assert OPTIONS.keys() == fields
    assert set().union(*(options_of(method, Training()) for method in METHODS.values())) == fields


@pytest.mark.parametrize("name", OPTIONS)
def test_help_is_one_short_sentence(name: str) -> None:
    text = OPTIONS[name].help
    assert text[0].isupper() or text.split()[0].endswith(",")
    assert text.endswith(".")
    assert re.search(r"\((paper|default|TD3\+BC|IQL|CQL)\b[^()]*: ", text)
    assert len(text) <= 110


def test_values_from_help_are_the_papers() -> None:
    assert OPTIONS["bins"].help == "B, bins of the returns (paper: 20)."
    assert OPTIONS["clip_norm"].type is float
    assert OPTIONS["channels"].type == tuple[int, ...]
