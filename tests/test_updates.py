"""The loss and the update: hand-computed masks, the regularizer's effect, seeds alone and in a stack."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import toy_data

from cwbc import streaming, updates
from cwbc.conditioning import ConditionScale
from cwbc.design import Design
from cwbc.hyperparameters import Numbers
from cwbc.methods import Optimizer, Training, parse, small, with_options
from cwbc.sampling import Episodes, Rows, Source, Window, in_host_memory, to_device
from cwbc.trajectories import Trajectories
from cwbc.updates import Batch, Losses, State, batch_of, draw, initialize, losses, run_chunk, shares_of

TRAINING = Training(steps=40, batch_size=8, context=5)


def tiny(name: str, scale: ConditionScale = "paper") -> Design:
    method = with_options(small(parse(name)), TRAINING, {"condition_scale": scale})[0]
    network = dataclasses.replace(method.network, width=16, layers=1)
    return Design.fit(dataclasses.replace(method, network=network), toy_data(), TRAINING.context)


def window(data: Trajectories, episodes: list[int], context: int = 5) -> Window:
    """The first steps of the given episodes, by plain Python."""
    rows = [[data.starts[e] + min(k, data.lengths[e] - 1) for k in range(context)] for e in episodes]
    mask = [[k < data.lengths[e] for k in range(context)] for e in episodes]
    threshold = np.percentile(data.returns, 95)
    mean, deviation = data.observation_statistics
    return Window(
        observations=jnp.asarray((data.observations[np.array(rows)] - mean) / deviation),
        actions=jnp.asarray(data.actions[np.array(rows)]),
        returns_to_go=jnp.asarray(data.returns_to_go[np.array(rows)], jnp.float32),
        timesteps=jnp.asarray([[k if m else 0 for k, m in enumerate(row)] for row in mask]),
        mask=jnp.asarray(mask),
        shortfalls=jnp.asarray(data.best - data.returns[np.array(episodes)], jnp.float32),
        selected=jnp.asarray(data.returns[np.array(episodes)] >= threshold),
        raised=len(episodes),
    )


def on(design: Design, window: Window, key: jax.Array) -> Batch:
    """A batch of these windows, whose raises and dropout come from one key."""
    return batch_of(window, Numbers.of(design.method), jax.random.uniform(key, (window.raised,)), key)


@functools.partial(jax.jit, static_argnums=0)
def loss(
    design: Design, parameters: dict[str, Any], window: Window, key: jax.Array
) -> tuple[jax.Array, Losses]:
    return losses(design, parameters | design.prepared(parameters), on(design, window, key))


def fresh(design: Design) -> Any:
    """Parameters before the first step."""
    return jax.tree.map(lambda x: np.asarray(x)[0], initialize(design, TRAINING, (0,)).parameters)


def test_shares_make_the_sum_a_mean_over_the_mask() -> None:
    mask = jnp.asarray([[True, False], [True, True]])
    np.testing.assert_allclose(shares_of(mask), [[1 / 3, 0], [1 / 3, 1 / 3]], rtol=1e-6)
    np.testing.assert_array_equal(shares_of(jnp.zeros((2, 2), bool)), np.zeros((2, 2)))


def test_the_prediction_loss_is_the_mean_over_unmasked_steps() -> None:
    data, design = toy_data(), tiny("rvs")
    parameters = fresh(design)
    batch = window(data, [0, 1])
    total, parts = loss(design, parameters, batch, jax.random.key(1))
    batch = jax.device_get(batch)
    errors = []
    for row in range(2):
        for k in range(5):
            if batch.mask[row, k]:
                omega = batch.returns_to_go[row, k] / (data.horizon - k)
                x = np.append(batch.observations[row, k], omega)
                x = np.maximum(x @ parameters["layer0"]["weight"] + parameters["layer0"]["bias"], 0)
                predicted = np.tanh(x @ parameters["layer1"]["weight"] + parameters["layer1"]["bias"])
                errors.append(np.mean((predicted - batch.actions[row, k]) ** 2))
    np.testing.assert_allclose(float(total), np.mean(errors), rtol=1e-5)
    np.testing.assert_array_equal(parts["prediction"], total)


def test_the_conservative_loss_averages_over_the_selected_windows_alone() -> None:
    data, design = toy_data(), tiny("rvs+c")
    parameters = fresh(design)
    key = jax.random.key(1)
    selected = int(np.argsort(data.returns)[-3])  # among the top 5 %, and short of the best
    batch = window(data, [selected, 0, 1])
    assert batch.selected.tolist() == [True, False, False]
    assert batch.shortfalls[0] > 0
    parts = loss(design, parameters, batch, key)[1]
    # By hand: that trajectory, raised to the best and by the amount drawn for it, scored as plain RvS is.
    assert design.method.regularizer is not None
    amount = design.method.regularizer.width * jax.random.uniform(key, (3,))[0]
    alone = window(data, [selected])
    raised = alone.returns_to_go + (data.best - data.returns[selected]) + amount
    expected = loss(tiny("rvs"), parameters, dataclasses.replace(alone, returns_to_go=raised), key)
    np.testing.assert_allclose(float(parts["conservative"]), float(expected[0]), rtol=1e-5)
    np.testing.assert_allclose(
        float(parts["loss"]), float(parts["prediction"]) + float(parts["conservative"]), rtol=1e-6
    )


def test_what_is_raised_begins_at_the_best_or_beyond() -> None:
    """Through the loss itself: a linear `network` that answers with its condition shows what it was told."""
    data, design = toy_data(), tiny("rvs+c")
    regularizer = dataclasses.replace(design.method.regularizer, percentile=0.0)  # type: ignore[type-var]
    method = dataclasses.replace(design.method, network=Told(), regularizer=regularizer)  # type: ignore[arg-type]
    told = dataclasses.replace(design, method=method)
    assert regularizer is not None
    seen: list[NDArray[np.float32]] = []
    for number in range(5):
        Told.conditions.clear()
        key = jax.random.key(number)
        losses(told, {}, on(told, window(data, [0, 20, 59], context=1), key))
        seen.append(np.asarray(Told.conditions[0])[3:, 0] * data.horizon)  # at t = 0, omega H is g
    raised = np.stack(seen)
    assert (raised >= data.best - 1e-4).all()
    assert (raised <= data.best + regularizer.width + 1e-4).all()
    assert raised.std() > 0.1 * regularizer.width


def drawn_batches(design: Design, seed: int, steps: int) -> Batch:
    """What the first steps of a seed train on. [step of training, ...]"""
    source = to_device(toy_data(), design.method)

    @jax.jit
    def batches(episodes: Episodes, numbers: Numbers, rows: Rows) -> Batch:
        def batch(number: jax.Array) -> Batch:
            return draw(TRAINING, episodes, numbers, jnp.uint32(seed), number, rows.at)

        return jax.vmap(batch)(jnp.arange(steps))

    return batches(source.episodes, source.numbers, source.rows)


def amounts_beyond_the_best(data: Trajectories, batch: Batch) -> NDArray[np.float64]:
    """By how much each regularized window exceeds the best return. [step of training, window, step]"""
    returns_to_go, actions = np.asarray(batch.returns_to_go, np.float64), np.asarray(batch.actions)[..., 0]
    count = returns_to_go.shape[1] - batch.drawn
    before, after = returns_to_go[:, :count], returns_to_go[:, batch.drawn :]
    # The same windows again; and each episode keeps to one action, which so tells which episode it is.
    for values in (batch.observations, batch.actions, batch.timesteps):
        np.testing.assert_array_equal(values[:, :count], values[:, batch.drawn :])
    episodes = np.abs(data.actions[data.starts, 0] - actions[:, :count, :1]).argmin(axis=-1)
    return after - before - (data.best - data.returns[episodes])[..., None]


def test_every_window_and_every_step_of_training_has_a_return_noise_of_its_own() -> None:
    data, design = toy_data(), tiny("rvs+c")
    regularizer = dataclasses.replace(design.method.regularizer, percentile=50.0)  # type: ignore[type-var]
    assert regularizer is not None
    design = dataclasses.replace(design, method=dataclasses.replace(design.method, regularizer=regularizer))
    batches = drawn_batches(design, 3, 200)
    amounts = amounts_beyond_the_best(data, batches) / regularizer.width
    used = np.asarray(batches.shares)[:, batches.drawn :, 0] > 0  # the last one only where it was selected
    np.testing.assert_allclose(amounts, amounts[..., :1].repeat(amounts.shape[2], axis=2), atol=1e-5)
    noise = amounts[..., 0][used]
    # Uniform between 0 and 1, and no two alike: not in a batch, not from one step of training to another.
    assert len(noise) > 600
    assert len(np.unique(noise.round(5))) > 0.98 * len(noise)
    np.testing.assert_allclose(np.quantile(noise, [0, 0.25, 0.5, 0.75, 1]), np.linspace(0, 1, 5), atol=0.06)
    # Nor does it depend on what else is drawn: the window's start, or the same place of the step before.
    starts = np.asarray(batches.timesteps)[:, : used.shape[1], 0]
    assert abs(np.corrcoef(noise, starts[used])[0, 1]) < 0.15
    whole = amounts[:, used.all(axis=0), 0]
    assert abs(np.corrcoef(whole[1:].ravel(), whole[:-1].ravel())[0, 1]) < 0.15
    assert abs(np.corrcoef(whole[:, 0], whole[:, 1])[0, 1]) < 0.2
    other = amounts_beyond_the_best(data, drawn_batches(design, 4, 1))[0, :, 0] / regularizer.width
    assert np.abs(other - amounts[0, :, 0]).min() > 1e-4  # nor is it another seed's


class Told:
    """A stand-in for a network that keeps what it was told."""

    looks_back = False
    conditions: ClassVar[list[jax.Array]] = []

    def prepared(self, parameters: dict[str, Any], dtype: Any) -> dict[str, Any]:
        return {}

    def __call__(self, parameters: Any, observations: Any, conditions: jax.Array, *rest: Any) -> jax.Array:
        self.conditions.append(conditions)
        return conditions[..., None]


def test_alpha_weighs_the_conservative_loss() -> None:
    data, design = toy_data(), tiny("rvs+c")
    regularizer = dataclasses.replace(design.method.regularizer, coefficient=3.0)  # type: ignore[type-var]
    stronger = dataclasses.replace(design, method=dataclasses.replace(design.method, regularizer=regularizer))
    batch = window(data, [int(np.argmax(data.returns)), 0, 1])
    parts = loss(stronger, fresh(design), batch, jax.random.key(1))[1]
    assert float(parts["conservative"]) > 0
    expected = float(parts["prediction"]) + 3 * float(parts["conservative"])
    np.testing.assert_allclose(float(parts["loss"]), expected, rtol=1e-6)


def test_every_seed_begins_with_parameters_of_its_own() -> None:
    weights = np.asarray(initialize(tiny("rvs"), TRAINING, (0, 5)).parameters["layer0"]["weight"])
    assert np.abs(weights[0] - weights[1]).min() > 0
    alone = initialize(tiny("rvs"), TRAINING, (5,)).parameters["layer0"]["weight"]
    np.testing.assert_array_equal(weights[1], np.asarray(alone)[0])


def test_no_selected_window_costs_nothing() -> None:
    data, design = toy_data(), tiny("rvs+c")
    key = jax.random.key(1)
    parts = loss(design, fresh(design), window(data, [0, 1]), key)[1]
    assert float(parts["conservative"]) == 0.0
    assert float(parts["loss"]) == float(parts["prediction"])


def test_what_lies_past_the_end_is_never_trained_on() -> None:
    data, design = toy_data(), tiny("dt+c")
    parameters = fresh(design)
    short = int(np.argmin(data.lengths))
    # Regularized, too, as a short one with a high return is.
    batch = dataclasses.replace(window(data, [short]), selected=jnp.asarray([True]))
    assert not batch.mask.all()
    key = jax.random.key(1)
    garbage = dataclasses.replace(
        batch,
        observations=jnp.where(batch.mask[..., None], batch.observations, 1e3),
        actions=jnp.where(batch.mask[..., None], batch.actions, -0.5),
        returns_to_go=jnp.where(batch.mask, batch.returns_to_go, 1e6),
    )
    clean = loss(design, parameters, batch, key)[0]
    np.testing.assert_allclose(float(loss(design, parameters, garbage, key)[0]), float(clean))


def train_state(design: Design, seeds: tuple[int, ...], cuts: list[int]) -> State:
    return trained(design, to_device(toy_data(), design.method), seeds, cuts)[0]


def trained(design: Design, data: Source, seeds: tuple[int, ...], cuts: list[int]) -> tuple[State, Any]:
    """The state after chunks of these lengths, and the loss of every step."""
    state, step, told = initialize(design, TRAINING, seeds), 0, []
    for length in cuts:
        state, parts = run_chunk(design, TRAINING, state, data, seeds, step, length)
        told.append(parts["loss"])
        step += length
    return state, np.concatenate(told)


@pytest.mark.parametrize(
    ("name", "discrete", "seeds", "lot"),
    [("rvs+cwbc", False, (0, 5, 7), 4), ("rvs+cwbc", True, (5,), 5)],
)
def test_streamed_training_is_bit_for_bit_that_on_the_device(
    name: str, discrete: bool, seeds: tuple[int, ...], lot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "DRAWN_TOGETHER", lot)  # of 4: a chunk of 10 steps is 4, 4 and 2
    data = toy_data(discrete=discrete)
    design = Design.fit(tiny(name).method, data, TRAINING.context)
    whole = trained(design, to_device(data, design.method), seeds, [10, 10])
    streamed = trained(design, in_host_memory(data, design.method), seeds, [10, 10])
    jax.tree.map(np.testing.assert_array_equal, streamed, whole)
    assert whole[1].shape == (20, len(seeds))


def test_streamed_training_as_on_a_gpu_equals_that_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "DRAWN_TOGETHER", 5)
    design, data, seeds = tiny("rvs+cwbc"), toy_data(), (0, 5, 7)
    with side_by_side(monkeypatch):
        whole = trained(design, to_device(data, design.method), seeds, [10])
        streamed = trained(design, in_host_memory(data, design.method), seeds, [10])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), streamed, whole)


@contextlib.contextmanager
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Seeds in one program, as on a GPU."""
    with monkeypatch.context() as patch:
        patch.setattr(updates, "on_cpu", lambda: False)
        patch.setattr(
            updates, "_chunk_program", updates._chunk_program.__wrapped__
        )  # apart from those of a CPU
        yield


