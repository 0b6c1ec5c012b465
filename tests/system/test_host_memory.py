"""The memory that a process may use: the least of what limits it."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from cwbc.system import host_memory as module
from cwbc.system.host_memory import host_memory


@pytest.fixture(autouse=True)
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine of 10,000 bytes with control groups of its own."""
    monkeypatch.setattr(module, "_machine", lambda: iter([1e4]))
    monkeypatch.setattr(module, "_process", lambda: iter([]))
    monkeypatch.setattr(module, "_OWN", tmp_path / "own")
    monkeypatch.setattr(module, "_ALL", tmp_path / "all")
    return tmp_path


def limit(groups: Path, place: str, size: str) -> None:
    path = groups / "all" / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{size}\n")


def test_without_limits_it_is_the_machines(groups: Path) -> None:
    assert host_memory() == 1e4
    limit(groups, "memory.max", "max")
    assert host_memory() == 1e4


def test_a_container_sees_its_own_limit_as_the_root(groups: Path) -> None:
    limit(groups, "memory.max", "3000")
    assert host_memory() == 3000


def test_a_limit_of_any_group_around_the_process_counts(groups: Path) -> None:
    (groups / "own").write_text("0::/jobs/17/step\n")
    limit(groups, "jobs/17/step/memory.max", "max")
    limit(groups, "jobs/17/memory.max", "2000")
    limit(groups, "jobs/memory.max", "5000")
    limit(groups, "jobs/18/memory.max", "1")  # another's
    assert host_memory() == 2000


def test_groups_of_version_1(groups: Path) -> None:
    (groups / "own").write_text("5:cpu,cpuacct:/fast\n4:memory:/job\n1:name=systemd:/\n")
    limit(groups, "memory/job/memory.limit_in_bytes", "4000")
    limit(groups, "memory/memory.limit_in_bytes", "9223372036854771712")
    assert host_memory() == 4000


def test_the_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    whole = host_memory()
    assert 1e8 < whole < math.inf
    monkeypatch.setattr("resource.getrlimit", lambda kind: (777, 888))
    assert host_memory() == 777
