"""Cloning: losses by hand, return noise, the optimizer's update, and the health of predictions."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray
from toys import cloning, random_parameters, tiny, toy_data, with_cloning

from cwbc.core.cloning import Cloning, CloningBatch, CloningNumbers, mean_weights
from cwbc.core.learners import Columns, Metrics
from cwbc.core.methods import Training, as_begun
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.regularizers import Conservative
from cwbc.core.sampling import Choice, Episodes, RandomNumbers, Window, gathered, sample, to_device
from cwbc.core.training_loop import initialize, run_chunk
from cwbc.core.trajectories import Trajectories

TRAINING = Training(steps=40, batch_size=8, context=5)


def specified(name: str, **options: Any) -> PolicySpec:
    """A small method on the toy, in the paper's scale, so that conditions can be computed by hand."""
    method = as_begun(tiny(name, **{"condition_scale": "paper", **options}), TRAINING.steps)
    return PolicySpec.fit(method, toy_data(), TRAINING)


def regularizer_of(spec: PolicySpec) -> Conservative:
    found = cloning(spec.method).regularizer
    assert found is not None
    return found


def window(data: Trajectories, episodes: list[int], context: int = 5) -> Any:
    """The first steps of the given episodes, by plain Python: a Window of NumPy's arrays."""
    rows = [[data.starts[e] + min(k, data.lengths[e] - 1) for k in range(context)] for e in episodes]
    mask: Any = np.array([[k < data.lengths[e] for k in range(context)] for e in episodes])
    timesteps: Any = np.where(mask, np.arange(context, dtype=np.int32), 0)
    threshold = np.percentile(data.returns, 95)
    mean, std = data.observation_statistics
    return Window(
        columns=Columns(
            observations=(data.observations[np.array(rows)] - mean) / std,
            actions=data.actions[np.array(rows)],
            extra={"returns_to_go": data.returns_to_go[np.array(rows)].astype(np.float32)},
        ),
        timesteps=timesteps,
        mask=mask,
        selected=data.returns[np.array(episodes)] >= threshold,
        episodes={"shortfalls": (data.best - data.returns[np.array(episodes)]).astype(np.float32)},
        most_selected=len(episodes),
    )


def with_returns_to_go(window: Window, returns_to_go: jax.Array) -> Window:
    columns = dataclasses.replace(window.columns, extra={"returns_to_go": returns_to_go})
    return dataclasses.replace(window, columns=columns)


def batch_of(spec: PolicySpec, window: Window, key: jax.Array) -> CloningBatch:
    """A batch of these windows, whose return noise and dropout come from one key."""
    none = jnp.zeros(len(window.mask), jnp.uint32)
    noise = jax.random.uniform(key, (window.most_selected,))
    random = RandomNumbers(episodes=none, starts=none, noise=noise, rounding=jnp.zeros(()), key=key)
    learner = cloning(spec.method)
    return learner.batch(window, random, learner.numbers)


@functools.partial(jax.jit, static_argnums=0)
def loss(
    spec: PolicySpec, parameters: dict[str, Any], window: Window, key: jax.Array
) -> tuple[jax.Array, Metrics]:
    learner = cloning(spec.method)
    return learner.losses(spec, parameters | learner.prepared(parameters), batch_of(spec, window, key))


def initial(spec: PolicySpec) -> Any:
    """Parameters before the first step."""
    return jax.tree.map(lambda x: np.asarray(x)[0], initialize(spec, (0,)).parameters)


def test_weights_make_the_sum_a_mean_over_the_mask() -> None:
    mask = jnp.asarray([[True, False], [True, True]])
    np.testing.assert_allclose(mean_weights(mask), [[1 / 3, 0], [1 / 3, 1 / 3]], rtol=1e-6)
    np.testing.assert_array_equal(mean_weights(jnp.zeros((2, 2), bool)), np.zeros((2, 2)))


