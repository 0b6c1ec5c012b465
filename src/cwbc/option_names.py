"""Whether commands and options that were typed exist: tyro answers a wrong letter with a page of help."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from tyro.conf import Positional

from cwbc.errors import InputError


def check_names(commands: Any, arguments: Sequence[str], before: str = "") -> None:
    """Refuse a command or an option that does not exist, with the nearest ones; the rest is tyro's to tell.

    Args:
        commands: a union of dataclasses, as tyro takes it.
        before: the command that these are below, such as "data ".
    """
    if not arguments or arguments[0] in ("-h", "--help") or arguments[0].startswith("--tyro-"):
        return
    name, *rest = arguments
    if name.startswith("-"):
        help_command = f"cwbc {before}--help"
        raise InputError(f"{name}: options stand after a command; `{help_command}` lists the commands")
    known = {kind.__name__.lower(): kind for kind in get_args(_bare(commands))}
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {before}{near[0]}?" if near else f"known: {', '.join(known)}"
        raise InputError(f"unknown command {before + name!r}; {hint}")
    below = [kind for kind in get_type_hints(known[name], include_extras=True).values() if _is_choice(kind)]
    if below:
        check_names(below[0], rest, f"{before}{name} ")
    else:
        _check_options(set(_options(known[name])), rest, f"cwbc {before}{name}")


def _check_options(known: set[str], arguments: Sequence[str], command: str) -> None:
    for before, argument in itertools.pairwise(["", *arguments]):
        if argument == "--":  # what follows is no option
            return
        name, is_given, value = argument.partition("=")
        name = name.replace("_", "-")
        if not argument.strip() or (name in known and is_given and not value.strip()):
            # What a shell makes of a variable that is not set; as a path, it would be the directory here.
            option = name.strip() or (before if before in known else "an argument")
            raise InputError(f"{option} is empty; `{command} --help` says what it takes")
        if not name.startswith("--") or name in known or name == "--help" or name.startswith("--tyro-"):
            continue
        near = difflib.get_close_matches(name, sorted(known), n=1)
        hint = f"did you mean {near[0]}?" if near else f"`{command} --help` lists its options"
        raise InputError(f"unknown option {name} of {command}; {hint}")


def _options(command: Any) -> Iterator[str]:
    """The options of a command, and of the groups in it."""
    for name, kind in get_type_hints(command, include_extras=True).items():
        marks = getattr(kind, "__metadata__", ())
        if dataclasses.is_dataclass(_bare(kind)):
            yield from _options(_bare(kind))
        elif Positional not in marks:
            yield "--" + name.replace("_", "-")
            yield from (alias for mark in marks for alias in getattr(mark, "aliases", None) or ())


def _is_choice(kind: Any) -> bool:
    """Whether a field is another command, one of several."""
    kinds = get_args(_bare(kind))
    return bool(kinds) and all(map(dataclasses.is_dataclass, kinds))


def _bare(kind: Any) -> Any:
    return get_args(kind)[0] if get_origin(kind) is Annotated else kind
