"""The training loop: seeds and methods side by side, chunks, streaming, callbacks and divergence."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
from toys import tiny, toy_data

from cwbc.core import streaming, training_loop
from cwbc.core.device import Place
from cwbc.core.learners import Metrics
from cwbc.core.methods import Method, Training, as_begun
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import Source, in_host_memory, to_device
from cwbc.core.training_loop import Interrupted, Row, Trainee, initialize, run_chunk
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import DivergenceError

SETTINGS = Training(steps=30, batch_size=8, context=5)


@pytest.fixture(autouse=True)
def short_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of them in a training, all of one length and thus of one program, as in tests/runs."""
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 5)


def specified(name: str, data: Trajectories | None = None, **options: Any) -> PolicySpec:
    method = as_begun(tiny(name, **options), SETTINGS.steps)
    return PolicySpec.fit(method, data or toy_data(), SETTINGS)


def trained(spec: PolicySpec, data: Source, seeds: tuple[int, ...], cuts: list[int]) -> tuple[Any, Any]:
    """The state after chunks of these lengths, and the loss of every step."""
    state, step, losses = initialize(spec, seeds), 0, []
    for length in cuts:
        state, metrics = run_chunk(spec, SETTINGS, state, data, seeds, step, length)
        losses.append(metrics["loss"])
        step += length
    return state, np.concatenate(losses)


def train_state(spec: PolicySpec, seeds: tuple[int, ...], cuts: list[int]) -> Any:
    return trained(spec, to_device(toy_data(), spec.method), seeds, cuts)[0]


def assert_same(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


def test_every_seed_begins_with_parameters_of_its_own() -> None:
    weights = np.asarray(initialize(specified("rvs"), (0, 5)).parameters["layer0"]["weight"])
    assert np.abs(weights[0] - weights[1]).min() > 0
    alone = initialize(specified("rvs"), (5,)).parameters["layer0"]["weight"]
    np.testing.assert_array_equal(weights[1], np.asarray(alone)[0])


@pytest.mark.parametrize("name", ["rvs+w+c", "dt"])
def test_a_seed_alone_equals_that_seed_in_a_stack(name: str) -> None:
    stack = train_state(specified(name), (0, 5, 7), [5]).parameters
    alone = train_state(specified(name), (5,), [5]).parameters
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[0]), stack, alone)
    differs = jax.tree.map(lambda a: bool((a[0] != a[1]).any()), stack)
    assert any(jax.tree.leaves(differs))


@pytest.mark.parametrize(
    ("name", "discrete", "seeds", "lot"),
    [("rvs+cwbc", False, (0, 5, 7), 3), ("rvs+cwbc", True, (5,), 5)],
)
def test_streamed_training_is_bit_for_bit_that_on_the_device(
    name: str, discrete: bool, seeds: tuple[int, ...], lot: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "SAMPLED_TOGETHER", lot)  # of 3: a chunk of 5 steps is 3 and 2
    data = toy_data(discrete=discrete)
    spec = specified(name, data)
    whole = trained(spec, to_device(data, spec.method), seeds, [5, 5])
    streamed = trained(spec, in_host_memory(data, spec.method), seeds, [5, 5])
    assert_same(streamed, whole)
    assert whole[1].shape == (10, len(seeds))


def test_streamed_training_as_on_a_gpu_equals_that_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "SAMPLED_TOGETHER", 5)
    spec, data, seeds = specified("rvs+cwbc"), toy_data(), (0, 5, 7)
    with side_by_side(monkeypatch):
        whole = trained(spec, to_device(data, spec.method), seeds, [10])
        streamed = trained(spec, in_host_memory(data, spec.method), seeds, [10])
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), streamed, whole)