def test_the_prediction_loss_is_the_mean_over_unmasked_steps() -> None:
    data, spec = toy_data(), specified("rvs")
    parameters = initial(spec)
    batch = window(data, [0, 1])
    total, parts = loss(spec, parameters, batch, jax.random.key(1))
    batch = jax.device_get(batch)
    columns, errors = batch.columns, []
    for row in range(2):
        for k in range(5):
            if batch.mask[row, k]:
                omega = columns.extra["returns_to_go"][row, k] / (data.horizon - k)
                x = np.append(columns.observations[row, k], omega)
                x = np.maximum(x @ parameters["layer0"]["weight"] + parameters["layer0"]["bias"], 0)
                predicted = np.tanh(x @ parameters["layer1"]["weight"] + parameters["layer1"]["bias"])
                errors.append(np.mean((predicted - columns.actions[row, k]) ** 2))
    np.testing.assert_allclose(float(total), np.mean(errors), rtol=1e-5)
    np.testing.assert_array_equal(parts["prediction"], total)


def test_the_conservative_loss_averages_over_the_selected_windows_alone() -> None:
    data, spec = toy_data(), specified("rvs+c")
    parameters = initial(spec)
    key = jax.random.key(1)
    selected = int(np.argsort(data.returns)[-3])  # among the top 5 %, and below the best
    batch = window(data, [selected, 0, 1])
    assert batch.selected.tolist() == [True, False, False]
    assert batch.episodes["shortfalls"][0] > 0
    parts = loss(spec, parameters, batch, key)[1]
    # By hand: that trajectory with noise on its returns-to-go, scored as plain RvS is.
    amount = regularizer_of(spec).width * jax.random.uniform(key, (3,))[0]
    alone = window(data, [selected])
    noise = (data.best - data.returns[selected]) + amount
    noisy = with_returns_to_go(alone, alone.columns.extra["returns_to_go"] + noise)
    expected = loss(specified("rvs"), parameters, noisy, key)
    np.testing.assert_allclose(float(parts["conservative"]), float(expected[0]), rtol=1e-5)
    np.testing.assert_allclose(
        float(parts["loss"]), float(parts["prediction"]) + float(parts["conservative"]), rtol=1e-6
    )


class Recorder:
    """A stand-in for a network that records its conditions, and answers with them."""

    looks_back = False
    conditions: ClassVar[list[jax.Array]] = []

    def prepared(self, parameters: dict[str, Any], dtype: Any) -> dict[str, Any]:
        return {}

    def __call__(self, parameters: Any, observations: Any, conditions: jax.Array, *rest: Any) -> jax.Array:
        self.conditions.append(conditions)
        return conditions[..., None]


def test_regularized_windows_begin_at_the_best_return_or_above() -> None:
    data, spec = toy_data(), specified("rvs+c", percentile=0.0)
    recorded = dataclasses.replace(spec, method=with_cloning(spec.method, network=Recorder()))
    width = regularizer_of(spec).width
    seen: list[NDArray[np.float32]] = []
    for number in range(5):
        Recorder.conditions.clear()
        batch = batch_of(recorded, window(data, [0, 20, 59], context=1), jax.random.key(number))
        cloning(recorded.method).losses(recorded, {}, batch)
        seen.append(np.asarray(Recorder.conditions[0])[3:, 0] * data.horizon)  # at t = 0, omega H is g
    noisy = np.stack(seen)
    assert (noisy >= data.best - 1e-4).all()
    assert (noisy <= data.best + width + 1e-4).all()
    assert noisy.std() > 0.1 * width


def sampled_batches(spec: PolicySpec, seed: int, steps: int) -> CloningBatch:
    """What the first steps of a seed train on. [step of training, ...]"""
    source, learner = to_device(toy_data(), spec.method), cloning(spec.method)

    @jax.jit
    def batches(episodes: Episodes, numbers: CloningNumbers, columns: Columns) -> CloningBatch:
        def batch(number: jax.Array) -> CloningBatch:
            return batch_at(spec, learner, episodes, numbers, columns, seed, number)

        return jax.vmap(batch)(jnp.arange(steps))

    return batches(source.episodes, source.numbers, source.columns)


def batch_at(
    spec: PolicySpec,
    learner: Cloning,
    episodes: Episodes,
    numbers: CloningNumbers,
    columns: Columns,
    seed: int,
    number: jax.Array,
) -> CloningBatch:
    """What step `number` of a seed trains on."""

    def gather(choice: Choice) -> Columns:
        return gathered(columns, choice)

    return learner.batch(*sample(spec, TRAINING, episodes, jnp.uint32(seed), number, gather), numbers)


