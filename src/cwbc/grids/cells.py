"""Experiments as values: grids of datasets x methods x hyper-parameters, defined without reading any data."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np

from cwbc.core.conditioning import DEFAULT_SCALE, ConditionScale
from cwbc.core.device import default_precision
from cwbc.core.methods import Method, Preset, Training, seeds_of, sized, with_all_options
from cwbc.system.errors import InputError, require


@dataclasses.dataclass(frozen=True)
class Cell:
    """One method on one dataset with all its seeds: its training and its evaluation."""

    dataset: str  # a name or a path, as in `cwbc compare`
    label: str  # the method's name in tables and charts, unique within its dataset
    method: Method  # at its final sizes
    training: Training
    seeds: tuple[int, ...]
    targets: tuple[float, ...] | None = None  # None takes the task's sweep and the dataset's best; () none
    episodes: int = 10
    points: int | None = None  # so many of the task's sweep, always with the dataset's best, 1x and 2x expert
    fractions: tuple[float, ...] = ()  # additional target returns, as fractions of the dataset's best
    offline: bool = False  # returns are estimated with a model of the data, even if there is a simulator

    def __post_init__(self) -> None:
        require(bool(self.label.strip()), "the label of a cell", repr(self.label), "a name")
        different = bool(self.seeds) and len(set(self.seeds)) == len(self.seeds)
        require(different, f"{self.label}: seeds", self.seeds, "at least one, all different")
        has_target = self.targets != () or not self.method.learner.needs_target
        require(has_target, f"{self.label}: targets", self.targets, "at least one number")
        require(self.episodes >= 1, f"{self.label}: episodes", self.episodes, "at least 1")
        require(self.points is None or self.points >= 1, f"{self.label}: points", self.points, "at least 1")
        if self.points is not None and self.targets is not None:
            raise InputError(f"{self.label}: points are of the task's sweep, and not of given targets")


@dataclasses.dataclass(frozen=True)
class Variant:
    """A method by name with options, as the command line takes them."""

    label: str  # "alpha = 0.1"
    method: str  # "rvs+cwbc"
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)  # {"coefficient": 0.1}

    def __post_init__(self) -> None:
        for name, value in (("label", self.label), ("method", self.method)):
            require(isinstance(value, str), f"the {name} of a variant", repr(value), "a text")


@dataclasses.dataclass(frozen=True)
class Scale:
    """The size of an experiment."""

    preset: Preset
    steps: int | None = None  # of training; None takes the preset's
    seeds: int = 10  # how many
    episodes: int = 10  # per seed and target
    points: int | None = None  # the number of target returns from the sweep, as in Cell
    precision: Literal["float32", "bfloat16"] | None = None  # of hidden matmuls; None: the device's default
    condition_scale: ConditionScale = DEFAULT_SCALE  # of methods that are conditioned on a return

    def __post_init__(self) -> None:
        for name in ("steps", "seeds", "episodes", "points"):
            count = getattr(self, name)
            if isinstance(count, np.integer):
                count = int(count)
                object.__setattr__(self, name, count)
            is_left_open = count is None and name in ("steps", "points")
            valid = is_left_open or (isinstance(count, int) and count >= 1)
            require(valid, name, repr(count), "a whole number, at least 1")


def grid(
    datasets: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    variants: Iterable[Variant | str] | Variant | str,
    scale: Scale,
    targets: Sequence[float] | None = None,
) -> tuple[Cell, ...]:
    """Every variant on every dataset, dataset by dataset; a variant may be a method's name alone."""
    paths = several(datasets, (str, os.PathLike), "datasets are names or paths")
    names = [os.fspath(path) for path in paths]
    variants = several(variants, (Variant, str), "variants are cwbc.Variants or names of methods")
    if not isinstance(scale, Scale):
        raise InputError(f"scale must be a cwbc.Scale; got a {type(scale).__name__}")
    named = [Variant(each, each) if isinstance(each, str) else each for each in variants]
    labels = [variant.label for variant in named]
    if twice := sorted({label for label in labels if labels.count(label) > 1}):
        raise InputError(f"two variants are called {twice[0]!r}; each needs a label of its own")
    if again := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"dataset {again[0]} is there twice; give it once")
    methods, seeds = [_method(variant, scale) for variant in named], seeds_of(scale.seeds)
    target_returns = None if targets is None else _numbers(targets)
    return tuple(
        Cell(dataset, label, method, training, seeds, target_returns, scale.episodes, scale.points)
        for dataset in names
        for label, (method, training) in zip(labels, methods, strict=True)
    )


def several(given: Any, kinds: tuple[type, ...], wanted: str) -> tuple[Any, ...]:
    """Values of some kinds, of which one may be given alone."""
    is_one = isinstance(given, kinds) or not isinstance(given, Iterable) or isinstance(given, str)
    found = (given,) if is_one else tuple(given)
    for each in found:
        if not isinstance(each, kinds):
            raise InputError(f"{wanted}; got a {type(each).__name__}")
    return found


def _numbers(targets: Iterable[Any]) -> tuple[float, ...]:
    try:
        if not isinstance(targets, str):
            return tuple(map(float, targets))
    except (TypeError, ValueError):
        pass
    raise InputError(f"targets must be numbers, such as [1000, 2000]; got {targets!r}")


def _method(variant: Variant, scale: Scale) -> tuple[Method, Training]:
    options: dict[str, Any] = {"precision": scale.precision or default_precision()}
    options |= {} if scale.steps is None else {"steps": scale.steps}
    try:
        method, training = sized(variant.method, scale.preset)
        if method.is_conditioned:
            options["condition_scale"] = scale.condition_scale
        return with_all_options(method, training, options | dict(variant.options))
    except InputError as error:
        raise InputError(f"{variant.label}: {error}") from error
