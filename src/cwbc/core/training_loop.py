"""One training loop for every learner: all seeds in one compiled program, in chunks of many steps.

Between chunks it calls back: metrics, checkpoints (every half minute) and progress are written by the caller.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core.device import Place, compiler_options, default_place, on_cpu
from cwbc.core.learners import Columns, Metrics
from cwbc.core.methods import Method, Training, as_begun
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import (
    SAMPLED_TOGETHER,
    Choice,
    Episodes,
    Source,
    gathered,
    in_host_memory,
    sample,
    selected_fraction,
    side_by_side,
)  # fmt: skip
from cwbc.core.streaming import Lot, lots
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import DivergenceError

SAVE_INTERVAL = 30.0  # seconds between checkpoints
Row = dict[str, Any]  # step, seconds, and metrics by name [seed], means since the row before


class Interrupted(KeyboardInterrupt):
    """Training was stopped on request and has saved its state."""


@dataclasses.dataclass
class Trainee:
    """One method on one dataset while it is trained for all its seeds.

    Args:
        spec: its specification; `method` is the same with the warm-up that its training began with.
        state: leaves [seed, ...].
        step: steps that are done.
        seconds: that these took.
        measure: called with the parameters, which of their rows are of this method, and the steps before and
            after a chunk; gives more metrics [seed].
        record: called with the metrics of every chunk.
        save: called with the state and its step, every half minute and at the end.
    """

    data: Trajectories
    spec: PolicySpec
    method: Method
    seeds: tuple[int, ...]
    state: Any
    step: int = 0
    seconds: float = 0.0
    measure: Callable[[Any, slice, int, int], Metrics] = lambda parameters, rows, first_step, step: {}
    record: Callable[[Row], None] = lambda row: None
    save: Callable[[Any, int], None] = lambda state, step: None


def initialize(spec: PolicySpec, seeds: tuple[int, ...]) -> Any:
    """The state before the first step; a seed's own depends on that seed alone."""
    program, each = _initial_program(spec.form), np.asarray(seeds, np.uint32)
    if not on_cpu():
        return jax.vmap(program)(each)
    return _stacked(map(program, each))  # one program for any number of seeds


def shapes(spec: PolicySpec, seeds: tuple[int, ...]) -> Any:
    """The shapes and kinds of the arrays of `initialize`, for which nothing is compiled."""
    initial = jax.vmap(lambda seed: spec.method.learner.initialize(spec, jax.random.key(seed)))
    return jax.eval_shape(initial, np.asarray(seeds, np.uint32))


