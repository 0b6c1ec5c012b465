"""Options that several commands share; hyper-parameters come from the frozen values that define them."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import tyro
from tyro.conf import Positional, arg
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from cwbc.system.errors import InputError

Flat = arg(name="")  # the options of a group stand without its name
# The help texts state the defaults themselves: most depend on the preset or on the data.
Whole = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Count = Annotated[int, arg(metavar="N", help_behavior_hint="")]
Text = Annotated[str | None, arg(metavar="TEXT", help_behavior_hint="")]
Environment = Annotated[str | None, arg(metavar="ID", help_behavior_hint="")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, arg(help_behavior_hint="")]
Directory = Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")]
Device = Annotated[Literal["cpu", "gpu"] | None, arg(metavar="cpu|gpu", help_behavior_hint="")]
Trackers = Annotated[str | None, arg(metavar="tensorboard,wandb", help_behavior_hint="")]
Dataset = Annotated[Positional[str], arg(metavar="DATASET", help_behavior_hint="")]
Numbers = Annotated[str | None, arg(metavar="X,X,...", help_behavior_hint="")]
Place = Annotated[Literal["device", "host"] | None, arg(metavar="device|host", help_behavior_hint="")]
PresetName = Annotated[Literal["paper", "small"] | None, arg(metavar="paper|small", help_behavior_hint="")]
Precision = Annotated[
    Literal["float32", "bfloat16"] | None, arg(metavar="float32|bfloat16", help_behavior_hint="")
]
_METAVARS = {int: "N", float: "X", str: "TEXT"}


def options_of(kinds: Iterable[type], name: str, without: Iterable[str] = ()) -> type:
    """A group of options, all absent by default, from the fields of frozen values and their documentation."""
    from cwbc.core.options import documented

    fields: list[Any] = []
    for option in documented(kinds).values():
        if option.name not in without:
            kind: Any = option.type
            metavar = (
                "|".join(get_args(kind)) if get_origin(kind) is Literal else _METAVARS.get(kind, "N,N,...")
            )
            kind = kind if get_origin(kind) is not tuple else str
            marked = Annotated[kind | None, arg(metavar=metavar, help=option.help, help_behavior_hint="")]
            fields.append((option.name, marked, dataclasses.field(default=None)))
    return dataclasses.make_dataclass(name, fields, frozen=True)


def annotated(options: type[Any], text: str) -> Any:
    """Options whose field docstrings are their help; `text` stands for a value there."""
    fields: list[Any] = []
    for name, hint in get_type_hints(options).items():
        shown = arg(metavar=text, help_behavior_hint="") if hint == str | None else arg(help_behavior_hint="")
        fields.append((name, Annotated[hint, shown], None))
    return dataclasses.make_dataclass(options.__name__, fields, bases=(options,), frozen=True)


def given(options: Any) -> dict[str, Any]:
    """The options of a group, and of the groups in it, that were given; lists as tuples of whole numbers."""
    found: dict[str, Any] = {}
    for name, value in vars(options).items():
        if dataclasses.is_dataclass(value):
            found |= given(value)
        elif value is not None:
            found[name] = value
    return found


READ = ConstructorRegistry()


@READ.primitive_rule
def _plainly(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Numbers, choices and texts that may be absent: tyro's own rules accept and mention a value None."""
    kind = _present(info.type)
    if kind is int:
        return _read("N", _number(int, "a whole number"))
    if kind is float:
        return _read("X", _number(float, "a number"))
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        return _read("|".join(choices), str, choices)
    return _read("TEXT", str) if kind is str else None


def _present(kind: Any) -> Any:
    """The type of a value that is not absent."""
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


def check_options(command: Any, arguments: Sequence[str], called: str) -> None:
    """Refuse an option that does not exist, with the nearest one: tyro would print a page of help."""
    known = set(_options(command))
    for before, argument in itertools.pairwise(["", *arguments]):
        if argument == "--":  # no options after this
            return
        name, is_given, value = argument.partition("=")
        name = name.replace("_", "-")
        if not argument.strip() or (name in known and is_given and not value.strip()):
            # An unset variable of the shell; as a path, it would be the current directory.
            option = name.strip() or (before if before in known else "an argument")
            raise InputError(f"{option} is empty; `{called} --help` describes it")
        if not name.startswith("--") or name in known or name == "--help" or name.startswith("--tyro-"):
            continue
        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else f"`{called} --help` lists its options"
        raise InputError(f"unknown option {name} of {called}; {hint}")


def _options(command: Any) -> Iterator[str]:
    """The options of a command, and of the groups in it."""
    for name, kind in get_type_hints(command, include_extras=True).items():
        marks, bare = getattr(kind, "__metadata__", ()), _bare(kind)
        if dataclasses.is_dataclass(bare):
            yield from _options(bare)
        elif Positional not in marks:
            yield "--" + name.replace("_", "-")
            yield from (alias for mark in marks for alias in getattr(mark, "aliases", None) or ())


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
