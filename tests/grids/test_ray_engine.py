"""Grids on a real Ray cluster: several nodes on this machine, one of which is killed midway."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from slow_toys import ENVIRONMENT, PAUSE
from toy_cells import tables, toy_cells
from toys import toy_data

from cwbc.core.training_loop import Interrupted
from cwbc.data import store
from cwbc.grids import engine, ray_engine
from cwbc.grids.engine import GridProgress, Options, Show
from cwbc.runs import locks

pytest.importorskip("ray", reason="needs the extra `ray`")

# In a process of its own: Ray starts nodes by forking, which a process that has used JAX must not do.
CLUSTER = """
import os, sys, tempfile
least = {"object_store_memory": 80 * 2**20}
# Sockets lie in the folder, so its path has to be short.
with tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True) as folder:
    os.environ["RAY_TMPDIR"] = folder  # before Ray looks for it; else it takes folders that all share
    from ray.cluster_utils import Cluster
    head = {"num_cpus": 0, "include_dashboard": False, **least}
    cluster = Cluster(True, head_node_args=head)
    try:
        nodes = [cluster.add_node(num_cpus=1, **least) for _ in range(2)]
        raylets = {node.all_processes["raylet"][0].process.pid: node for node in nodes}
        print(cluster.address, flush=True)
        for line in sys.stdin:
            cluster.remove_node(raylets[int(line)], allow_graceful=False)
            print("removed", flush=True)
    finally:
        cluster.shutdown()
"""


class Cluster:
    """A head that runs nothing, and two nodes of one core."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._orders, self._answers = process.stdin, process.stdout
        self.address = self._answers.readline().strip()

    def kill_node_of(self, process: int) -> None:
        """End the node that a worker belongs to, with all its processes."""
        raylet = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1]
        print(raylet, file=self._orders, flush=True)
        assert self._answers.readline() == "removed\n"


@pytest.fixture(scope="module")
def surroundings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What workers inherit: a store with the toy, and where tests are found."""
    folder = tmp_path_factory.mktemp("ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(store.VARIABLE, str(folder / "store"))
        patch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parents[1]), *_python_path()]))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        data = toy_data(full_length=True)
        store.add(data.described(name="toy", environment=ENVIRONMENT), "tests")
        yield


def _python_path() -> list[str]:
    return [each for each in [os.environ.get("PYTHONPATH", "")] if each]


@pytest.fixture
def cluster(surroundings: None) -> Iterator[Cluster]:
    slow = {**os.environ, PAUSE: "0.1"}  # an evaluation takes some seconds there
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([sys.executable, "-c", CLUSTER], text=True, env=slow, **pipes) as process:
        yield Cluster(process)


def owners(root: Path) -> dict[int, str]:
    """The cells that are worked on, by process."""
    found = {}
    for path in root.glob(f"*/{locks.FOLDER}/[0-9]"):
        with contextlib.suppress(OSError, ValueError):
            if path.stat().st_mtime == 0:  # released
                continue
            found[int(json.loads(path.read_text())["pid"])] = path.parent.name
    return found


def when(condition: Callable[[GridProgress], bool], act: Callable[[], None]) -> Show:
    """Act once, as soon as the grid stands so."""
    done: list[bool] = []

    def watch(standing: GridProgress) -> None:
        if not done and condition(standing):
            done.append(True)
            act()

    return watch


def test_a_grid_survives_a_stop_and_a_killed_node(
    cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cells, root = toy_cells("toy", 3), tmp_path / "ray"
    engine.run(cells, tmp_path / "local")
    stopping: list[bool] = []
    stop = when(lambda s: "evaluating" in str(s.running), lambda: stopping.append(True))
    with pytest.raises(Interrupted):
        ray_engine.run(
            cells,
            root,
            address=cluster.address,
            options=Options(progress=stop, should_stop=lambda: bool(stopping)),
        )
    assert list(root.glob("*/checkpoint.safetensors"))
    assert not owners(root)
    assert not list((root / ".drivers").glob("driver-*"))

    lost: dict[str, Any] = {}

    def kill() -> None:
        """End the node of a cell that is being worked on."""
        process, lost["cell"] = next(iter(owners(root).items()))
        lost["finished"] = {path: path.stat().st_mtime_ns for path in root.glob("*/results.csv")}
        cluster.kill_node_of(process)

    seen: list[GridProgress] = []
    killing = when(lambda s: s.finished > 0 and bool(owners(root)), kill)

    def watch(standing: GridProgress) -> None:
        seen.append(standing)
        killing(standing)

    results = ray_engine.run(cells, root, address=cluster.address, options=Options(progress=watch))
    assert root / lost["cell"] / "results.csv" not in lost["finished"]
    assert not results.failures
    assert [outcome.cell for outcome in results.outcomes] == list(cells)
    assert all(path.stat().st_mtime_ns == before for path, before in lost["finished"].items())
    assert str(seen[-1].overall) == "3/3 cells finished"
    assert tables(root) == tables(tmp_path / "local")
    assert not any(capfd.readouterr())  # Ray has printed nothing


@pytest.mark.usefixtures("surroundings")
def test_what_is_finished_needs_no_cluster(tmp_path: Path) -> None:
    cells = toy_cells("toy", 1)
    engine.run(cells, tmp_path)
    assert len(ray_engine.run(cells, tmp_path, address="127.0.0.1:1").outcomes) == 1


def test_directories_that_are_not_shared_are_told(tmp_path: Path) -> None:
    nowhere = tmp_path / "root" / ".drivers" / "driver-1"
    order = ray_engine._Order([], nowhere, 1.0, "cpu", None, None)
    assert ray_engine._work(order)[1] is None