def train(
    trainees: Sequence[Trainee],
    training: Training,
    progress: Callable[[int], None] | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    data_on: Place | None = None,
    before_writing: Callable[[], None] = lambda: None,
) -> None:
    """Train methods to their last step, with the same seeds; side by side where that is possible.

    Args:
        progress: called with the number of steps done, on average where some are ahead of others.
        should_stop: called between chunks; once it is true, states are saved and Interrupted is raised.
        data_on: where the data is stored, with the same result; by default the device if it has room.
        before_writing: called before anything is recorded or saved; if it raises, nothing is.
    """
    size = sum({id(trainee.data): trainee.data.nbytes for trainee in trainees}.values())
    is_mapped = any(trainee.data.is_mapped for trainee in trainees)
    on_device = (data_on or default_place(size, is_mapped)) == "device"
    behind = [trainee for trainee in trainees if trainee.step < training.steps]
    for group in _groups(behind) if on_device else [[trainee] for trainee in behind]:
        lanes = [(trainee.data, as_begun(trainee.method, training.steps)) for trainee in group]
        source = side_by_side(lanes) if on_device else in_host_memory(*lanes[0])

        def report(step: int, group: list[Trainee] = group) -> None:
            for trainee in group:
                trainee.step = step
            if progress is not None:
                progress(sum(trainee.step for trainee in trainees) // len(trainees))

        _Loop(group, training, source, report, should_stop, before_writing).run()


def _groups(trainees: list[Trainee]) -> list[list[Trainee]]:
    """Groups that one program can train: of one form, at the same step and with as many strata."""
    groups: dict[tuple[int, float, Hashable], list[Trainee]] = {}
    for trainee in trainees:
        fraction = selected_fraction(trainee.data, trainee.spec.method)
        # On a CPU only with the same fraction: then each result is bit for bit that of a run alone.
        key = (trainee.step, fraction if on_cpu() else 0 < fraction < 1, trainee.spec.form)
        groups.setdefault(key, []).append(trainee)
    return [groups[key] for key in sorted(groups, key=lambda key: key[:2])]


@dataclasses.dataclass(frozen=True)
class _Loop:
    """Chunks of training, with callbacks between them."""

    trainees: list[Trainee]  # all at the same step
    training: Training
    data: Source
    progress: Callable[[int], None]
    should_stop: Callable[[], bool]
    before_writing: Callable[[], None]

    def run(self) -> None:
        first, total = self.trainees[0], self.training.steps
        step = first.step
        state = _concatenated([trainee.state for trainee in self.trainees])
        length = chunk_length(first.spec, self.training)
        began = saved = time.monotonic()
        pending = None
        while step < total:
            count = min(length, total - step)
            state, metrics = run_chunk(first.spec, self.training, state, self.data, first.seeds, step, count)
            if pending is not None:  # recorded while the device works on the next chunk
                self._record(*pending, began)
            measured = [
                trainee.measure(state.parameters, rows, step, step + count) for trainee, rows in self._rows()
            ]
            pending, step = (step, metrics, measured), step + count
            stopping = self.should_stop()
            if stopping or step == total or time.monotonic() - saved >= SAVE_INTERVAL:
                self._record(*pending, began)
                pending = None
                self._save(state, step)
                saved = time.monotonic()
            if stopping and step < total:
                raise Interrupted

    def _rows(self) -> list[tuple[Trainee, slice]]:
        """Each method with its rows of the common arrays."""
        seeds = len(self.trainees[0].seeds)
        return [(trainee, slice(i * seeds, (i + 1) * seeds)) for i, trainee in enumerate(self.trainees)]

    def _record(self, first_step: int, metrics: Metrics, measured: list[Metrics], began: float) -> None:
        values = {name: np.asarray(value) for name, value in metrics.items()}
        seconds = (time.monotonic() - began) / len(self.trainees)  # divided evenly
        step = first_step + len(values["loss"])
        self.before_writing()
        for (trainee, rows), more in zip(self._rows(), measured, strict=True):
            _check_finite(values["loss"][:, rows], trainee, first_step)
            means = {name: value[:, rows].mean(axis=0).tolist() for name, value in values.items()}
            means |= {name: np.asarray(value).tolist() for name, value in more.items()}
            trainee.record({"step": step, "seconds": round(trainee.seconds + seconds, 3), **means})
        self.progress(step)

    def _save(self, state: Any, step: int) -> None:
        finite = jax.tree.map(lambda x: np.isfinite(x).all(axis=tuple(range(1, x.ndim))), state)
        healthy = np.all(jax.tree.leaves(finite), axis=0)
        for trainee, rows in self._rows():
            trainee.state = jax.tree.map(lambda x, rows=rows: x[rows], state)
            bad = np.flatnonzero(~healthy[rows])
            if bad.size:  # the last update: a step's loss is that of the parameters before it
                seed = trainee.seeds[bad[0]]
                raise DivergenceError(f"the parameters of seed {seed} are not finite after step {step - 1}")
            trainee.save(trainee.state, step)


def _check_finite(losses: NDArray[np.float32], trainee: Trainee, first_step: int) -> None:
    """Stop on the first loss that is not finite. [step, seed]"""
    bad = np.argwhere(~np.isfinite(losses))
    if len(bad):
        step, row = bad[0]
        name, seed = trainee.spec.method.name, trainee.seeds[row]
        raise DivergenceError(
            f"the loss of {name} became {losses[step, row]} for seed {seed} at step {first_step + step}; "
            "a lower learning rate or data without extreme values usually helps"
        )


def run_chunk(
    spec: PolicySpec,
    training: Training,
    state: Any,
    data: Source,
    seeds: tuple[int, ...],
    first_step: int,
    length: int,
) -> tuple[Any, Metrics]:
    """Train `length` steps; the metrics of each come back as [step, seed]. `state` is used up.

    With several methods in `data`, all seeds of the first come first, then those of the next.
    """
    form = spec.form
    parts = []
    for lot in lots(form, data, training, seeds, first_step, length):
        several = data.methods > 1 and not on_cpu()  # in one program
        program = _chunk_program(form, training, lot.length, data.streamed, several)
        state, metrics = _run_lot(program, state, data, lot, seeds)
        parts.append(metrics)
    return state, _concatenated(parts)


def _run_lot(
    program: Callable[..., tuple[Any, Metrics]], state: Any, data: Source, lot: Lot, seeds: tuple[int, ...]
) -> tuple[Any, Metrics]:
    several = data.methods > 1
    which = np.tile(np.asarray(seeds, np.uint32), data.methods)
    each = (data.episodes, data.numbers)
    if not on_cpu():
        if several:
            each = jax.tree.map(lambda x: jnp.repeat(x, len(seeds), axis=0), each)
        return program(state, each, lot.columns, which, lot.first_step)

    # One seed's matrix products fill the cores, so seeds take turns at the same program; and a seed's result
    # is bit for bit the same alone and among others, which one program over a seed axis does not give.
    def turn(place: int) -> tuple[Any, Metrics]:
        own = _row(each, place // len(seeds)) if several else each
        columns = _row(lot.columns, place) if data.streamed else lot.columns
        return program(_row(state, place), own, columns, which[place], lot.first_step)

    states, metrics = zip(*map(turn, range(len(which))), strict=True)
    return _stacked(states), _stacked(metrics, axis=1)


# On a CPU, NumPy shares JAX's memory, and need not compile a program for every shape of an array.


def _row(tree: Any, row: int) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[row], tree)


def _stacked(trees: Iterable[Any], axis: int = 0) -> Any:
    return jax.tree.map(lambda *x: np.stack(x, axis), *trees)


def _concatenated(trees: Sequence[Any]) -> Any:
    """The rows of several trees; a copy, since programs use up their arguments."""
    return jax.tree.map(lambda *x: np.concatenate(x) if on_cpu() else jnp.concatenate(x), *trees)


def chunk_length(spec: PolicySpec, training: Training) -> int:
    """Steps per chunk, about one second, from the configuration alone: equal runs have equal chunks."""
    period = spec.method.learner.period
    if not on_cpu():
        return 500 - 500 % period
    affordable = 2e11 / step_operations(spec, training)
    lengths = [n * period for n in (1, 2, 5, 10, 20, 50, 100, 200, 500)]
    return max((n for n in lengths if n <= affordable), default=period)


def step_operations(spec: PolicySpec, training: Training) -> float:
    """About how many floating-point operations a step of one seed takes."""
    learner = spec.method.learner
    state = jax.eval_shape(lambda: learner.initialize(spec, jax.random.key(0)))
    parameters = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state.parameters))
    return learner.operations(spec, training, parameters)


