"""Windows of a dataset that stays in host memory, gathered there while the device trains on those before."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.methods import Training
from cwbc.sampling import DRAWN_TOGETHER, Draws, Episodes, Rows, Source, choose
from cwbc.trajectories import blocks


@dataclasses.dataclass(frozen=True)
class Lot:
    """Steps of training, with the rows that they need on the device."""

    first_step: int
    length: int
    rows: Rows  # of the whole dataset, or [seed, step of training, window, step, ...] of a streamed one


def lots(
    data: Source, training: Training, seeds: tuple[int, ...], first_step: int, length: int
) -> Iterator[Lot]:
    """A chunk of training in lots: one where the rows lie on the device, several that are streamed."""
    if not data.streamed:
        yield Lot(first_step, length, data.rows)
        return
    end = first_step + length
    cuts = [(first, min(DRAWN_TOGETHER, end - first)) for first in range(first_step, end, DRAWN_TOGETHER)]

    def chosen(first: int, count: int) -> jax.Array:
        return _choice_program(training, count)(data.episodes, jnp.asarray(seeds, jnp.uint32), first)

    choices = (chosen(first, count) for first, count in cuts)
    with ThreadPoolExecutor() as pool:
        coming = next(choices)
        for first, count in cuts:
            # The device does things in the order in which they are asked for: unless the next lot is chosen
            # before the training on this one begins, it cannot be gathered meanwhile.
            numbers, coming = coming, next(choices, coming)
            yield Lot(first, count, jax.device_put(gathered(data.rows, np.asarray(numbers), pool)))


@functools.lru_cache(maxsize=32)
def _choice_program(training: Training, length: int) -> Callable[[Episodes, jax.Array, Any], jax.Array]:
    """The numbers of the rows that steps of training need. [seed, step of training, window, step]"""

    def chosen(data: Episodes, seed: jax.Array, number: jax.Array) -> jax.Array:
        return choose(Draws.of(seed, number, training.batch_size), data, training.context).row_numbers

    def program(data: Episodes, seeds: jax.Array, first_step: Any) -> jax.Array:
        of_seed = jax.vmap(chosen, in_axes=(None, None, 0))
        return jax.vmap(of_seed, in_axes=(None, 0, None))(data, seeds, first_step + jnp.arange(length))

    return jax.jit(program)


def gathered(rows: Rows, numbers: NDArray[np.int32], pool: Executor) -> Rows:
    """The rows with these numbers, copied by many threads."""
    flat = numbers.reshape(-1)
    arrays = [np.asarray(array) for array in jax.tree.leaves(rows)]
    copies = [np.empty((*numbers.shape, *array.shape[1:]), array.dtype) for array in arrays]

    def copy(block: tuple[int, NDArray[np.int32]]) -> None:
        first, some = block
        for array, out in zip(arrays, copies, strict=True):
            place = out.reshape(-1, *array.shape[1:])[first : first + len(some)]
            array.take(some, axis=0, out=place, mode="clip")  # another mode would copy `out` first

    list(pool.map(copy, blocks(flat)))
    return jax.tree.unflatten(jax.tree.structure(rows), copies)
