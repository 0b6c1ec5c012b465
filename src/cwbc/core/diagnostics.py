"""Signs in the metrics of a finished training that it went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.system.formatting import listed, percent

ROSE = 1.1  # times its early value: a loss that ends above it has risen
APART = 2.0  # times the median over seeds: a seed whose loss is higher is far from the others
NOTABLE = 0.005  # of a loss: what is less is nothing to worry about
SATURATED = 0.5  # of the predicted actions at the ends of their range, beyond what was logged there
CONSTANT = 0.02  # of the logged actions' standard deviation: predictions that vary less are constant
_FEW = 2  # rows of metrics, fewer of which show no trend

Values = NDArray[np.float64]


def training_warnings(
    metrics: Sequence[Mapping[str, Any]], seeds: Sequence[int], method: Mapping[str, Any]
) -> list[str]:
    """Warnings with the likely cause and a remedy; none about a healthy training, or without its metrics.

    Args:
        metrics: the rows of metrics.jsonl.
        method: as in config.json.
    """
    losses, saturation, variation = (
        _column(metrics, name, len(seeds)) for name in ("prediction", "saturation", "variation")
    )
    if min(map(len, (losses, saturation, variation))) < _FEW:  # or a version that did not record them
        return []
    parts = np.array([part.mean(axis=0) for part in np.array_split(losses, min(10, len(losses)))])
    early, late = parts[: len(parts) // 2].min(axis=0), parts[-1]
    last = -max(1, len(losses) // 10)
    saturated, varied = saturation[last:].mean(axis=0), variation[last:].mean(axis=0)
    signs = [
        (
            (late > ROSE * early) & (late - early > NOTABLE),
            f"the prediction loss ended at {_range(late)}, above {_range(early)} early in training",
        ),
        (
            saturated > SATURATED,
            f"{percent(float(saturated.max()))} more of the predicted than of the logged actions are at the "
            "ends of their range",
        ),
        (
            varied < CONSTANT,
            "predicted actions hardly vary: their standard deviation is "
            f"{percent(float(varied.min()))} of that of the logged ones",
        ),
    ]
    shown = [f"{text} ({_named(seeds, which)})" for which, text in signs if which.any()]
    found = [f"{'; '.join(shown)}. {_cause(method)}"] if shown else []
    median = np.median(late)
    if len(seeds) > 2 and (apart := (late > APART * median) & (late - median > NOTABLE)).any():
        what = f"the prediction loss ended at {_range(late[apart])}, that of the median seed at {median:.3g}"
        remedy = "More --steps or a lower --learning-rate reduce the difference between seeds."
        found.append(f"{what} ({_named(seeds, apart)}). {remedy}")
    return found


def _column(metrics: Sequence[Mapping[str, Any]], name: str, seeds: int) -> Values:
    """A metric of all rows that have it. [row, seed]"""
    rows = [row.get(name) for row in metrics]
    return np.array([row for row in rows if isinstance(row, list) and len(row) == seeds]).reshape(-1, seeds)


def _cause(method: Mapping[str, Any]) -> str:
    """The likely cause and a remedy."""
    condition = method.get("condition")
    if condition and condition.get("condition_scale", "paper") == "paper":
        return (
            "Large conditions may saturate the network, since the paper's scale depends on the unit of the "
            "rewards; --condition-scale bounded does not."
        )
    helps = "--learning-rate or --coefficient" if method.get("regularizer") else "--learning-rate"
    return (
        "The observations may not explain the actions, or some are extreme (`cwbc data show`); otherwise a "
        f"lower {helps} usually helps."
    )


def _named(seeds: Sequence[int], which: NDArray[np.bool_]) -> str:
    some = [str(seed) for seed, is_one in zip(seeds, which, strict=True) if is_one]
    if len(some) == len(seeds) > 1:
        return "all seeds"
    return f"seed{'s' * (len(some) > 1)} {listed(some)}"


def _range(values: Values) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"
