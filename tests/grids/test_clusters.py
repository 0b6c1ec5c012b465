"""Clusters that are not there, and what cells take of those that are."""

from __future__ import annotations

import importlib
import re
import socket
import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from cwbc.grids import clusters
from cwbc.system.errors import InputError


def test_no_cluster_is_the_users_to_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="needs the extra `ray`")
    for address in ("nonsense", "127.0.0.1:1", "127.0.0.1:99999", "ray://127.0.0.1:1"):
        with (
            pytest.raises(InputError, match=f"no Ray cluster at {address}"),
            clusters.connected(address),
        ):
            pass
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:2")
    with pytest.raises(InputError, match=re.escape("no Ray cluster at 127.0.0.1:2")):
        clusters.offered()


SETTINGS = bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])


def served(*answer: bytes) -> str:
    """The address of a server that says this once, piece by piece."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with server, server.accept()[0] as connection:
            connection.recv(100)
            for piece in answer:
                connection.sendall(piece)
                time.sleep(0.05)

    threading.Thread(target=serve, daemon=True).start()
    return f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else answers there$"),
        (b"\x15\x03\x01\x00\x02\x02\x46\x00\x00", "is RAY_USE_TLS=1 missing"),
        (b"", "it closes the connection$"),
    ],
)
def test_something_else_at_the_address_is_told_at_once(
    answer: bytes, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=told):
        clusters.check_answer(served(answer))
    monkeypatch.setenv("RAY_USE_TLS", "1")  # only Ray itself can tell
    clusters.check_answer(served(answer))


def test_a_cluster_may_answer_in_pieces() -> None:
    clusters.check_answer(served(SETTINGS))
    clusters.check_answer("ray://" + served(SETTINGS[:2], SETTINGS[2:]))


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(InputError, match=re.escape("pip install 'cwbc[ray]'")):
        clusters.offered()


def cluster(*nodes: dict[str, float]) -> Any:
    rows = [{"Alive": True, "Resources": node} for node in nodes]
    return SimpleNamespace(nodes=lambda: [*rows, {"Alive": False, "Resources": {"GPU": 8.0, "CPU": 64.0}}])


def test_what_a_cell_takes() -> None:
    head: dict[str, float] = {}
    small, large, fast = {"CPU": 1.0}, {"CPU": 16.0}, {"CPU": 16.0, "GPU": 4.0}
    assert clusters.resources(cluster(head, small), None) == (0, {"num_cpus": 1})
    assert clusters.resources(cluster(head, small, large), None) == (0, {"num_cpus": 2})
    assert clusters.resources(cluster(large, fast, fast), None) == (8, {"num_gpus": 1})
    assert clusters.resources(cluster(large, fast), "cpu") == (0, {"num_cpus": 2})
    with pytest.raises(InputError, match="no node of the Ray cluster offers a GPU"):
        clusters.resources(cluster(head, large), "gpu")
    with pytest.raises(InputError, match="offers a CPU or a GPU"):
        clusters.resources(cluster(head), None)