@pytest.mark.parametrize("name", ["rvs+w+c", "dt"])
def test_a_seed_alone_equals_that_seed_in_a_stack(name: str) -> None:
    stack = train_state(tiny(name), (0, 5, 7), [10]).parameters
    alone = train_state(tiny(name), (5,), [10]).parameters
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[0]), stack, alone)
    differs = jax.tree.map(lambda a: bool((a[0] != a[1]).any()), stack)
    assert any(jax.tree.leaves(differs))


@pytest.mark.parametrize("name", ["rvs+w+c", "dt"])
def test_seeds_side_by_side_as_on_a_gpu_equal_seeds_in_turn(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    design, data, seeds = tiny(name), to_device(toy_data(), tiny(name).method), (0, 5, 7)
    turns, losses_in_turn = run_chunk(
        design, TRAINING, initialize(design, TRAINING, seeds), data, seeds, 0, 10
    )
    start = initialize(design, TRAINING, seeds)
    with side_by_side(monkeypatch):
        together, losses_together = run_chunk(design, TRAINING, start, data, seeds, 0, 10)
    assert losses_together["loss"].shape == (10, 3)
    np.testing.assert_allclose(losses_together["loss"], losses_in_turn["loss"], rtol=1e-3)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-3), together.parameters, turns.parameters
    )


