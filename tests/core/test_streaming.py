"""Windows from host memory: every row against plain indexing, and the order of work on the device."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import jax
import numpy as np
import pytest
from toys import toy_data

from cwbc.core import streaming
from cwbc.core.learners import Columns
from cwbc.core.methods import Training, parse
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import Choice, Episodes, RandomNumbers, choose, in_host_memory, to_device
from cwbc.core.sampling import gathered as gathered_on_device
from cwbc.core.streaming import gathered, lots

TRAINING = Training(steps=40, batch_size=8, context=5)
DATA, METHOD = toy_data(), parse("rvs+cwbc")
SPEC = PolicySpec.fit(METHOD, DATA, TRAINING)


@pytest.mark.parametrize("discrete", [False, True])
def test_gathering_is_indexing(discrete: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "_PIECE", 7 * 8)  # many pieces of 7 observations, the last shorter
    data = toy_data(discrete=discrete)
    columns = Columns(data.observations, data.actions, {"returns_to_go": data.returns_to_go})
    rows, frames = np.random.default_rng(0).integers(0, data.steps, (2, 2, 3, 4, 5), np.int32)
    with ThreadPoolExecutor(3) as pool:
        found = gathered(columns, rows, frames, pool)
    expected = Columns(
        data.observations[frames], data.actions[rows], {"returns_to_go": data.returns_to_go[rows]}
    )
    jax.tree.map(np.testing.assert_array_equal, found, expected)
    assert found.observations.shape == (2, 3, 4, 5, 2)
    assert found.actions.dtype == data.actions.dtype


def test_data_on_the_device_is_one_lot() -> None:
    source = to_device(DATA, METHOD)
    (lot,) = lots(SPEC, source, TRAINING, (0, 5), 30, 120)
    assert (lot.first_step, lot.length) == (30, 120)
    assert lot.columns is source.columns


def test_lots_have_the_rows_that_their_steps_choose() -> None:
    source, seeds = in_host_memory(DATA, METHOD), (0, 5)

    @jax.jit
    def chosen(episodes: Episodes, seed: Any, step: Any) -> Choice:
        random = RandomNumbers.of(seed, step, TRAINING.batch_size)
        return choose(random, episodes, SPEC.observations, TRAINING.context)

    found = list(lots(SPEC, source, TRAINING, seeds, 30, 120))
    assert [(lot.first_step, lot.length) for lot in found] == [(30, 50), (80, 50), (130, 20)]
    for lot in found:
        assert lot.columns.actions.shape == (2, lot.length, 8, 5, 1)
        for place, number in ((0, 0), (1, lot.length - 1)):
            step = np.int32(lot.first_step + number)
            choice: Choice = jax.device_get(chosen(source.episodes, np.uint32(seeds[place]), step))
            own = place, number
            mine = jax.tree.map(lambda x, own=own: np.asarray(x)[own], lot.columns)
            jax.tree.map(np.testing.assert_array_equal, mine, gathered_on_device(source.columns, choice))


def test_a_lot_is_chosen_before_the_training_on_the_one_before_it_and_gathered_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    events: list[str] = []
    program, plain = streaming._chosen, streaming.gathered

    def choosing(*arguments: Any) -> Any:
        events.append("choose")
        return program(*arguments)

    def gathering(*arguments: Any) -> Any:
        events.append("gather")
        return plain(*arguments)

    monkeypatch.setattr(streaming, "_chosen", choosing)
    monkeypatch.setattr(streaming, "gathered", gathering)
    for _ in lots(SPEC, in_host_memory(DATA, METHOD), TRAINING, (0,), 0, 150):
        events.append("train")
    assert " ".join(events) == "choose choose gather train choose gather train gather train"


def test_a_lot_takes_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    source, plain = (
        in_host_memory(DATA, METHOD),
        lots(SPEC, in_host_memory(DATA, METHOD), TRAINING, (0,), 0, 40),
    )
    (whole,) = plain
    step = 8 * 5 * 2 * 4  # windows, steps, numbers, bytes
    monkeypatch.setattr(streaming, "_LOT", 24 * step)
    found = list(lots(SPEC, source, TRAINING, (0,), 0, 40))
    assert [lot.length for lot in found] == [10] * 4
    parts = [np.asarray(lot.columns.observations) for lot in found]
    np.testing.assert_array_equal(np.concatenate(parts, axis=1), whole.columns.observations)
    assert all(part.nbytes <= 24 * step for part in parts)
    monkeypatch.setattr(streaming, "_LOT", 1)
    assert next(lots(SPEC, source, TRAINING, (0,), 0, 2)).length == 1
