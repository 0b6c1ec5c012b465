"""One loss and one update for every method: all seeds in one compiled program, in chunks of many steps."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from cwbc.design import Design
from cwbc.device import on_cpu, over_seeds
from cwbc.hyperparameters import Numbers
from cwbc.layers import Parameters
from cwbc.methods import Optimizer, Training
from cwbc.sampling import DRAWN_TOGETHER, Draws, Episodes, Rows, Source, Window, choose, windows
from cwbc.streaming import Lot, lots

Losses = dict[str, jax.Array]
SATURATED = 0.999  # encoded actions beyond it are at an end of their range


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class State:
    """What a step of training changes."""

    parameters: Parameters  # [seed, ...]
    optimizer: Any  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Batch:
    """What one step trains on: the windows that were drawn, then some of them once more, raised."""

    observations: jax.Array  # [window, step, dimension]
    actions: jax.Array  # [window, step, dimension] or [window, step]
    returns_to_go: jax.Array  # [window, step]
    timesteps: jax.Array  # [window, step]
    shares: jax.Array  # [window, step] of the mean over its kind; 0 for what is not trained on
    dropout_key: jax.Array
    coefficient: jax.Array  # [] alpha, the weight of what is raised
    drawn: int = dataclasses.field(metadata={"static": True})


Carried = tuple[State, Parameters]  # from step to step: the state, and what is prepared of its parameters


def initialize(design: Design, training: Training, seeds: tuple[int, ...]) -> State:
    """The state before the first step; a seed's own depends on that seed alone."""
    return _initial_program(design.form, training)(jnp.asarray(seeds, jnp.uint32))


def run_chunk(
    design: Design,
    training: Training,
    state: State,
    data: Source,
    seeds: tuple[int, ...],
    first_step: int,
    length: int,
) -> tuple[State, Losses]:
    """Train `length` steps; the losses of each come back as [step, seed]. `state` is used up.

    With several methods in `data`, all seeds of the first come first, then those of the next.
    """
    form = design.form
    parts = []
    for lot in lots(data, training, seeds, first_step, length):
        several = data.methods > 1 and not on_cpu()  # in one program
        program = _chunk_program(form, training, lot.length, data.streamed, several)
        state, losses = _run_lot(program, state, data, lot, seeds)
        parts.append(losses)
    return state, jax.tree.map(lambda *x: jnp.concatenate(x), *parts)


def _run_lot(
    program: Callable[..., tuple[State, Losses]], state: State, data: Source, lot: Lot, seeds: tuple[int, ...]
) -> tuple[State, Losses]:
    several = data.methods > 1
    which = jnp.tile(jnp.asarray(seeds, jnp.uint32), data.methods)
    if not on_cpu():
        each = (data.episodes, data.numbers)
        if several:
            each = jax.tree.map(lambda x: jnp.repeat(x, len(seeds), axis=0), each)
        return program(state, each, lot.rows, which, lot.first_step)

    # One seed's matrix products fill the cores, so seeds take turns at the same program; and a seed's result
    # is bit for bit the same alone and among others, which one program over a seed axis does not give.
    def turn(place: int) -> tuple[State, Losses]:
        mine = jax.tree.map(lambda x: x[place], state)
        method = place // len(seeds)
        each = (data.episodes, data.numbers)
        if several:
            each = jax.tree.map(lambda x: x[method], each)
        rows = lot.rows.at(place) if data.streamed else lot.rows
        return program(mine, each, rows, which[place], lot.first_step)

    states, losses = zip(*map(turn, range(len(which))), strict=True)
    stacked = jax.tree.map(lambda *x: jnp.stack(x), *states)
    return stacked, jax.tree.map(lambda *x: jnp.stack(x, axis=1), *losses)


def chunk_length(design: Design, training: Training, state: State) -> int:
    """Steps per chunk, about a second's worth, from the configuration alone so that every run cuts alike."""
    if not on_cpu():
        return 500
    weights = sum(leaf.size for leaf in jax.tree.leaves(state.parameters))
    network = design.method.network
    tokens = training.batch_size * training.context * (3 if network.looks_back else 1)
    operations = 6 * weights * tokens * (2 if design.method.regularizer else 1)
    affordable = 2e11 / operations
    return max((n for n in (1, 2, 5, 10, 20, 50, 100, 200, 500) if n <= affordable), default=1)


