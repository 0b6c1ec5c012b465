"""Options that several commands share; hyper-parameters come from the frozen values that define them."""

from __future__ import annotations

import dataclasses
import difflib
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from tyro.conf import FlagCreatePairsOff, Positional, arg
from tyro.constructors import ConstructorRegistry, PrimitiveConstructorSpec, PrimitiveTypeInfo

from cwbc.core.options import documented, present
from cwbc.system.errors import InputError, require

if TYPE_CHECKING:
    from cwbc.core.methods import Method
    from cwbc.core.tasks import Task

Flat = arg(name="")  # the options of a group stand without its name
# The help texts state the defaults themselves: most depend on the preset or on the data.
Whole = Annotated[int | None, arg(help_behavior_hint="")]
Count = Annotated[int, arg(help_behavior_hint="")]
Environment = Annotated[str | None, arg(metavar="ID", help_behavior_hint="")]
Flag = Annotated[bool, FlagCreatePairsOff, arg(help_behavior_hint="")]
EPISODES, FEW_EPISODES = 10, 2  # of an evaluation; of games, which take thousands of steps, on a CPU
OFFLINE_MEANS = "returns are estimated with a model of the data, not simulated"
Offline = Annotated[
    bool,
    FlagCreatePairsOff,
    arg(help="Estimate returns with a model of the data, without a simulator.", help_behavior_hint=""),
]
Directory = Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")]
Device = Annotated[
    Literal["cpu", "gpu"] | None,
    arg(help="Where to compute (default: the GPU when there is one).", help_behavior_hint=""),
]
Json = Annotated[bool, FlagCreatePairsOff, arg(help="Print JSON, for programs.", help_behavior_hint="")]
Trackers = Annotated[str | None, arg(metavar="tensorboard,wandb", help_behavior_hint="")]
Dataset = Annotated[Positional[str], arg(metavar="DATASET", help_behavior_hint="")]
Numbers = Annotated[str | None, arg(metavar="X,X,...", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class SweepOptions:
    """The target returns of an evaluation."""

    targets: Numbers = None
    """Target returns, comma-separated (default: the paper's sweep for the task, and the dataset's best; none
    for +q, which chooses its own)."""
    episodes: Whole = None
    """Episodes per seed and target (default: 10; 2 in a comparison on large images with the small preset)."""

    def of(self, method: Method, targets: tuple[float, ...]) -> tuple[float, ...]:
        """The targets of a method; one that chooses its own (+q) is given none unless the user names some."""
        chooses = method.is_conditioned and not method.learner.needs_target
        return () if chooses and self.targets is None else targets

    def plan(
        self, task: Task, best: float, default_episodes: int = EPISODES
    ) -> tuple[tuple[float, ...], int]:
        """The target returns, and the episodes of each."""
        episodes = default_episodes if self.episodes is None else self.episodes
        require(episodes >= 1, "--episodes", episodes, "at least 1")
        if self.targets is None:
            return task.targets(best), episodes
        try:
            targets = sorted({float(text) for text in self.targets.split(",")})
        except ValueError:
            what = f"--targets takes numbers such as 1000,2000,3000; got {self.targets!r}"
            raise InputError(what) from None
        for target in targets:
            require(math.isfinite(target), "--targets", target, "finite")
            if task.published and target <= 0 < task.near_return:
                raise InputError(f"--targets must be positive for this task; got {target:g}")
        return tuple(targets), episodes


def options_of(kinds: Iterable[type], name: str, without: Sequence[str] = (), text: str = "TEXT") -> type:
    """A group of options, all absent by default, from the documented fields of frozen values."""
    fields: list[Any] = []
    for option in documented(kinds).values():
        if option.name not in without:
            is_list = get_origin(option.type) is tuple
            metavar = "N,N,..." if is_list else text if option.type is str else None  # others have their own
            shown = arg(metavar=metavar, help=option.help, help_behavior_hint="")
            kind: Any = str if is_list else option.type
            field = dataclasses.field(default=None, metadata={"is_list": is_list})
            fields.append((option.name, Annotated[kind | None, shown], field))
    return dataclasses.make_dataclass(name, fields, frozen=True)


def given(options: Any) -> dict[str, Any]:
    """The options of a group that were given."""
    found = {}
    for field in dataclasses.fields(options):
        if (value := getattr(options, field.name)) is not None:
            found[field.name] = _whole_numbers(field.name, value) if field.metadata.get("is_list") else value
    return found


def _whole_numbers(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(int(number) for number in text.split(","))
    except ValueError:
        flag = name.replace("_", "-")
        raise InputError(f"--{flag} takes whole numbers such as 32,32,64; got {text!r}") from None


READ = ConstructorRegistry()
_PLAIN = {int: ("N", "a whole number"), float: ("X", "a number"), str: ("TEXT", "a text")}


@READ.primitive_rule
def _plainly(info: PrimitiveTypeInfo) -> PrimitiveConstructorSpec[Any] | None:
    """Numbers, choices and texts that may be absent: tyro's own rules accept and mention a value None."""
    kind = present(info.type)
    choices = get_args(kind) if get_origin(kind) is Literal else None
    if choices is None and kind not in _PLAIN:
        return None
    metavar, called = ("|".join(choices), "") if choices else _PLAIN[kind]

    def read(texts: list[str]) -> Any:
        (text,) = texts
        if not text.strip():  # an unset variable of the shell; as a path, it would be the current directory
            raise ValueError("the value is empty")
        try:
            return text if choices else kind(text)
        except ValueError:
            raise ValueError(f"{text!r} is not {called}") from None

    return PrimitiveConstructorSpec(
        nargs=1,
        metavar=metavar,
        instance_from_str=read,
        is_instance=lambda value: True,  # a default is of its type, as mypy knows
        str_from_instance=lambda value: [str(value)],
        choices=choices,
    )


def check_options(command: Any, arguments: Sequence[str], called: str) -> None:
    """Refuse an unknown option, and an empty value; tyro would print a page, or report another mistake."""
    known = {"--help", *_options(command)}
    for before, argument in itertools.pairwise(["", *arguments]):
        if argument == "--":  # no options after this
            return
        name, is_given, value = argument.partition("=")
        name = name.replace("_", "-")
        if not argument.strip() or (name in known and is_given and not value.strip()):
            # An unset variable of the shell; as a path, it would be the current directory.
            option = name.strip() or (before if before in known else "an argument")
            raise InputError(f"{option} is empty; `{called} --help` describes it")
        if name.startswith("--") and name not in known and not name.startswith("--tyro-"):
            near = difflib.get_close_matches(name, sorted(known), n=1)
            hint = f"did you mean {near[0]}?" if near else f"`{called} --help` lists its options"
            raise InputError(f"unknown option {name} of {called}; {hint}")


def _options(command: Any) -> Iterator[str]:
    """The options of a command, and of the groups in it."""
    for name, kind in get_type_hints(command, include_extras=True).items():
        marks = getattr(kind, "__metadata__", ())
        if dataclasses.is_dataclass(group := get_args(kind)[0] if marks else kind):
            yield from _options(group)
        elif Positional not in marks:
            yield "--" + name.replace("_", "-")
            yield from (alias for mark in marks for alias in getattr(mark, "aliases", None) or ())
