"""Signs that a training went wrong although it ended: from its metrics alone, so that reports need no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cwbc.wording import listed, percent

ROSE = 1.1  # times its early value: a loss that ends above it has risen
APART = 2.0  # times the median over seeds: a seed whose loss is higher is far from the others
NOTABLE = 0.005  # of a loss: what is less is nothing to worry about, however it came about
SATURATED = 0.5  # of the predicted actions at the ends of their range, beyond what was logged there
CONSTANT = 0.02  # of the logged actions' standard deviation: predictions that vary less are constant
_FEW = 10  # rows of metrics, fewer of which say nothing about a trend


def training_warnings(
    metrics: Sequence[Mapping[str, Any]], seeds: Sequence[int], method: Mapping[str, Any]
) -> list[str]:
    """What looks wrong, with the likely cause and cure; nothing for a healthy training.

    Args:
        metrics: the rows of metrics.jsonl.
        method: as in config.json.
    """
    losses = _column(metrics, "prediction", len(seeds))
    if len(losses) < _FEW:
        return []
    tenth = max(1, len(losses) // 10)
    early, late = losses[tenth : 3 * tenth].mean(axis=0), losses[-tenth:].mean(axis=0)  # [seed]
    saturated, varied = (
        _column(metrics, name, len(seeds))[-tenth:].mean(axis=0) for name in ("saturation", "variation")
    )
    cure = _cure(method)
    found = [
        (
            (late > ROSE * early) & (late - early > NOTABLE),
            lambda of: (
                f"the prediction loss ended at {_numbers(late[of])}, above {_numbers(early[of])} early in "
                f"training; {cure}"
            ),
        ),
        (
            saturated > SATURATED,
            lambda of: (
                f"{percent(float(saturated[of].mean()))} more of the predicted actions than of the logged "
                f"ones are at the ends of their range; {cure}"
            ),
        ),
        (
            varied < CONSTANT,
            lambda of: (
                "the predicted actions hardly differ from step to step (standard deviation "
                f"{percent(float(varied[of].mean()))} of the logged actions'): either nothing that the policy sees "
                f"tells the actions apart, or {cure}"
            ),
        ),
        (
            _far_from_others(late),
            lambda of: (
                f"the prediction loss ended at {_numbers(late[of])}, that of the median seed at "
                f"{_numbers(np.median(late)[None])}: results depend on chance; train longer (--steps), or with a lower "
                "--learning-rate"
            ),
        ),
    ]
    return [f"{_named(seeds, which)}: {text(which)}." for which, text in found if which.any()]


def _column(metrics: Sequence[Mapping[str, Any]], name: str, seeds: int) -> NDArray[np.float64]:
    """A metric of every row; NaN, which is never a reason to warn, where a version did not record it."""
    rows = [row.get(name, [np.nan] * seeds) for row in metrics]
    whole = [row for row in rows if isinstance(row, list) and len(row) == seeds]
    return np.array(whole, np.float64).reshape(-1, seeds)  # [row, seed]


def _far_from_others(late: NDArray[np.float64]) -> NDArray[np.bool_]:
    median = np.median(late)
    return (late > APART * median) & (late - median > NOTABLE) & (len(late) > 2)


def _cure(method: Mapping[str, Any]) -> str:
    condition = method.get("condition") or {}
    if condition and condition.get("condition_scale", "paper") == "paper":
        return (
            "large conditions may saturate the network, as the paper's scale depends on the unit of the rewards: "
            "train with --condition-scale bounded"
        )
    if method.get("regularizer"):
        return "a lower --learning-rate or --coefficient usually helps"
    return "a lower --learning-rate usually helps, or data without extreme values"


def _named(seeds: Sequence[int], which: NDArray[np.bool_]) -> str:
    if which.all():
        return "all seeds" if len(seeds) > 1 else f"seed {seeds[0]}"
    some = [str(seed) for seed, is_one in zip(seeds, which, strict=True) if is_one]
    return f"seed{'s' if len(some) > 1 else ''} {listed(some)}"


def _numbers(values: NDArray[np.float64]) -> str:
    low, high = f"{values.min():.3g}", f"{values.max():.3g}"
    return low if low == high else f"{low} to {high}"
