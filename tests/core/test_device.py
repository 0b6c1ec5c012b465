"""Where data is stored, by the free memory of a device."""

from __future__ import annotations

import types

import jax.numpy as jnp
import pytest

from cwbc.core import device
from cwbc.core.device import default_place


@pytest.mark.parametrize(
    ("memory", "size", "place"),
    [
        (None, 10**15, "device"),  # a CPU's memory is the host's
        ({}, 10**15, "device"),
        ({"bytes_limit": 1000, "bytes_in_use": 200}, 400, "device"),
        ({"bytes_limit": 1000, "bytes_in_use": 200}, 401, "host"),
    ],
)
def test_data_takes_at_most_half_of_the_free_memory(
    memory: dict[str, int] | None, size: int, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    array = types.SimpleNamespace(devices=lambda: [types.SimpleNamespace(memory_stats=lambda: memory)])
    monkeypatch.setattr(jnp, "zeros", lambda shape: array)
    assert default_place(size) == place


def test_a_cpu_stores_any_data() -> None:
    assert default_place(10**15) == "device"


def test_mapped_data_stays_on_disk_unless_an_accelerator_has_room(monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_place(1, is_mapped=True) == "disk"
    memory = {"bytes_limit": 1000, "bytes_in_use": 200}
    array = types.SimpleNamespace(devices=lambda: [types.SimpleNamespace(memory_stats=lambda: memory)])
    monkeypatch.setattr(jnp, "zeros", lambda shape: array)
    monkeypatch.setattr(device, "on_cpu", lambda: False)
    assert [default_place(size, is_mapped=True) for size in (400, 401)] == ["device", "disk"]