@contextlib.contextmanager
def side_by_side(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Seeds in one program, as on a GPU."""
    with monkeypatch.context() as patch:
        patch.setattr(training_loop, "on_cpu", lambda: False)
        # Without the cache, which holds programs for a CPU.
        patch.setattr(training_loop, "_chunk_program", training_loop._chunk_program.__wrapped__)
        yield


def assert_close(one: tuple[Any, Metrics], other: tuple[Any, Metrics], count: int) -> None:
    """The same parameters and losses of so many rows, up to rounding."""
    assert one[1]["loss"].shape == (5, count)
    np.testing.assert_allclose(one[1]["loss"], other[1]["loss"], rtol=1e-3)
    parameters = one[0].parameters, other[0].parameters
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-3), *parameters)


@pytest.mark.parametrize("names", [("rvs+w+c",), ("dt",), ("rvs+w+c", "rvs+c")], ids="+".join)
def test_seeds_and_methods_side_by_side_as_on_a_gpu_equal_those_in_turn(
    names: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    specs, seeds = [specified(name) for name in names], (0, 5, 7)
    data = to_device(toy_data(), *(spec.method for spec in specs))

    def after_five_steps() -> tuple[Any, Metrics]:
        starts = [initialize(specs[0], seeds) for _ in specs]
        start = jax.tree.map(lambda *x: np.concatenate(x), *starts)
        return run_chunk(specs[0], SETTINGS, start, data, seeds, 0, 5)

    in_turn = after_five_steps()
    with side_by_side(monkeypatch):
        together = after_five_steps()
    assert_close(together, in_turn, len(names) * len(seeds))


def trainee(
    method: Method,
    seeds: tuple[int, ...] = (3, 4),
    data: Trajectories | None = None,
    **callbacks: Callable[..., None],
) -> Trainee:
    data = data or toy_data()
    spec = PolicySpec.fit(method, data, SETTINGS)
    return Trainee(data, spec, spec.method, seeds, initialize(spec, seeds), **callbacks)  # type: ignore[arg-type]


def test_the_loop_reports_every_chunk_and_saves_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_loop, "chunk_length", lambda *_: 25)  # leaves a last chunk of 5
    rows: list[Row] = []
    saved: list[int] = []
    steps: list[int] = []
    one = trainee(tiny("rvs+w+c"), record=rows.append, save=lambda state, step: saved.append(step))
    training_loop.train([one], SETTINGS, steps.append)
    assert [row["step"] for row in rows] == steps == [25, 30]
    assert {len(row["loss"]) for row in rows} == {2}
    assert (saved, one.step) == ([30], 30)
    training_loop.train([one], SETTINGS, steps.append)  # nothing is left to do
    assert len(rows) == 2


def test_a_stopped_training_saves_its_state_and_resumes_from_it() -> None:
    whole, resumed = trainee(tiny("rvs+w+c")), trainee(tiny("rvs+w+c"))
    training_loop.train([whole], SETTINGS)
    saved: list[int] = []
    resumed.save = lambda state, step: saved.append(step)
    calls = iter([False, True])
    with pytest.raises(Interrupted):
        training_loop.train([resumed], SETTINGS, should_stop=lambda: next(calls))
    assert (saved, resumed.step) == ([10], 10)
    training_loop.train([resumed], SETTINGS)
    assert_same(resumed.state, whole.state)


def test_states_are_saved_every_half_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_loop, "SAVE_INTERVAL", 0.0)
    saved: list[int] = []
    one = trainee(tiny("rvs+w+c"), save=lambda state, step: saved.append(step))
    training_loop.train([one], SETTINGS)
    assert saved == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize("place", ["host", "device"])
def test_data_is_streamed_where_the_device_has_no_room(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    sources: list[Source] = []

    def default_place(size: int, is_mapped: bool) -> Place:
        sizes.append(size)
        return place

    def noted(*arguments: Any) -> Any:
        sources.append(arguments[3])
        return arguments[2], {"loss": np.zeros((arguments[6], 2))}  # as if it had trained

    monkeypatch.setattr(training_loop, "default_place", default_place)
    monkeypatch.setattr(training_loop, "run_chunk", noted)
    data = toy_data()
    training_loop.train([trainee(tiny("rvs+w+c"))], SETTINGS)
    assert sizes == [data.steps * 4 * (2 + 1 + 1)]  # observations, action, return-to-go
    assert [source.streamed for source in sources] == [place == "host"] * 6


def test_an_infinite_loss_is_an_error_with_seed_and_step(monkeypatch: pytest.MonkeyPatch) -> None:
    def poisoned(*arguments: Any) -> Any:
        state, metrics = run_chunk(*arguments)
        first_step = arguments[5]
        if first_step == 10:
            metrics["loss"][3, 1] = np.inf
        return state, metrics

    monkeypatch.setattr(training_loop, "run_chunk", poisoned)
    saved: list[int] = []
    one = trainee(tiny("rvs+w+c"), (8, 9), save=lambda state, step: saved.append(step))
    with pytest.raises(DivergenceError, match=r"the loss of rvs\+w\+c became inf for seed 9 at step 13"):
        training_loop.train([one], SETTINGS)
    assert saved == []


def test_parameters_that_only_the_last_update_ruined_are_not_saved() -> None:
    saved: list[int] = []
    ruined = tiny("rvs", learning_rate=1e38, weight_decay=1e38)
    one = trainee(ruined, (4,), save=lambda state, step: saved.append(step))
    with pytest.raises(DivergenceError, match="parameters of seed 4 are not finite after step 0"):
        training_loop.train([one], dataclasses.replace(SETTINGS, steps=1))
    assert saved == []


def test_a_real_divergence_is_noticed() -> None:
    with pytest.raises(DivergenceError, match=r"seed 3 at step .*a lower learning rate"):
        training_loop.train([trainee(tiny("rvs+w+c", learning_rate=1e38), (3,))], SETTINGS)


def ablated() -> list[Method]:
    """Methods of one form: other coefficients, learning rates, weightings, and regularized fractions."""
    return [
        tiny("rvs+w+c"),
        tiny("rvs+c", learning_rate=0.01),
        tiny("rvs+w+c", percentile=50.0, coefficient=5.0),
    ]


def test_methods_trained_together_are_those_trained_alone() -> None:
    rows: list[list[Row]] = [[], [], []]
    together = [trainee(method, record=log.append) for method, log in zip(ablated(), rows, strict=True)]
    training_loop.train(together, SETTINGS)
    for method, one, log in zip(ablated(), together, rows, strict=True):
        alone_rows: list[Row] = []
        alone = trainee(method, record=alone_rows.append)
        training_loop.train([alone], SETTINGS)
        # On a CPU methods with other fractions of regularized windows take turns: the same bits.
        assert_same(one.state, alone.state)
        assert [row["loss"] for row in log] == [row["loss"] for row in alone_rows]
    first, *others = (np.asarray(one.state.parameters["layer0"]["weight"]) for one in together)
    assert not any(np.allclose(first, other) for other in others)


def test_datasets_of_equal_shapes_are_trained_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """One dataset has fewer episodes than the other, and other statistics and returns.

    The method has all that depends on a dataset: a condition, weights, regularized trajectories, and critics.
    """
    whole = toy_data()
    every = slice(None, None, 3)  # episode
    lengths = whole.lengths[every]
    rows = np.concatenate(
        [start + np.arange(n) for start, n in zip(whole.starts[every], lengths, strict=True)]
    )
    part = dataclasses.replace(
        whole,
        name="part",
        observations=3 * whole.observations[rows] + 1,
        actions=whole.actions[rows],
        rewards=2 * whole.rewards[rows],
        starts=np.cumsum(lengths) - lengths,
        lengths=lengths,
        terminated=whole.terminated[every],
    )
    sizes = {"candidates": 4, "compared": 2, "critic_width": 16, "critic_layers": 1}
    method = tiny("rvs+w+c+q", **sizes)

    def trained() -> list[Trainee]:
        both = [trainee(method, data=data) for data in (whole, part)]
        training_loop.train(both, SETTINGS)
        return both

    alone = [trainee(method, data=data) for data in (whole, part)]
    for one in alone:
        training_loop.train([one], SETTINGS)
    lanes: list[int] = []

    def noted(*given: Any) -> Any:
        lanes.append(given[3].methods)
        return run_chunk(*given)

    monkeypatch.setattr(training_loop, "run_chunk", noted)
    for one, other in zip(trained(), alone, strict=True):
        assert_same(one.state, other.state)  # on a CPU, to the last bit
    with side_by_side(monkeypatch):
        for one, other in zip(trained(), alone, strict=True):
            parameters = one.state.parameters, other.state.parameters
            jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=2e-3), *parameters)
    assert lanes[-1] == 2


def test_a_method_that_regularizes_all_of_its_windows_may_be_among_them() -> None:
    everything = tiny("rvs+c", percentile=0.0)
    among, alone = trainee(everything, (3,)), trainee(everything, (3,))
    training_loop.train([trainee(tiny("rvs+c"), (3,)), among], SETTINGS)
    training_loop.train([alone], SETTINGS)
    assert_same(among.state, alone.state)


def test_methods_that_differ_in_numbers_are_compiled_once() -> None:
    training_loop._chunk_program.cache_clear()
    training_loop.train([trainee(method, (3,)) for method in ablated()], SETTINGS)
    assert training_loop._chunk_program.cache_info().misses == 1
    training_loop.train([trainee(tiny("rvs+w+c", weight_decay=0.5), (3,))], SETTINGS)
    assert training_loop._chunk_program.cache_info().misses == 1


def test_methods_that_were_interrupted_at_different_steps_resume_each_from_its_own() -> None:
    methods = [tiny("rvs+w+c"), tiny("rvs+w+c", learning_rate=0.01)]
    both = [trainee(method, (3,)) for method in methods]
    with pytest.raises(Interrupted):
        training_loop.train(both, SETTINGS, should_stop=lambda: True)
    with pytest.raises(Interrupted):  # the second is one chunk further now
        training_loop.train(both[1:], SETTINGS, should_stop=lambda: True)
    steps: list[int] = []
    training_loop.train(both, SETTINGS, steps.append)
    assert steps == [10, 12, 15, 17, 20, 22, 25, 27, 30]
    for one, method in zip(both, methods, strict=True):
        whole = trainee(method, (3,))
        training_loop.train([whole], SETTINGS)
        assert_same(one.state, whole.state)
