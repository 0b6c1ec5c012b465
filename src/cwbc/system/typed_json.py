"""Typed values from JSON that may be damaged: of their type, or an error that names their place."""

from __future__ import annotations

import dataclasses
import json
import sys
import types
from dataclasses import is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict

from cwbc.system.errors import InputError

_LARGEST = 2**63  # whole numbers beyond it fit into no array
_SIMPLE = {str: "a text", bool: "true or false", int: "a whole number", float: "a number", type(None): "null"}


def decode(kind: Any, value: Any, place: str) -> Any:
    """A JSON value as a value of a kind (a type hint); errors name the place.

    A dataclass takes exactly its fields, of which those with defaults may be absent; `kind`, where given, is
    its name. A TypedDict may have further keys.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if origin in (Union, types.UnionType):
        return _one_of(arguments, value, place)
    if origin is Literal:
        known = isinstance(value, str) and value in arguments
        return _checked(known, value, place, " or ".join(map(repr, arguments)))
    if kind in _SIMPLE:
        _checked(_is_simple(kind, value), value, place, _SIMPLE[kind])
        return float(value) if kind is float and abs(value) >= _LARGEST else value
    if origin in (tuple, list):
        _checked(isinstance(value, list), value, place, "a list")
        return origin(decode(arguments[0], each, f"{place}[{n}]") for n, each in enumerate(value))
    _checked(isinstance(value, dict), value, place, "an object")
    if origin is dict:
        return {name: decode(arguments[1], each, f"{place}.{name}") for name, each in value.items()}
    return _fields(kind, value, place)


def _is_simple(kind: type, value: Any) -> bool:
    if kind not in (int, float):
        return isinstance(value, kind)
    is_number = isinstance(value, int | kind) and not isinstance(value, bool)
    return is_number and (abs(value) <= sys.float_info.max if kind is float else abs(value) < _LARGEST)


def _one_of(kinds: tuple[Any, ...], value: Any, place: str) -> Any:
    named = {kind.__name__: kind for kind in kinds if is_dataclass(kind) and isinstance(kind, type)}
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
    wanted = dict.fromkeys(_SIMPLE.get(kind, "an object") for kind in kinds)
    return _checked(False, value, place, " or ".join(wanted))


def _fields(kind: Any, value: dict[str, Any], place: str) -> Any:
    """A dataclass or a TypedDict from an object."""
    hints = get_type_hints(kind)
    if is_typeddict(kind):
        required = kind.__required_keys__
    else:
        name = kind.__name__
        _checked(value.get("kind", name) == name, value.get("kind"), f"{place}.kind", repr(name))
        if unknown := sorted(value.keys() - hints.keys() - {"kind"}):
            raise InputError(f"{place} has {_short(unknown[0])}, which is unknown; known: {', '.join(hints)}")
        fields, none = dataclasses.fields(kind), dataclasses.MISSING
        required = {field.name for field in fields if field.default is field.default_factory is none}
    if missing := [name for name in hints if name in required - value.keys()]:
        raise InputError(f"{place} lacks {', '.join(missing)}")
    decoded = {name: decode(hints[name], value[name], f"{place}.{name}") for name in hints if name in value}
    if is_typeddict(kind):
        return value | decoded
    try:
        return kind(**decoded)
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _checked(valid: bool, value: Any, place: str, wanted: str) -> Any:
    if not valid:
        raise InputError(f"{place} is {_short(value)}; expected {wanted}")
    return value


def _short(value: Any) -> str:
    """A value as JSON, shortened."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a huge number"
    return text if len(text) <= 60 else f"{text[:60]}…"
