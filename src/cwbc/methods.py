"""A method is four choices and an optimizer; the paper's table is a dictionary of such values."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from cwbc.conditioning import DEFAULT_SCALE, AverageReturnToGo, Condition, ReturnToGo
from cwbc.errors import InputError, require, unknown
from cwbc.json_values import decode
from cwbc.method_names import NAMES
from cwbc.networks import MLP, Network, Transformer
from cwbc.regularizers import Conservative
from cwbc.trajectories import Trajectories
from cwbc.weighting import ByLength, ByReturn, TopFraction, Weighting

Preset = Literal["paper", "small"]
DEFAULT_SEEDS: Mapping[Preset, int] = {"paper": 10, "small": 3}
_MOST_SEEDS = 10_000  # more are a mistake, and would not fit anywhere
# Steps are counted in 32 bits; beyond the others, whatever memory there is does not do.
_MOST = {"steps": 2**31 - 1, "batch_size": 2**20, "context": 2**16}


@dataclasses.dataclass(frozen=True)
class Optimizer:
    """AdamW with a linear warm-up and then a constant learning rate.

    Args:
        warmup_steps: the length of the warm-up, at most a tenth of the training.
        clip_norm: the largest gradient norm; None leaves gradients alone.
    """

    learning_rate: float = 1e-3
    weight_decay: float = 1e-4
    warmup_steps: int = 10_000
    clip_norm: float | None = None

    def __post_init__(self) -> None:
        require(self.learning_rate > 0, "learning_rate", self.learning_rate, "positive")
        require(self.weight_decay >= 0, "weight_decay", self.weight_decay, "at least 0")
        require(self.warmup_steps >= 0, "warmup_steps", self.warmup_steps, "at least 0")
        require(
            self.warmup_steps <= _MOST["steps"],
            "warmup_steps",
            self.warmup_steps,
            f"at most {_MOST['steps']:,}",
        )
        require(self.clip_norm is None or self.clip_norm > 0, "clip_norm", self.clip_norm, "positive")


@dataclasses.dataclass(frozen=True)
class Method:
    """A point in the design space of return-conditioned behavioural cloning."""

    name: str
    network: Network
    condition: Condition | None
    weighting: Weighting
    regularizer: Conservative | None
    optimizer: Optimizer

    def fit(self, data: Trajectories) -> Method:
        """The same method with every value that depends on the data filled in."""
        return dataclasses.replace(
            self,
            condition=self.condition and self.condition.fit(data),
            regularizer=self.regularizer and self.regularizer.fit(data),
        )


@dataclasses.dataclass(frozen=True)
class Training:
    """How long and on how much at a time.

    Args:
        batch_size: windows in a batch.
        context: K, the steps of a window.
        precision: of the hidden matrix products; weights and optimizer are float32 in either case.
    """

    steps: int = 100_000
    batch_size: int = 64
    context: int = 20
    precision: Literal["float32", "bfloat16"] = "float32"

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require(value >= 1, name, value, "at least 1")
            require(value <= most, name, value, f"at most {most:,}")


def seeds_of(seeds: Any, name: str = "seeds") -> tuple[int, ...]:
    """The seeds that a number of them (then 0, 1, ...) or a list stands for, NumPy's as well."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        count = int(seeds)
        require(count >= 1, name, count, "at least 1")
        require(count <= _MOST_SEEDS, name, count, f"at most {_MOST_SEEDS:,}")
        return tuple(range(count))
    try:
        which = tuple(map(operator.index, seeds))
    except TypeError:
        raise InputError(f"{name} must be a whole number, or a list of such; got {seeds!r}") from None
    valid = 0 < len(which) == len(set(which)) and min(which) >= 0 and max(which) < 2**32
    require(valid, name, list(which), "at least one, all different, from 0 to 2^32 - 1")
    return which


_BASES: Mapping[str, Method] = {
    method.name: method
    for method in (
        Method("bc", MLP(), None, ByLength(), None, Optimizer()),
        Method("rvs", MLP(), AverageReturnToGo(DEFAULT_SCALE), ByLength(), None, Optimizer()),
        Method(
            "dt",
            Transformer(),
            ReturnToGo(condition_scale=DEFAULT_SCALE),
            ByLength(),
            None,
            Optimizer(1e-4, clip_norm=0.25),
        ),
        Method(
            "dt-concat",
            Transformer(tokens="concatenated"),
            ReturnToGo(condition_scale=DEFAULT_SCALE),
            ByLength(),
            None,
            Optimizer(1e-4, clip_norm=0.25),
        ),
    )
}
_PARTS: Mapping[str, Mapping[str, Any]] = {
    "w": {"weighting": ByReturn()},
    "f": {"weighting": TopFraction()},
    "c": {"regularizer": Conservative()},
}
# What the paper calls CWBC: the transformer is conservative by itself, so it only takes the weighting.
_CWBC: Mapping[str, tuple[str, ...]] = {
    "bc": ("w", "c"),
    "rvs": ("w", "c"),
    "dt": ("w",),
    "dt-concat": ("w", "c"),
}
_ALIASES: Mapping[str, str] = {"filtered-bc": "bc+f"}


