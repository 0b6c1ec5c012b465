"""What the driver of a Ray cluster makes of its tasks, with a Ray that runs each of them here at once."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from toy_cells import tables, toy_cells
from toys import write_toy

from cwbc.core.training_loop import Interrupted
from cwbc.data import generated, store
from cwbc.grids import engine, ray_engine
from cwbc.grids.engine import Options


class RayError(Exception):
    """What Ray raises for a worker that is gone."""


class RayTaskError(RayError):
    """What Ray raises for a task that raised."""

    cause = None


class Ray:
    """A cluster of one node; `instead` is what its tasks do in place of their work."""

    exceptions = SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError)

    def __init__(self) -> None:
        self.instead: Callable[[Any], Any] | None = None
        self.answers, self.gpus = True, 0.0

    def nodes(self) -> list[dict[str, Any]]:
        return [{"Alive": True, "Resources": {"CPU": 2.0, "GPU": self.gpus}}]

    def remote(self, **_: Any) -> Callable[[Any], Any]:
        def task(work: Callable[[Any], Any]) -> Any:
            handed = SimpleNamespace(remote=lambda order: Task(self.instead or work, order))
            return SimpleNamespace(options=lambda name: handed)

        return task

    def wait(self, tasks: list[Task], num_returns: int, timeout: float) -> tuple[list[Task], list[Task]]:
        return (tasks[:num_returns], tasks[num_returns:]) if self.answers else ([], tasks)

    def get(self, task: Task) -> Any:
        return task.run(task.order)


@dataclasses.dataclass(eq=False)
class Task:
    run: Callable[[Any], Any]
    order: Any


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Ray:
    ray = Ray()

    @contextlib.contextmanager
    def connected(address: str | None) -> Iterator[Ray]:
        yield ray

    monkeypatch.setattr(ray_engine, "connected", connected)
    return ray


@pytest.fixture
def toy(tmp_path: Path) -> Path:
    return write_toy(tmp_path / "toy.hdf5")


@pytest.mark.usefixtures("cluster", "no_pictures")
def test_the_table_is_that_of_the_local_engine(toy: Path, tmp_path: Path) -> None:
    cells = toy_cells(toy, 2, steps=20)
    assert len(ray_engine.run(cells, tmp_path / "ray").outcomes) == 2
    engine.run(cells, tmp_path / "local")
    assert tables(tmp_path / "ray") == tables(tmp_path / "local")
    assert not list((tmp_path / "ray" / ".drivers").iterdir())


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("error", "shown"),
    [(RayError("gone"), "its worker died, and so did 5 more"), (RayTaskError("odd"), "RayTaskError: odd")],
)
def test_what_a_group_had_finished_outlives_its_worker(
    error: Exception, shown: str, cluster: Ray, toy: Path, tmp_path: Path
) -> None:
    (slower,) = toy_cells(toy, 1, steps=20, learning_rate=1e-4)
    cells = (*toy_cells(toy, 1, steps=20), dataclasses.replace(slower, label="slower"))

    def finish_one_and_die(order: Any) -> Any:
        assert len(order.group) == 2
        engine.run([order.group[0].cell], order.sign.parent.parent)
        raise error

    cluster.instead, cluster.gpus = finish_one_and_die, 1.0
    results = ray_engine.run(cells, tmp_path / "cells")
    assert [outcome.cell.label for outcome in results.outcomes] == ["rvs 0"]
    assert [failure.cell.label for failure in results.failures] == ["slower"]
    assert shown in results.failures[0].reason


@pytest.mark.usefixtures("no_pictures")
def test_a_dataset_is_made_there_at_the_size_it_has_here(
    cluster: Ray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "cwbc/hopper/medium-v0"
    monkeypatch.setenv(store.VARIABLE, str(tmp_path / "here"))
    generated.DatasetSpec.of(name, 3_000).generate()

    def elsewhere(order: Any) -> Any:
        return ray_engine._work(dataclasses.replace(order, store=str(tmp_path / "there")))

    cluster.instead = elsewhere
    results = ray_engine.run(toy_cells(name, 1, steps=20), tmp_path / "cells")
    assert not results.failures
    assert (tmp_path / "there" / name).is_dir()


def test_a_stopped_driver_takes_its_sign_away(cluster: Ray, toy: Path, tmp_path: Path) -> None:
    cluster.answers = False
    with pytest.raises(Interrupted):
        ray_engine.run(
            toy_cells(toy, 1, steps=20), tmp_path / "cells", options=Options(should_stop=lambda: True)
        )
    assert not list((tmp_path / "cells" / ".drivers").iterdir())