@functools.lru_cache(maxsize=32)
def _initial_program(design: Design, training: Training) -> Callable[[jax.Array], State]:
    # The numbers do not matter before the first step, so that one program is for all data.
    numbers = Numbers.of(dataclasses.replace(design.method, condition=None))
    transform = _optimizer(design.method.optimizer, training.steps, numbers)

    def initial(seed: jax.Array) -> State:
        parameters = design.initialize(jax.random.fold_in(jax.random.key(seed), 0))
        return State(parameters, transform.init(parameters))

    return jax.jit(over_seeds(initial))


@functools.lru_cache(maxsize=32)
def _chunk_program(
    design: Design, training: Training, length: int, streamed: bool, several: bool
) -> Callable[..., tuple[State, Losses]]:
    def chunk(
        state: State, of_method: tuple[Episodes, Numbers], rows: Rows, seed: jax.Array, first_step: Any
    ) -> tuple[State, Losses]:
        episodes, numbers = of_method
        update = _update(design, training, numbers)

        def batch(number: jax.Array, gathered: Rows | None) -> Batch:
            gather = rows.at if gathered is None else lambda _: gathered
            return draw(training, episodes, numbers, seed, number, gather)

        def block(carried: Carried, steps: tuple[jax.Array, Rows | None]) -> tuple[Carried, Losses]:
            return jax.lax.scan(update, carried, jax.vmap(batch)(*steps))

        steps = (first_step + jnp.arange(length), rows if streamed else None)
        size = math.gcd(length, DRAWN_TOGETHER)
        blocks = jax.tree.map(lambda x: x.reshape(-1, size, *x.shape[1:]), steps)
        prepared = design.prepared(state.parameters, training.precision)
        (state, _), losses = jax.lax.scan(block, (state, prepared), blocks)
        return state, jax.tree.map(lambda x: x.reshape(length), losses)

    if on_cpu():
        return jax.jit(chunk, donate_argnums=0)
    seed_axes = (0, 0 if several else None, 0 if streamed else None, 0, None)
    return jax.jit(jax.vmap(chunk, in_axes=seed_axes, out_axes=(0, 1)), donate_argnums=0)


def draw(
    training: Training,
    data: Episodes,
    numbers: Numbers,
    seed: jax.Array,
    number: jax.Array,
    gather: Callable[[jax.Array], Rows],
) -> Batch:
    """What step `number` of a seed trains on.

    Args:
        gather: the rows with given numbers.
    """
    draws = Draws.of(seed, number, training.batch_size)
    choice = choose(draws, data, training.context)
    window = windows(choice, gather(choice.row_numbers), data)
    return batch_of(window, numbers, draws.raises[: window.raised], draws.dropout_key)


def batch_of(window: Window, numbers: Numbers, raises: jax.Array, dropout_key: jax.Array) -> Batch:
    """Windows, and those of them that the regularizer raises once more: one pass through the network.

    Args:
        raises: how far beyond the best each is raised, from 0 to 1.
    """
    drawn, shares, returns_to_go = len(window.mask), shares_of(window.mask), window.returns_to_go
    if window.raised:
        raised = jax.tree.map(lambda x: x[: window.raised], window)
        amounts = raised.shortfalls + numbers.raise_width * raises
        raised_shares = shares_of(raised.mask & raised.selected[:, None])
        window = jax.tree.map(lambda *x: jnp.concatenate(x), window, raised)
        returns_to_go = jnp.concatenate([returns_to_go, raised.returns_to_go + amounts[:, None]])
        shares = jnp.concatenate([shares, raised_shares])
    return Batch(
        observations=window.observations,
        actions=window.actions,
        returns_to_go=returns_to_go,
        timesteps=window.timesteps,
        shares=shares,
        dropout_key=dropout_key,
        coefficient=numbers.coefficient,
        drawn=drawn,
    )


