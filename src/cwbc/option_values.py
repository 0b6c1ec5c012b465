"""How the values of options are read, and what is said of a wrong one."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, Literal, Union, get_args, get_origin

from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

READ = ConstructorRegistry()


@READ.primitive_rule
def _plainly(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Numbers, choices and texts that may be left out: tyro's own rules take and tell of a value None."""
    kind = _given(info.type)
    if kind is int:
        return _read("N", _number(int, "a whole number"))
    if kind is float:
        return _read("X", _number(float, "a number"))
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return _read("|".join(choices), str, choices)
    return _read("TEXT", str) if kind is str else None


def _given(kind: Any) -> Any:
    """The type of a value that is there."""
    if get_origin(kind) not in (Union, types.UnionType):
        return kind
    kinds = [each for each in get_args(kind) if each is not types.NoneType]
    return kinds[0] if len(kinds) == 1 else kind


def _number(kind: Callable[[str], Any], called: str) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return kind(text)
        except ValueError:
            raise ValueError(f"{text!r} is not {called}") from None

    return read


def _read(
    metavar: str, parse: Callable[[str], Any], choices: tuple[str, ...] | None = None
) -> PrimitiveConstructorSpec[Any]:
    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=lambda texts: parse(texts[0]),
        is_instance=lambda value: True,  # a default is of its type, as mypy knows
        str_from_instance=lambda value: [str(value)],
        choices=choices,
    )