def test_methods_side_by_side_as_on_a_gpu_equal_methods_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    designs, seeds = [tiny("rvs+w+c"), tiny("rvs+c")], (0, 5, 7)
    data = to_device(toy_data(), *(design.method for design in designs))

    def trained_together() -> tuple[State, Losses]:
        starts = [initialize(designs[0], TRAINING, seeds) for _ in designs]
        start = jax.tree.map(lambda *x: jnp.asarray(np.concatenate(x)), *starts)
        return run_chunk(designs[0], TRAINING, start, data, seeds, 0, 10)

    turns, losses_in_turn = trained_together()
    with side_by_side(monkeypatch):
        together, losses_together = trained_together()
    assert losses_together["loss"].shape == (10, 6)
    np.testing.assert_allclose(losses_together["loss"], losses_in_turn["loss"], rtol=1e-3)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, atol=1e-3), together.parameters, turns.parameters
    )


def test_the_learning_rate_warms_up_over_a_tenth_of_the_training() -> None:
    design = tiny("rvs")
    before = np.asarray(initialize(design, TRAINING, (0,)).parameters["layer0"]["weight"])
    changes = []
    for steps in range(1, 6):
        after = np.asarray(train_state(design, (0,), [1] * steps).parameters["layer0"]["weight"])
        changes.append(float(np.abs(after - before).max()))
        before = after
    # Adam's first step has the size of the learning rate: a quarter of it, as 4 steps of 40 warm up.
    np.testing.assert_allclose(changes[0], design.method.optimizer.learning_rate / 4, rtol=0.02)
    assert max(changes) <= 1.2 * design.method.optimizer.learning_rate


