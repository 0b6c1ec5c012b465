"""Signs in the metrics of a finished training that it went wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.core.measured_errors import MeasuredErrors
from cwbc.system.formatting import listed, percent

ROSE = 1.1  # times its early value: a loss that ends above it has risen; likewise an error, times its lowest
CLEAR = 5.0  # times the median change between measurements: what an error rises by less may be noise
APART = 2.0  # times the median over seeds: a seed whose loss is higher is far from the others
NOTABLE = 0.005  # of a loss: what is less is nothing to worry about
SATURATED = 0.5  # of the predicted actions at the ends of their range, beyond what was logged there
CONSTANT = 0.02  # of the logged actions' standard deviation: predictions that vary less are constant
_FEW = 2  # rows of metrics, fewer of which show no trend
_FEW_ERRORS = 6  # measurements of errors, fewer of which show no trend

Values = NDArray[np.float64]


def training_warnings(
    metrics: Sequence[Mapping[str, Any]], seeds: Sequence[int], method: Mapping[str, Any]
) -> list[str]:
    """Warnings with the likely cause and a remedy; none about a healthy training, or without its metrics.

    Args:
        metrics: the rows of metrics.jsonl.
        method: as in config.json.
    """
    return _unhealthy(metrics, seeds, method) + _overfitted(metrics, seeds, method)


def _unhealthy(
    metrics: Sequence[Mapping[str, Any]], seeds: Sequence[int], method: Mapping[str, Any]
) -> list[str]:
    """Warnings about losses and predictions on what is trained on."""
    losses, saturation, variation = (
        _column(metrics, name, len(seeds)) for name in ("prediction", "saturation", "variation")
    )
    if min(map(len, (losses, saturation, variation))) < _FEW:  # or a version that did not record them
        return []
    parts = _parts(losses, 10)
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


def _overfitted(
    metrics: Sequence[Mapping[str, Any]], seeds: Sequence[int], method: Mapping[str, Any]
) -> list[str]:
    """A warning where the error on held-out episodes rises, and that on episodes of training does not."""
    measured = MeasuredErrors.of(metrics, len(seeds))
    if measured is None or len(measured.steps) < _FEW_ERRORS:
        return []
    held_out, training = _parts(measured.held_out, 5), _parts(measured.training, 5)
    least, every = held_out.argmin(axis=0), np.arange(len(seeds))
    # Both of the last fifths are above the lowest: a single one may be so by chance.
    late, lowest = held_out[-2:].min(axis=0), held_out[least, every]
    noise = np.median(np.abs(np.diff(measured.held_out, axis=0)), axis=0)
    rise, of_training = late - lowest, training[-1] - training[least, every]
    # Where both rise, policies leave the logged actions for another reason: value-based ones are meant to.
    which = (late > ROSE * lowest) & (rise > np.maximum(NOTABLE, CLEAR * noise)) & (of_training < rise / 2)
    if not which.any():
        return []
    ends = f"{_range(held_out[-1][which])}, above {_range(lowest[which])} before ({_named(seeds, which)})"
    dropout = ", more --dropout" * (method.get("learner", "TargetChoice") == "TargetChoice")  # others: none
    cause = "The network memorizes the episodes that it is trained on"
    remedy = f"fewer --steps, a smaller --width{dropout} or more data usually helps"
    return [f"the error on held-out episodes ended at {ends}. {cause}; {remedy}."]


def _parts(values: Values, most: int) -> Values:
    """The means over consecutive parts of a training. [part, seed]"""
    return np.array([part.mean(axis=0) for part in np.array_split(values, min(most, len(values)))])


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
