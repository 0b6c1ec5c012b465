"""Estimates of memory, by hand and against what is allocated."""

from __future__ import annotations

import math
from pathlib import Path

import jax
import pytest
from toys import tiny, toy_data

import cwbc
from cwbc.core import device, memory
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.training_loop import shapes
from cwbc.system.errors import InputError

SETTINGS = Training(steps=20, batch_size=4, context=5)


def specified(name: str) -> PolicySpec:
    return PolicySpec.fit(tiny(name), toy_data(), SETTINGS)


def limited(monkeypatch: pytest.MonkeyPatch, size: float) -> None:
    monkeypatch.setattr(memory, "total_memory", lambda: size)


@pytest.mark.parametrize("name", ["rvs", "dt"])
def test_a_training_needs_at_least_its_state(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specified(name)
    state = shapes(spec, (0, 1))
    allocated = sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(state))
    limited(monkeypatch, allocated)
    with pytest.raises(InputError, match=f"{name} would take at least .* of 2 seeds, .* there are"):
        memory.check_training(spec, SETTINGS, 2)
    limited(monkeypatch, 100 * allocated)  # nothing that works is refused
    memory.check_training(spec, SETTINGS, 2)


def test_a_batch_by_hand() -> None:
    # 20 steps of training x 4 windows x 5 steps x (2 observations, 1 action, return-to-go, timestep), and
    # what a layer keeps: 16 units of each of the 20 rows.
    assert memory._batch(specified("rvs"), SETTINGS) == 4 * (20 * 20 * 5 + 20 * 16)
    # A transformer: 8 x 16 of each of 15 tokens, and 15 x 15 scores, in each of 4 windows.
    expected = 4 * (20 * 20 * 5 + 4 * (8 * 15 * 16 + 15 * 15))
    assert memory._batch(specified("dt"), SETTINGS) == expected


def test_every_way_to_train_is_checked_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited(monkeypatch, 1000)
    with pytest.raises(InputError, match="1e-06 GB; a smaller width"):
        cwbc.train(toy_data(), "rvs", seeds=1, preset="small", directory=tmp_path / "run")
    assert not (tmp_path / "run").exists()
    limited(monkeypatch, 1e12)
    with pytest.raises(InputError, match="would take at least"):
        cwbc.train(toy_data(), "rvs", seeds=10, width=65_536, layers=100, directory=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_time_limit_beyond_32_bits_is_refused() -> None:
    with pytest.raises(InputError, match="the time limit of the data must be at most 2,147,483,647; got 4"):
        cwbc.train(toy_data().described(time_limit=4_000_000_000), "rvs", seeds=1, preset="small")


def test_histories_of_all_episodes_have_to_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = specified("dt")  # remembers 5 steps of 5 numbers: 100 bytes
    limited(monkeypatch, 6000)
    memory.check_evaluation(spec, 2, 3, 10)
    with pytest.raises(InputError, match="2 seeds x 3 targets x 11 episodes would take at least"):
        memory.check_evaluation(spec, 2, 3, 11)


def test_the_memory_of_the_machine_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 1e8 < device.total_memory() < 1e15
    monkeypatch.setattr(device, "host_memory", lambda: 123456.0)
    assert device.total_memory() == 123456