def parse(name: str) -> Method:
    """The method that a name like `rvs+w+c`, `dt+cwbc` or `filtered-bc` stands for, at the paper's sizes."""
    first, *rest = name.lower().split("+")
    base_name, *parts = [*_ALIASES.get(first, first).split("+"), *rest]
    if base_name not in _BASES:
        raise unknown("method", name, [*METHODS, *_BASES])
    base = _BASES[base_name]
    changes: dict[str, Any] = {}
    for part in (p for written in parts for p in (_CWBC[base_name] if written == "cwbc" else (written,))):
        if part not in _PARTS:
            raise unknown("method", name, METHODS)
        for field, value in _PARTS[part].items():
            if changes.get(field, value) != value:
                raise InputError(f"method {name!r}: +w and +f are two weightings; take one of them")
            changes[field] = value
    return dataclasses.replace(base, name=name.lower(), **changes)


METHODS: Mapping[str, Method] = {name: parse(name) for name in NAMES}


def small(method: Method) -> Method:
    """The same method at a size that trains in minutes on two CPU cores."""
    network, learning_rate = method.network, 1e-3
    if isinstance(network, MLP):
        network, learning_rate = dataclasses.replace(network, width=256), 3e-4
    else:
        network = dataclasses.replace(network, width=64, layers=2)
    optimizer = dataclasses.replace(method.optimizer, learning_rate=learning_rate)
    return dataclasses.replace(method, network=network, optimizer=optimizer)


def sized(name: str, preset: Preset) -> tuple[Method, Training]:
    """A method and its training at a preset's sizes."""
    if preset not in ("paper", "small"):
        raise unknown("preset", preset, ("paper", "small"))
    method = parse(name)
    if preset == "paper":
        return method, Training()
    # A step of a transformer costs several times one of an MLP.
    is_mlp = isinstance(method.network, MLP)
    return small(method), Training(steps=10_000 if is_mlp else 5_000, batch_size=32)


def with_options(
    method: Method, training: Training, options: Mapping[str, Any]
) -> tuple[Method, Training, set[str]]:
    """A method and its training with fields replaced by name wherever they occur, and the names that did."""
    used: set[str] = set()

    def replaced(value: Any) -> Any:
        if not dataclasses.is_dataclass(value) or isinstance(value, type):
            return value
        kinds = get_type_hints(type(value))
        names = [field.name for field in dataclasses.fields(value) if field.name in options]
        mine = {name: _of_kind(kinds[name], name, options[name]) for name in names}
        used.update(mine)
        return dataclasses.replace(value, **mine)

    parts = {f.name: replaced(getattr(method, f.name)) for f in dataclasses.fields(method)}
    return Method(**parts), replaced(training), used


def _of_kind(kind: Any, name: str, value: Any) -> Any:
    """A value of the kind that an option takes, or an error; NumPy's numbers become Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    if get_origin(kind) is Literal:
        known = get_args(kind)
        require(value in known, name, repr(value), " or ".join(known))
        return value
    kinds = get_args(kind) or (kind,)  # (float, NoneType) of float | None
    if value is None and type(None) in kinds:
        return value
    number, wanted = (float | int, "a number") if float in kinds else (int, "a whole number")
    require(isinstance(value, number) and not isinstance(value, bool), name, repr(value), wanted)
    return value


def with_all_options(
    method: Method, training: Training, options: Mapping[str, Any]
) -> tuple[Method, Training]:
    """`with_options`, where it is an error if one replaces nothing."""
    changed, settings, used = with_options(method, training, options)
    if unused := sorted(set(options) - used):
        parts = [getattr(method, field.name) for field in dataclasses.fields(method)]
        choices = [part for part in (*parts, training) if dataclasses.is_dataclass(part)]
        known = sorted({field.name for choice in choices for field in dataclasses.fields(choice)})
        raise InputError(
            f"{method.name} has no option {', '.join(unused)}; those that it has: {', '.join(known)}"
        )
    return changed, settings


_CHOICES = {
    choice.__name__: choice
    for choice in (
        MLP, Transformer, AverageReturnToGo, ReturnToGo, ByLength, ByReturn, TopFraction, Conservative,
        Optimizer, Method, Training,
    )
}  # fmt: skip


def to_json(value: Any) -> Any:
    """A choice as plain JSON values, with its kind."""
    if not dataclasses.is_dataclass(value):
        return value
    fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    # What was added later is left out at its default: what earlier versions trained keeps its name.
    added = {f.name: f.default for f in dataclasses.fields(value) if f.metadata.get("added")}
    kept = {k: to_json(v) for k, v in fields.items() if k not in added or v != added[k]}
    return {"kind": type(value).__name__, **kept}


def from_json(value: Any) -> Any:
    """The choice that to_json wrote; what is wrong with it is told with its place."""
    kind = str(value.get("kind")) if isinstance(value, dict) else type(value).__name__
    if kind not in _CHOICES:
        raise unknown("choice", kind, _CHOICES)
    return decode(_CHOICES[kind], value, kind)
