"""Options as the frozen values define them: name, type and one line of help, from fields and docstrings."""

from __future__ import annotations

import dataclasses
import inspect
import re
import types
from collections.abc import Iterable
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints


class Option(NamedTuple):
    """A field that users can set."""

    name: str
    type: Any  # of a value that is given
    help: str


def documented(kinds: Iterable[type]) -> dict[str, Option]:
    """The options of frozen values and of their parts, by name: the fields that docstrings explain."""
    found: dict[str, Option] = {}
    for kind in kinds:
        hints, lines = get_type_hints(kind), _arguments(inspect.getdoc(kind) or "")
        for field in dataclasses.fields(kind):
            name, hint = field.name, hints[field.name]
            parts: list[Any] = [each for each in (hint, *get_args(hint)) if dataclasses.is_dataclass(each)]
            own = [Option(name, present(hint), lines[name])] if name in lines else []
            for option in (*own, *documented(parts).values()):
                found.setdefault(option.name, option)
    return found


def _arguments(text: str) -> dict[str, str]:
    """The lines of a docstring's `Args:`, joined, as sentences."""
    _, _, section = text.partition("Args:\n")
    entries = re.findall(r"^    (\w+): (.*(?:\n        .*)*)", section, re.MULTILINE)
    sentences = {name: " ".join(words.split()) for name, words in entries}
    # A symbol of the paper, as in "lambda, larger stays ...", is no word.
    return {
        name: words if words.split()[0].endswith(",") else words[0].upper() + words[1:]
        for name, words in sentences.items()
    }


def present(kind: Any) -> Any:
    """The type of a value that is not absent."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    (only,) = (each for each in get_args(kind) if each is not types.NoneType)
    return only
