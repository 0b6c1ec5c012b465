"""Typed values from JSON that may be damaged: of their type, or an error that names their place."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from cwbc.system.errors import InputError

_LARGEST = 2**63  # whole numbers beyond it fit into no array
_SIMPLE = {str: "a text", bool: "true or false", int: "a whole number", float: "a number"}


def decode(kind: Any, value: Any, place: str) -> Any:
    """A JSON value as a value of a kind (a type hint).

    A dataclass takes exactly its fields, of which those with defaults may be absent; `kind`, where given, is
    its name. A TypedDict may have further keys.

    Args:
        place: of the value, for the error.
    """
    if kind is Any:
        return value
    if get_origin(kind) in (Union, types.UnionType):
        return _one_of(get_args(kind), value, place)
    if get_origin(kind) is Literal:
        known = get_args(kind)
        return _checked(
            isinstance(value, str) and value in known, value, place, " or ".join(map(repr, known))
        )
    if dataclasses.is_dataclass(kind):
        return _dataclass(kind, value, place)
    if is_typeddict(kind):
        return _typed_dict(kind, value, place)
    if kind is type(None):
        return _checked(value is None, value, place, "null")
    if kind in _SIMPLE:
        _checked(_is_simple(kind, value), value, place, _SIMPLE[kind])
        return float(value) if kind is float and abs(value) >= _LARGEST else value
    return _container(kind, value, place)


def _is_simple(kind: type, value: Any) -> bool:
    if kind is float:
        try:
            return isinstance(value, float | int) and not isinstance(value, bool) and math.isfinite(value)
        except OverflowError:  # a whole number beyond all floats
            return False
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) < _LARGEST
    return isinstance(value, kind)


def _container(kind: Any, value: Any, place: str) -> Any:
    """tuple[X, ...] and list[X] from lists, dict[str, X] from objects."""
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (tuple, list):
        _checked(isinstance(value, list), value, place, "a list")
        return origin(decode(arguments[0], each, f"{place}[{n}]") for n, each in enumerate(value))
    if origin is dict:
        _checked(isinstance(value, dict), value, place, "an object")
        return {name: decode(arguments[1], each, f"{place}.{name}") for name, each in value.items()}
    raise TypeError(f"no JSON value is known for {kind}")


def _one_of(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    named: dict[str, Any] = {
        getattr(kind, "__name__", ""): kind for kind in kinds if dataclasses.is_dataclass(kind)
    }
    if named and isinstance(value, dict):
        name = value.get("kind")
        if not isinstance(name, str) or name not in named:
            raise InputError(f"{place}.kind is {_short(name)}; expected {' or '.join(map(repr, named))}")
        return decode(named[name], value, place)
    for kind in kinds:
        if kind not in named.values():
            try:
                return decode(kind, value, place)
            except InputError:
                continue
    wanted = [*(_SIMPLE[kind] for kind in kinds if kind in _SIMPLE), *(["an object"] if named else [])]
    wanted += ["null"] if type(None) in kinds else []
    raise InputError(f"{place} is {_short(value)}; expected {' or '.join(wanted)}")


def _dataclass(kind: Any, value: Any, place: str) -> Any:
    _checked(isinstance(value, dict), value, place, "an object")
    if value.get("kind", kind.__name__) != kind.__name__:
        raise InputError(f"{place}.kind is {_short(value['kind'])}; expected {kind.__name__!r}")
    hints, fields = get_type_hints(kind), {field.name: field for field in dataclasses.fields(kind)}
    given = {name: each for name, each in value.items() if name != "kind"}
    if unknown := sorted(given.keys() - fields.keys()):
        raise InputError(f"{place} has {_short(unknown[0])}, which is unknown; known: {', '.join(fields)}")
    missing = [
        name
        for name, field in fields.items()
        if name not in given
        and field.default is dataclasses.MISSING
        and field.default_factory is dataclasses.MISSING
    ]
    if missing:
        raise InputError(f"{place} lacks {', '.join(missing)}")
    values = {name: decode(hints[name], each, f"{place}.{name}") for name, each in given.items()}
    try:
        return kind(**values)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _typed_dict(kind: Any, value: Any, place: str) -> Any:
    _checked(isinstance(value, dict), value, place, "an object")
    hints = get_type_hints(kind)
    if missing := sorted(kind.__required_keys__ - value.keys()):
        raise InputError(f"{place} lacks {', '.join(missing)}")
    known = {name: decode(hints[name], value[name], f"{place}.{name}") for name in hints if name in value}
    return {**value, **known}


def _checked(valid: bool, value: Any, place: str, wanted: str) -> Any:
    if not valid:
        raise InputError(f"{place} is {_short(value)}; expected {wanted}")
    return value


def _short(value: Any) -> str:
    """A value as JSON, shortened."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, list):
        return "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a huge number"
    return text if len(text) <= 60 else f"{text[:60]}…"