def amounts_beyond_the_best(data: Trajectories, batch: CloningBatch) -> NDArray[np.float64]:
    """By how much each regularized window exceeds the best return. [step of training, window, step]"""
    returns_to_go, actions = np.asarray(batch.returns_to_go, np.float64), np.asarray(batch.actions)[..., 0]
    count = returns_to_go.shape[1] - batch.sampled
    before, after = returns_to_go[:, :count], returns_to_go[:, batch.sampled :]
    # The same windows again; every episode has one action throughout, which identifies it.
    assert batch.observations.shape[1] == batch.sampled  # noise changes none of these
    for values in (batch.actions, batch.timesteps):
        np.testing.assert_array_equal(values[:, :count], values[:, batch.sampled :])
    episodes = np.abs(data.actions[data.starts, 0] - actions[:, :count, :1]).argmin(axis=-1)
    return after - before - (data.best - data.returns[episodes])[..., None]


def test_every_window_and_every_step_of_training_has_a_return_noise_of_its_own() -> None:
    data, spec = toy_data(), specified("rvs+c", percentile=50.0)
    width = regularizer_of(spec).width
    batches = sampled_batches(spec, 3, 200)
    amounts = amounts_beyond_the_best(data, batches) / width
    used = np.asarray(batches.weights)[:, batches.sampled :, 0] > 0  # the last one only where it was selected
    np.testing.assert_allclose(amounts, amounts[..., :1].repeat(amounts.shape[2], axis=2), atol=1e-5)
    noise = amounts[..., 0][used]
    # Uniform between 0 and 1, and no two alike: not in a batch, not from one step of training to another.
    assert len(noise) > 600
    assert len(np.unique(noise.round(5))) > 0.98 * len(noise)
    np.testing.assert_allclose(np.quantile(noise, [0, 0.25, 0.5, 0.75, 1]), np.linspace(0, 1, 5), atol=0.06)
    # Nor does it depend on what else is sampled: the window's start, or the same place of the step before.
    starts = np.asarray(batches.timesteps)[:, : used.shape[1], 0]
    assert abs(np.corrcoef(noise, starts[used])[0, 1]) < 0.15
    whole = amounts[:, used.all(axis=0), 0]
    assert abs(np.corrcoef(whole[1:].ravel(), whole[:-1].ravel())[0, 1]) < 0.15
    assert abs(np.corrcoef(whole[:, 0], whole[:, 1])[0, 1]) < 0.2
    other = amounts_beyond_the_best(data, sampled_batches(spec, 4, 1))[0, :, 0] / width
    assert np.abs(other - amounts[0, :, 0]).min() > 1e-4  # nor is it another seed's


def test_alpha_weighs_the_conservative_loss() -> None:
    data, spec = toy_data(), specified("rvs+c", coefficient=3.0)
    batch = window(data, [int(np.argmax(data.returns)), 0, 1])
    parts = loss(spec, initial(spec), batch, jax.random.key(1))[1]
    assert float(parts["conservative"]) > 0
    expected = float(parts["prediction"]) + 3 * float(parts["conservative"])
    np.testing.assert_allclose(float(parts["loss"]), expected, rtol=1e-6)


def test_without_selected_windows_the_conservative_loss_is_zero() -> None:
    data, spec = toy_data(), specified("rvs+c")
    parts = loss(spec, initial(spec), window(data, [0, 1]), jax.random.key(1))[1]
    assert float(parts["conservative"]) == 0.0
    assert float(parts["loss"]) == float(parts["prediction"])


def test_steps_past_the_end_of_an_episode_are_never_trained_on() -> None:
    data, spec = toy_data(), specified("dt+c")
    parameters = random_parameters(spec, 0)
    short = int(np.argmin(data.lengths))
    # Regularized, too, as a short one with a high return is.
    batch = dataclasses.replace(window(data, [short]), selected=np.array([True]))
    mask, columns, key = batch.mask, batch.columns, jax.random.key(1)
    assert not mask.all()
    garbage = Columns(
        observations=np.where(mask[..., None], columns.observations, np.float32(1e3)),
        actions=np.where(mask[..., None], columns.actions, np.float32(-0.5)),
        extra={"returns_to_go": np.where(mask, columns.extra["returns_to_go"], np.float32(1e6))},
    )
    clean = loss(spec, parameters, batch, key)[0]
    dirty = loss(spec, parameters, dataclasses.replace(batch, columns=garbage), key)[0]
    np.testing.assert_allclose(float(dirty), float(clean))