def shares_of(mask: jax.Array) -> jax.Array:
    """What to multiply values with, so that their sum is the mean where the mask holds; 0 if nowhere."""
    return mask / jnp.maximum(jnp.sum(mask), 1)


def _update(
    design: Design, training: Training, numbers: Numbers
) -> Callable[[Carried, Batch], tuple[Carried, Losses]]:
    transform = _optimizer(design.method.optimizer, training.steps, numbers)

    def prepare(parameters: Parameters) -> Parameters:
        return design.prepared(parameters, training.precision)

    def update(carried: Carried, batch: Batch) -> tuple[Carried, Losses]:
        state, prepared = carried

        def objective(parameters: Parameters, prepared: Parameters) -> tuple[jax.Array, Losses]:
            return losses(design, parameters | prepared, batch)

        gradient = jax.grad(objective, argnums=(0, 1), has_aux=True)
        (direct, through), metrics = gradient(state.parameters, prepared)
        _, pull_back = jax.vjp(prepare, state.parameters)
        gradients = jax.tree.map(jnp.add, direct, *pull_back(through))
        updates, optimizer = transform.update(gradients, state.optimizer, state.parameters)
        parameters = optax.apply_updates(state.parameters, updates)
        # Prepared where the parameters are written, so that they are not read once more for it.
        return (State(parameters, optimizer), prepare(parameters)), metrics

    return update


def losses(
    design: Design,
    parameters: Parameters,  # with those that are prepared
    batch: Batch,
) -> tuple[jax.Array, Losses]:
    """The total loss of a batch of windows, its parts, and how healthy the predictions are."""
    encoded = design.actions.encode(batch.actions)
    outputs = design.outputs(
        parameters,
        batch.observations,
        batch.returns_to_go,
        encoded,
        batch.timesteps,
        batch.dropout_key,
    )
    parts = design.actions.loss(outputs, batch.actions) * batch.shares
    prediction = jnp.sum(parts[: batch.drawn])
    predicted = design.actions.encode(design.actions.choose(outputs[: batch.drawn]))
    health = _health(predicted, encoded[: batch.drawn], batch.shares[: batch.drawn])
    if design.method.regularizer is None:
        return prediction, {"loss": prediction, "prediction": prediction, **health}
    conservative = jnp.sum(parts[batch.drawn :])
    total = prediction + batch.coefficient * conservative
    return total, {"loss": total, "prediction": prediction, "conservative": conservative, **health}


def _health(
    predicted: jax.Array,  # [window, step, size], encoded
    logged: jax.Array,  # [window, step, size], encoded
    shares: jax.Array,  # [window, step]
) -> Losses:
    """How predicted actions compare with logged ones, which tells a network that answers always the same."""

    def mean(values: jax.Array) -> jax.Array:
        return jnp.sum(values * shares[..., None], axis=(0, 1))  # [size]

    def variance(values: jax.Array) -> jax.Array:
        return jnp.sum(mean(jnp.square(values)) - jnp.square(mean(values)))

    def at_the_ends(values: jax.Array) -> jax.Array:
        return jnp.mean(mean((jnp.abs(values) > SATURATED).astype(jnp.float32)))

    # Of one action that is always taken nothing varies, and nothing has to.
    ratio = jnp.where(variance(logged) > 0, variance(predicted) / variance(logged), 1.0)
    return {
        "variation": jnp.sqrt(jnp.maximum(ratio, 0.0)),  # standard deviation / that of logged actions
        "saturation": at_the_ends(predicted) - at_the_ends(logged),  # fraction, beyond the logged one
    }


def _optimizer(settings: Optimizer, steps: int, numbers: Numbers) -> optax.GradientTransformation:
    warmup = jnp.maximum(1, jnp.minimum(numbers.warmup_steps, steps // 10))

    def learning_rate(step: Any) -> Any:
        return numbers.learning_rate * jnp.minimum((step + 1) / warmup, 1.0)

    adamw = optax.adamw(learning_rate, weight_decay=numbers.weight_decay)
    return (
        adamw
        if settings.clip_norm is None
        else optax.chain(optax.clip_by_global_norm(settings.clip_norm), adamw)
    )
