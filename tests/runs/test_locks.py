"""Leases between real processes: one owner, dead and frozen ones lose it, and notice."""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cwbc.runs import locks
from cwbc.runs.locks import Lock, LockLost
from cwbc.system import processes

OWNER = """
import sys, time
from pathlib import Path
from cwbc.runs import locks
lock = locks.acquire(Path(sys.argv[1]), float(sys.argv[2]))
print("refused" if lock is None else "owner", flush=True)
try:
    while lock is not None:
        lock.check()
        time.sleep(0.01)
except locks.LockLost:
    print("lost", flush=True)
    lock.release()
"""


@contextlib.contextmanager
def owner(folder: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the lock."""
    command = [sys.executable, "-c", OWNER, str(folder), str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "owner\n"
            yield process
        finally:
            process.kill()


def held(lock: Lock | None) -> Lock:
    assert lock is not None
    return lock


def test_one_owner_after_the_other(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    assert not locks.is_locked(folder)
    first = held(locks.acquire(folder))
    assert locks.is_locked(folder)
    assert locks.acquire(folder) is None
    first.check()
    first.release()
    assert not locks.is_locked(folder)
    with held(locks.acquire(folder)) as second:
        second.check()
        with pytest.raises(LockLost):
            first.check()
        first.release()  # twice, and after another has taken it: nothing happens
        second.check()
    third = held(locks.acquire(folder))
    third.release(finished=True)
    assert not (folder / locks.FOLDER).exists()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("lock")]


def test_a_killed_owner_loses_it_at_once(tmp_path: Path) -> None:
    with owner(tmp_path / "cell", seconds=600) as process:
        assert locks.acquire(tmp_path / "cell") is None
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # dead, but not yet buried
        held(locks.acquire(tmp_path / "cell")).release()


def test_a_frozen_owner_loses_it_in_time_and_notices(tmp_path: Path) -> None:
    with owner(tmp_path / "cell", seconds=12) as process:
        path = tmp_path / "cell" / locks.FOLDER / "1"
        first = path.stat().st_mtime
        while path.stat().st_mtime == first:  # until it gives a sign of life
            assert process.poll() is None
            time.sleep(0.02)
        assert locks.acquire(tmp_path / "cell") is None
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        silent = path.stat().st_mtime - 13
        os.utime(path, (silent, silent))
        taken = held(locks.acquire(tmp_path / "cell"))
        process.send_signal(signal.SIGCONT)
        assert process.stdout is not None
        assert process.stdout.readline() == "lost\n"
        assert process.wait() == 0
        taken.check()  # whoever woke up has done it no harm
        taken.release()


def test_another_host_is_believed_for_its_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether a process runs there cannot be seen from here; only the file system's clock is common."""
    path = tmp_path / "cell" / locks.FOLDER / "4"
    path.parent.mkdir(parents=True)
    path.write_text('{"host": "elsewhere", "pid": 1, "started": "1", "seconds": 2000, "token": "a"}')
    monkeypatch.setattr(time, "time", lambda: 1e12)  # a wrong clock here
    assert locks.acquire(tmp_path / "cell") is None
    moment = path.stat().st_mtime
    os.utime(path, (moment, moment - 1000))
    assert locks.acquire(tmp_path / "cell") is None
    os.utime(path, (moment, moment - 2001))
    with held(locks.acquire(tmp_path / "cell")) as lock:
        assert [file.name for file in path.parent.iterdir()] == ["5"]
        lock.check()


@pytest.mark.parametrize("shown", ['{"host": ', "{}", '{"host": "HERE", "pid": "x"}', '{"seconds": null}'])
def test_what_a_kill_left_half_written_is_over_in_time(tmp_path: Path, shown: str) -> None:
    path = tmp_path / "cell" / locks.FOLDER / "1"
    path.parent.mkdir(parents=True)
    path.write_text(shown.replace("HERE", processes.host()))
    assert locks.acquire(tmp_path / "cell", seconds=500) is None
    moment = path.stat().st_mtime
    os.utime(path, (moment, moment - 501))
    held(locks.acquire(tmp_path / "cell", seconds=500)).release()


def test_only_one_of_many_takes_over(tmp_path: Path) -> None:
    folder = tmp_path / "cell"
    gate = threading.Barrier(8)
    for _ in range(25):
        with ThreadPoolExecutor(8) as pool:

            def grab(_: int) -> Lock | None:
                gate.wait()
                return locks.acquire(folder)

            winners = [lock for lock in pool.map(grab, range(8)) if lock is not None]
        assert len(winners) == 1
        winners[0].check()
        winners[0].release()


def test_a_slow_process_cannot_oust_a_new_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It saw a released lock, fell asleep, and meanwhile two others came; both numbers are theirs."""
    folder = tmp_path / "cell"
    held(locks.acquire(folder)).release()
    sight = locks._is_locked
    met: list[Lock] = []

    def slow(path: Path, seconds: float) -> bool:
        monkeypatch.setattr(locks, "_is_locked", sight)
        held(locks.acquire(folder)).release()
        met.append(held(locks.acquire(folder)))
        return False

    monkeypatch.setattr(locks, "_is_locked", slow)
    assert locks.acquire(folder) is None
    met[0].check()
    met[0].release()


def test_a_number_is_given_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It saw a released lock, fell asleep, and meanwhile another came and went: the number is used up."""
    folder = tmp_path / "cell"
    held(locks.acquire(folder)).release()
    sight = locks._is_locked

    def slow(path: Path, seconds: float) -> bool:
        monkeypatch.setattr(locks, "_is_locked", sight)
        held(locks.acquire(folder)).release()
        return False

    monkeypatch.setattr(locks, "_is_locked", slow)
    assert locks.acquire(folder) is None
    with held(locks.acquire(folder)) as lock:
        assert lock.path.name == "3"
        lock.check()


def test_a_file_system_that_is_away_for_a_moment_takes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with held(locks.acquire(tmp_path / "cell")) as lock:
        with monkeypatch.context() as away:

            def fails(path: Path) -> str:
                raise OSError(errno.EIO, "input/output error")

            away.setattr(Path, "read_text", fails)
            lock.check()
        lock.check()
        lock.path.write_text("")  # as a file server that crashed may leave it
        assert lock.is_lost()
        lock.path.unlink()
        assert lock.is_lost()
