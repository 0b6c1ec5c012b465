"""Times that a noisy machine disturbs alike."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import jax

Work = Callable[[], Any]


def seconds(work: Work) -> float:
    """The time of one call, the device's work included."""
    began = time.perf_counter()
    jax.block_until_ready(work())  # type: ignore[no-untyped-call]
    return time.perf_counter() - began


def side_by_side(*works: Work, repeats: int = 7) -> tuple[float, ...]:
    """Median times of several kinds of work that take turns, after one turn that does not count."""
    turns = [[seconds(work) for work in works] for _ in range(1 + repeats)]
    return tuple(map(statistics.median, zip(*turns[1:], strict=True)))
