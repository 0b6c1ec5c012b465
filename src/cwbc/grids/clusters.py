"""Connections to Ray clusters, and the resources that they offer to cells."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from cwbc.system.errors import InputError, need_extra

if TYPE_CHECKING:
    from cwbc.core.device import Device

# The connection preface of HTTP/2, which Ray speaks: a greeting, and settings of length 0.
_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
_CORES = 2  # per cell on a cluster without GPUs, where a node has as many


@contextlib.contextmanager
def connected(address: str | None) -> Iterator[Any]:
    """Ray, connected to a cluster, without its own log messages."""
    ray = need_extra("ray", "ray", "grids on a Ray cluster")
    if ray.is_initialized():
        yield ray
        return
    address = address or os.environ.get("RAY_ADDRESS")
    check_answer(address)
    # No option of Ray turns off that it prints the log of a node that died.
    worker: Any = ray._private.worker
    printing = getattr(worker, "print_to_stdstream", None)
    worker.print_to_stdstream = lambda *_, **__: None
    try:
        try:
            ray.init(address or "auto", log_to_driver=False, logging_level="CRITICAL")
        except (ConnectionError, ValueError, RuntimeError) as error:
            where = f"at {address}" if address else "here; --address names one, `ray start --head` starts one"
            raise InputError(f"no Ray cluster {where} ({str(error).splitlines()[0]})") from error
        yield ray
    finally:
        ray.shutdown()
        worker.print_to_stdstream = printing


def check_answer(address: str | None) -> None:
    """Refuse an address where no Ray cluster answers: Ray itself would try for minutes."""
    host, _, port = (address or "").removeprefix("ray://").rpartition(":")
    if not host or not port.isdecimal():
        return
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=10) as connection:
            if os.environ.get("RAY_USE_TLS", "").lower() in (
                "1",
                "true",
            ):  # it would not answer plain text
                return
            connection.sendall(_GREETING)
            answer = connection.makefile("rb").read(9)
    except (OSError, OverflowError) as error:
        raise InputError(f"no Ray cluster at {address} ({error})") from error
    if answer[3:4] != b"\x04":  # settings, with which HTTP/2 answers
        found = "something else answers there" if answer else "it closes the connection"
        tls = ", by TLS: is RAY_USE_TLS=1 missing?" if answer[:1] == b"\x15" else ""
        raise InputError(f"no Ray cluster at {address}; {found}{tls}")


def offered(address: str | None = None) -> Device:
    """The device of a cluster, which decides the default sizes and precision."""
    with connected(address) as ray:
        return "gpu" if ray.cluster_resources().get("GPU", 0) >= 1 else "cpu"


def resources(ray: Any, device: Device | None) -> tuple[int, dict[str, int]]:
    """The number of GPUs to compute on, 0 for CPUs, and the resources of each task."""
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    gpus = sum(int(node.get("GPU", 0)) for node in nodes)
    cores = max(int(node.get("CPU", 0)) for node in nodes)
    if device != "cpu" and gpus:
        return gpus, {"num_gpus": 1}
    if device == "gpu":
        raise InputError("--device gpu: no node of the Ray cluster offers a GPU")
    if not cores:
        raise InputError("no node of the Ray cluster offers a CPU or a GPU; start one with `ray start`")
    return 0, {"num_cpus": min(_CORES, cores)}