@functools.lru_cache(maxsize=32)
def _initial_program(spec: PolicySpec) -> Callable[[Any], Any]:
    def initial(seed: jax.Array) -> Any:
        key = jax.random.fold_in(jax.random.key(seed), 0)
        return spec.method.learner.initialize(spec, key)

    return jax.jit(initial)


@functools.lru_cache(maxsize=32)
def _chunk_program(
    spec: PolicySpec, training: Training, length: int, streamed: bool, several: bool
) -> Callable[..., tuple[Any, Metrics]]:
    learner = spec.method.learner
    period = learner.period

    def chunk(
        state: Any, of_method: tuple[Episodes, Any], columns: Columns, seed: jax.Array, first_step: Any
    ) -> tuple[Any, Metrics]:
        episodes, numbers = of_method
        carried, step, state_of = learner.update(spec, training, numbers)

        def batch(number: jax.Array, sent: Columns | None) -> Any:
            def gather(choice: Choice) -> Columns:
                return gathered(columns, choice) if sent is None else sent

            window, random = sample(spec, training, episodes, seed, number, gather)
            return learner.batch(window, random, numbers)

        def block(carry: Any, steps: tuple[jax.Array, Columns | None]) -> tuple[Any, Metrics]:
            batches = jax.vmap(batch)(*steps)
            if period > 1:
                batches = jax.tree.map(lambda x: x.reshape(-1, period, *x.shape[1:]), batches)
            return jax.lax.scan(step, carry, batches)

        steps = (first_step + jnp.arange(length), columns if streamed else None)
        size = period * math.gcd(length // period, SAMPLED_TOGETHER // period)
        blocks = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), steps)
        carry, metrics = jax.lax.scan(block, carried(state), blocks)
        return state_of(carry), jax.tree.map(lambda x: x.reshape(length), metrics)

    if on_cpu():
        return jax.jit(chunk, donate_argnums=0)
    seed_axes = (0, 0 if several else None, 0 if streamed else None, 0, None)
    lanes = jax.vmap(chunk, in_axes=seed_axes, out_axes=(0, 1))
    return jax.jit(lanes, donate_argnums=0, compiler_options=compiler_options())
