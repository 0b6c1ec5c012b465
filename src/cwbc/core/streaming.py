"""Windows of a dataset that stays in host memory, gathered there while the device trains on those before."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core.learners import Columns
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import SAMPLED_TOGETHER, Episodes, RandomNumbers, Source, choose

_PIECE = 1 << 22  # bytes that a thread copies at a time, at most
_THREADS = 16  # also with fewer cores: those that read from a disk wait for it
_LOT = 1 << 28  # bytes of observations in a lot, where it has more than one step
_Numbers = tuple[Any, Any]  # the rows of windows, and those of their observations


@dataclasses.dataclass(frozen=True)
class Lot:
    """Steps of training, with the columns that they need on the device."""

    first_step: int
    length: int
    columns: Columns  # of the whole dataset, or [seed, step of training, window, step, ...] of a streamed one


def lots(
    spec: PolicySpec, data: Source, training: Training, seeds: tuple[int, ...], first_step: int, length: int
) -> Iterator[Lot]:
    """A chunk of training in lots: one where the dataset is on the device, several that are streamed."""
    if not data.streamed:
        yield Lot(first_step, length, data.columns)
        return
    end, most = first_step + length, _lot_length(spec, training, len(seeds))
    cuts = [(first, min(most, end - first)) for first in range(first_step, end, most)]
    alike = data.episodes, np.asarray(seeds, np.uint32)
    choices = (_chosen(spec, training, count, *alike, first) for first, count in cuts)
    with ThreadPoolExecutor(_THREADS) as pool:
        coming = next(choices)
        for first, count in cuts:
            # The device works in the order of requests: the next lot has to be chosen before the training on
            # this one begins, to be gathered meanwhile.
            numbers, coming = coming, next(choices, coming)
            rows, frames = map(np.asarray, numbers)
            yield Lot(first, count, jax.device_put(gathered(data.columns, rows, frames, pool)))


def _lot_length(spec: PolicySpec, training: Training, seeds: int) -> int:
    """Steps of a lot: those that are sampled together, or fewer where their images take much memory."""
    learner, space = spec.method.learner, spec.observations
    observation = math.prod(space.encoded_shape) * np.dtype(space.dtype).itemsize
    step = seeds * training.batch_size * learner.window(training) * observation
    fitting = (length for length in (SAMPLED_TOGETHER, 25, 10, 5, 2) if length * step <= _LOT)
    length = next(fitting, 1)
    return max(length - length % learner.period, learner.period)


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _chosen(
    spec: PolicySpec, training: Training, length: int, data: Episodes, seeds: jax.Array, first_step: Any
) -> _Numbers:
    """The rows that steps of training need. [seed, step of training, window, step, ...]"""

    def chosen(seed: jax.Array, number: jax.Array) -> _Numbers:
        random = RandomNumbers.of(seed, number, training.batch_size)
        choice = choose(random, data, spec.observations, spec.method.learner.window(training))
        return choice.rows, choice.frames

    of_seed = jax.vmap(chosen, in_axes=(None, 0))
    return jax.vmap(of_seed, in_axes=(0, None))(seeds, first_step + jnp.arange(length))


def gathered(columns: Columns, rows: NDArray[np.int32], frames: NDArray[np.int32], pool: Executor) -> Columns:
    """The chosen steps, copied by many threads."""
    observations = _copied([columns.observations], frames, pool)[0]
    actions, *extra = _copied([columns.actions, *columns.extra.values()], rows, pool)
    return Columns(observations, actions, dict(zip(columns.extra, extra, strict=True)))


def _copied(arrays: list[NDArray[Any]], rows: NDArray[np.int32], pool: Executor) -> list[NDArray[Any]]:
    copies = [np.empty((*rows.shape, *array.shape[1:]), array.dtype) for array in arrays]

    flat = rows.reshape(-1)
    row_size = sum(math.prod(array.shape[1:]) * array.itemsize for array in arrays)
    size = max(1, min(_PIECE // row_size, math.ceil(len(flat) / _THREADS)))

    def copy(first: int) -> None:
        some = flat[first : first + size]
        for array, out in zip(arrays, copies, strict=True):
            place = out.reshape(-1, *array.shape[1:])[first : first + len(some)]
            array.take(some, axis=0, out=place, mode="clip")  # another mode would copy `out` first

    list(pool.map(copy, range(0, len(flat), size)))
    return copies