def adamw_by_hand(design: Design, gradients: Any, parameters: Any, learning_rate: float) -> Any:
    """The first step of AdamW: moments begin at 0 and are corrected, so it is g / (|g| + eps)."""
    decay = design.method.optimizer.weight_decay
    return jax.tree.map(
        lambda p, g: p - learning_rate * (g / (np.abs(g) + 1e-8) + decay * p), parameters, gradients
    )


def test_the_first_update_is_adamw_with_decay_of_the_clipped_gradient() -> None:
    method = small(parse("rvs"))
    network = dataclasses.replace(method.network, width=16, layers=1)
    optimizer = Optimizer(learning_rate=0.5, weight_decay=0.1, warmup_steps=1, clip_norm=1e-7)
    method = dataclasses.replace(method, network=network, optimizer=optimizer)
    design = Design.fit(method, toy_data(), TRAINING.context)
    before = fresh(design)
    after = jax.tree.map(lambda x: np.asarray(x)[0], train_state(design, (0,), [1]).parameters)
    data = to_device(toy_data(), method)

    @jax.jit
    def gradient(parameters: dict[str, Any], episodes: Episodes, numbers: Numbers, rows: Rows) -> Any:
        batch = draw(TRAINING, episodes, numbers, jnp.uint32(0), jnp.int32(0), rows.at)
        return jax.grad(lambda p: losses(design, p | design.prepared(p), batch)[0])(parameters)

    gradients = jax.device_get(gradient(before, data.episodes, data.numbers, data.rows))
    norm = np.sqrt(sum(np.sum(g**2) for g in jax.tree.leaves(gradients)))
    assert norm > 1e-7  # so it is clipped, to a size where Adam's epsilon shows it
    clipped = jax.tree.map(lambda g: g * 1e-7 / norm, gradients)
    expected = adamw_by_hand(design, clipped, before, 0.5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), after, expected)


def test_training_drops_out() -> None:
    design = tiny("dt")
    batch = window(toy_data(), [10, 20])
    parameters = fresh(design)
    one, same, other = (float(loss(design, parameters, batch, jax.random.key(k))[0]) for k in (1, 1, 2))
    assert one == same
    assert one != other
