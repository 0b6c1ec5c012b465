"""Grids on a real Ray cluster: several nodes on this machine, one of which is killed midway."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from toy_cells import tables, toy_cells
from toys import ENVIRONMENT, toy_data

from cwbc.datasets import store
from cwbc.errors import InputError
from cwbc.grids import local, on_ray
from cwbc.grids.standing import Standing
from cwbc.training import Interrupted

ray_cluster = pytest.importorskip("ray.cluster_utils", reason="needs the extra `ray`")

NODE = {"object_store_memory": 80 * 2**20}  # the least that Ray takes
STEPS = 10_000


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What workers inherit: a store with the toy, and a place for compiled programs."""
    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(store.VARIABLE, str(folder / "store"))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *_python_path()]))
        patch.setenv("JAX_COMPILATION_CACHE_DIR", str(folder / "compiled"))
        patch.setenv("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        data = toy_data(full_length=True)
        store.add(data.described(name="toy", environment=f"toys:{ENVIRONMENT}"), "tests")
        yield


def _python_path() -> list[str]:
    return [each for each in [os.environ.get("PYTHONPATH", "")] if each]


@pytest.fixture(scope="module")
def cluster(surroundings: None) -> Iterator[Any]:
    """A head that runs nothing, and two nodes of one core."""
    # Sockets lie in it, so its path has to be short.
    folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
    head = {"num_cpus": 0, "include_dashboard": False, "temp_dir": folder.name, **NODE}
    made = ray_cluster.Cluster(True, head_node_args=head)
    try:
        for _ in range(2):
            made.add_node(num_cpus=1, wait=False, **NODE)
        made.wait_for_nodes()
        yield made
    finally:
        made.shutdown()
        folder.cleanup()


def owners(root: Path) -> dict[int, str]:
    """The cells that are worked on, by process."""
    found = {}
    for path in (root / ".leases").glob("*/[0-9]"):
        with contextlib.suppress(OSError, ValueError):
            found[int(json.loads(path.read_text())["pid"])] = path.parent.name
    return found


def parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


def when(condition: Callable[[Standing], bool], act: Callable[[], None]) -> Callable[[Standing], None]:
    """Act once, as soon as the grid stands so."""
    done: list[bool] = []

    def watch(standing: Standing) -> None:
        if not done and condition(standing):
            done.append(True)
            act()

    return watch


def test_a_grid_survives_a_stop_and_a_killed_node(
    cluster: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cells, root = toy_cells("toy", 4, STEPS), tmp_path / "ray"
    stopping: list[bool] = []
    stop = when(lambda s: any(r.done > 0 for r in s.running), lambda: stopping.append(True))
    with pytest.raises(Interrupted):
        on_ray.run(cells, root, address=cluster.address, progress=stop, should_stop=lambda: bool(stopping))
    assert list(root.glob("*/checkpoint.safetensors"))
    assert not owners(root)
    assert not list((root / ".leases").glob("driver-*"))

    lost: dict[str, Any] = {}

    def kill() -> None:
        """End the node of a cell that is being worked on."""
        process, lost["cell"] = next(iter(owners(root).items()))
        lost["finished"] = {path: path.stat().st_mtime_ns for path in root.glob("*/results.csv")}
        raylets = {node.all_processes["raylet"][0].process.pid: node for node in cluster.worker_nodes}
        cluster.remove_node(raylets[parent(process)], allow_graceful=False)

    seen: list[Standing] = []
    killing = when(lambda s: s.finished > 0 and bool(owners(root)), kill)

    def watch(standing: Standing) -> None:
        seen.append(standing)
        killing(standing)

    results = on_ray.run(cells, root, address=cluster.address, progress=watch)
    assert root / lost["cell"] / "results.csv" not in lost["finished"]
    assert not results.failures
    assert [outcome.cell for outcome in results.outcomes] == list(cells)
    assert all(path.stat().st_mtime_ns == before for path, before in lost["finished"].items())
    assert seen[-1].headline == "4/4 cells finished"
    local.run(cells, tmp_path / "local")
    assert tables(root) == tables(tmp_path / "local")
    assert not any(capfd.readouterr())  # Ray has told the user nothing


@pytest.mark.usefixtures("surroundings")
def test_what_is_finished_needs_no_cluster(tmp_path: Path) -> None:
    cells = toy_cells("toy", 1)
    local.run(cells, tmp_path)
    assert len(on_ray.run(cells, tmp_path, address="127.0.0.1:1").outcomes) == 1


def test_directories_that_are_not_shared_are_told(tmp_path: Path) -> None:
    nowhere = tmp_path / "root" / ".leases" / "driver-1"
    order = on_ray._Order([], [], nowhere, {}, 1.0, "cpu", None)
    assert not on_ray._work(order).saw


@pytest.mark.usefixtures("surroundings")
def test_no_cluster_is_the_users_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with pytest.raises(InputError, match="no Ray cluster at nonsense"):
        on_ray.run(toy_cells("toy", 1), tmp_path, address="nonsense")