def parameters_after(spec: PolicySpec, steps: int) -> Any:
    """The parameters of seed 0 after so many steps, one at a time."""
    state, data = initialize(spec, (0,)), to_device(toy_data(), spec.method)
    for step in range(steps):
        state, _ = run_chunk(spec, TRAINING, state, data, (0,), step, 1)
    return jax.tree.map(lambda x: np.asarray(x)[0], state.parameters)


def test_the_learning_rate_warms_up_over_a_tenth_of_the_training() -> None:
    spec = specified("rvs")
    rate = cloning(spec.method).optimizer.learning_rate
    before, changes = initial(spec)["layer0"]["weight"], []
    for steps in range(1, 6):
        after = parameters_after(spec, steps)["layer0"]["weight"]
        changes.append(float(np.abs(after - before).max()))
        before = after
    # Adam's first step has the size of the learning rate: a quarter of it, as 4 steps of 40 warm up.
    np.testing.assert_allclose(changes[0], rate / 4, rtol=0.02)
    assert max(changes) <= 1.2 * rate


def adamw_by_hand(gradients: Any, parameters: Any, learning_rate: float, decay: float) -> Any:
    """The first step of AdamW: moments begin at 0 and are corrected, so it is g / (|g| + eps)."""
    return jax.tree.map(
        lambda p, g: p - learning_rate * (g / (np.abs(g) + 1e-8) + decay * p), parameters, gradients
    )


def test_the_first_update_is_adamw_with_decay_of_the_clipped_gradient() -> None:
    optimizer = {"learning_rate": 0.5, "weight_decay": 0.1, "warmup_steps": 1, "clip_norm": 1e-7}
    spec = specified("rvs", **optimizer)
    learner, source, before = cloning(spec.method), to_device(toy_data(), spec.method), initial(spec)

    @jax.jit
    def gradient(parameters: Any, episodes: Episodes, numbers: CloningNumbers, columns: Columns) -> Any:
        batch = batch_at(spec, learner, episodes, numbers, columns, 0, jnp.int32(0))
        return jax.grad(lambda p: learner.losses(spec, p | learner.prepared(p), batch)[0])(parameters)

    gradients = jax.device_get(gradient(before, source.episodes, source.numbers, source.columns))
    norm = np.sqrt(sum(np.sum(g**2) for g in jax.tree.leaves(gradients)))
    assert norm > 1e-7  # so it is clipped, to a size where Adam's epsilon shows it
    clipped = jax.tree.map(lambda g: g * 1e-7 / norm, gradients)
    expected = adamw_by_hand(clipped, before, 0.5, 0.1)
    after = parameters_after(spec, 1)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5), after, expected)


def test_training_drops_out() -> None:
    spec = specified("dt")
    batch, parameters = window(toy_data(), [10, 20]), random_parameters(spec, 0)
    one, same, other = (float(loss(spec, parameters, batch, jax.random.key(k))[0]) for k in (1, 1, 2))
    assert one == same
    assert one != other


def test_the_health_of_predictions_by_hand() -> None:
    """A network without weights answers 0, in the middle of the range; one with a huge bias, an end of it."""
    data, spec = toy_data(), specified("rvs")
    parameters = jax.tree.map(np.zeros_like, initial(spec))
    batch = window(data, [0, 30, 59])
    metrics = loss(spec, parameters, batch, jax.random.key(0))[1]
    assert float(metrics["variation"]) == 0.0
    assert float(metrics["saturation"]) == 0.0
    parameters["layer1"]["bias"] = np.full_like(parameters["layer1"]["bias"], 50.0)
    metrics = loss(spec, parameters, batch, jax.random.key(0))[1]
    assert float(metrics["variation"]) == pytest.approx(0.0, abs=1e-3)
    assert float(metrics["saturation"]) == 1.0  # no logged action is at an end


def test_numbers_are_no_part_of_the_form() -> None:
    one, other = specified("rvs+c"), specified("rvs+c", learning_rate=0.1, coefficient=2.0, noise=7.0)
    assert one != other
    assert one.form == other.form
    assert hash(one.form) == hash(other.form)
    numbers = (cloning(spec.method).numbers for spec in (one, other))
    assert [float(each.coefficient) for each in numbers] == [1.0, 2.0]
    assert one.form != specified("rvs+c", clip_norm=1.0).form
