"""Clusters that are not there, and what cells take of those that are."""

from __future__ import annotations

import importlib
import re
from types import SimpleNamespace
from typing import Any

import pytest

from cwbc.grids import ray_engine
from cwbc.system.errors import InputError


def test_no_cluster_is_the_users_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    for address in ("nonsense", "127.0.0.1:1", "127.0.0.1:99999", "ray://127.0.0.1:1"):
        with (
            pytest.raises(InputError, match=f"no Ray cluster at {address}"),
            ray_engine.connected(address),
        ):
            pass
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:2")
    with pytest.raises(InputError, match=re.escape("no Ray cluster at 127.0.0.1:2")):
        ray_engine.offered()


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=re.escape("pip install 'cwbc[ray]'")):
        ray_engine.offered()


def cluster(*nodes: dict[str, float]) -> Any:
    rows = [{"Alive": True, "Resources": node} for node in nodes]
    return SimpleNamespace(nodes=lambda: [*rows, {"Alive": False, "Resources": {"GPU": 8.0, "CPU": 64.0}}])


def test_what_a_cell_takes() -> None:
    head: dict[str, float] = {}
    small, large, fast = {"CPU": 1.0}, {"CPU": 16.0}, {"CPU": 16.0, "GPU": 4.0}
    assert ray_engine.resources(cluster(head, small), None) == (0, {"num_cpus": 1})
    assert ray_engine.resources(cluster(head, small, large), None) == (0, {"num_cpus": 2})
    assert ray_engine.resources(cluster(large, fast, fast), None) == (8, {"num_gpus": 1})
    assert ray_engine.resources(cluster(large, fast), "cpu") == (0, {"num_cpus": 2})
    with pytest.raises(InputError, match="no node of the Ray cluster offers a GPU"):
        ray_engine.resources(cluster(head, large), "gpu")
    with pytest.raises(InputError, match="offers a CPU or a GPU"):
        ray_engine.resources(cluster(head), None)
