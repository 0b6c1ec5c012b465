"""Types of options that several commands share, and the two choices of the paper that have options."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional, arg

Flat = arg(name="")  # the options of a group stand without its name
# The help texts state the defaults themselves: most depend on the preset or on the data.
Whole = Annotated[int | None, arg(metavar="N", help_behavior_hint="")]
Real = Annotated[float | None, arg(metavar="X", help_behavior_hint="")]
Environment = Annotated[str | None, arg(metavar="ID", help_behavior_hint="")]
Flag = Annotated[bool, tyro.conf.FlagCreatePairsOff, arg(help_behavior_hint="")]
Directory = Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")]
Device = Annotated[Literal["cpu", "gpu"] | None, arg(metavar="cpu|gpu", help_behavior_hint="")]
Precision = Annotated[
    Literal["float32", "bfloat16"] | None, arg(metavar="float32|bfloat16", help_behavior_hint="")
]
Trackers = Annotated[str | None, arg(metavar="tensorboard,wandb", help_behavior_hint="")]
Dataset = Annotated[Positional[str], arg(metavar="DATASET", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class WeightingOptions:
    """The weighting by return."""

    bins: Whole = None
    """B, bins of the weighting by return (paper: 20)."""
    smoothing: Real = None
    """lambda of the weighting: larger stays closer to the data (paper: 0.01)."""
    temperature: Real = None
    """kappa of the weighting: smaller prefers high returns more (paper: best - z-th percentile)."""
    temperature_percentile: Real = None
    """z, the percentile that sets kappa (paper: 90)."""


@dataclasses.dataclass(frozen=True)
class RaiseOptions:
    """What the conservative regularizer raises, and how far."""

    percentile: Real = None
    """q: the regularizer raises trajectories from this percentile of returns up (paper: 95)."""
    noise: Real = None
    """sigma, standard deviation of the raise (paper: 1000 for locomotion; else range / sqrt(12))."""


def given(options: Any) -> dict[str, Any]:
    """The options of a group, and of the groups in it, that were given."""
    found: dict[str, Any] = {}
    for name, value in vars(options).items():
        if dataclasses.is_dataclass(value):
            found |= given(value)
        elif value is not None:
            found[name] = value
    return found
