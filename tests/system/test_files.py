from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import threading
from pathlib import Path
from unittest.mock import Mock

import pytest

from cwbc.system import processes
from cwbc.system.errors import InputError
from cwbc.system.files import (
    LOCK,
    folder_aside,
    locked,
    open_to_append,
    read_json,
    read_text,
    write_atomically,
    write_together,
)


@pytest.mark.parametrize(
    ("data", "expected"), [("größer\n", "größer\n".encode()), (b"\x00\r\n", b"\x00\r\n")]
)
def test_writes_and_replaces_byte_for_byte(tmp_path: Path, data: bytes | str, expected: bytes) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    write_atomically(path, data)
    assert path.read_bytes() == expected
    assert os.listdir(tmp_path) == ["file"]


def test_a_failed_rename_keeps_the_old_file_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: Path, destination: Path) -> None:
        raise OSError("disk on fire")

    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk on fire"):
        write_atomically(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


def test_what_cannot_be_written_is_told_by_its_own_name(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as caught:
        write_atomically(tmp_path / "nowhere" / "file", "new")
    assert caught.value.filename == str(tmp_path / "nowhere" / "file")
    assert caught.value.strerror == "cannot be written (No such file or directory)"


def test_permissions_follow_the_umask_as_for_any_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    write_atomically(tmp_path / "atomic", "x")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def mark_of_the_dead() -> str:
    """The mark of a process that has ended."""
    program = "from cwbc.system import processes; print(processes.mark())"
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, text=True
    ).stdout.strip()


def test_two_writers_of_one_file_do_not_meet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is stopped just before it renames; the other writes all of its own meanwhile."""
    path, replace = tmp_path / "file", os.replace

    def late(source: Path, destination: Path) -> None:
        monkeypatch.setattr(os, "replace", replace)
        thread = threading.Thread(target=write_atomically, args=(path, "the other"))
        thread.start()
        thread.join()
        assert path.read_text() == "the other"
        replace(source, destination)

    monkeypatch.setattr(os, "replace", late)
    write_atomically(path, "late")
    assert path.read_text() == "late"
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_kill_left_goes_with_the_next_write_and_a_living_ones_stays(tmp_path: Path) -> None:
    dead = tmp_path / f".a[b].{mark_of_the_dead()}.1.tmp"
    theirs = [tmp_path / f".a[b].{name}.1.tmp" for name in (f"elsewhere-{os.getpid()}-1", processes.mark())]
    for path in (dead, *theirs):
        path.touch()
    write_atomically(tmp_path / "a[b]", "x")
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / "a[b]", *theirs])


def test_a_process_with_the_number_of_a_dead_one_is_another() -> None:
    place, pid, began = processes.mark().split("-")
    assert not processes.is_gone(f"{place}-{pid}-{began}")
    if began != "0":  # where the host tells when a process began
        assert processes.is_gone(f"{place}-{pid}-{int(began) - 1}")
    for other in (f"00000000-{pid}-1", "", "7", f"{place}-x-1"):
        assert not processes.is_gone(other)


def test_somebody_elses_process_counts_as_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hosts can hide the processes of others: then nothing is known of them."""

    def refuse(pid: int, signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    assert processes.is_running(2**22 + 1, "1")


def test_a_folder_aside_goes_with_its_block_and_a_dead_ones_with_the_next(tmp_path: Path) -> None:
    left = tmp_path / f".cwbc.{mark_of_the_dead()}.1.tmp"
    alive = tmp_path / f".cwbc.elsewhere-{os.getpid()}-1.1.tmp"
    for folder in (left, alive):
        folder.mkdir()
        (folder / "part").touch()
    with folder_aside(tmp_path) as folder:
        (folder / "mine").touch()
        assert sorted(tmp_path.iterdir()) == sorted([alive, folder])
    assert list(tmp_path.iterdir()) == [alive]
    with pytest.raises(ValueError, match="no luck"), folder_aside(tmp_path):
        raise ValueError("no luck")
    assert list(tmp_path.iterdir()) == [alive]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks here")
def test_a_lock_is_held_until_its_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / LOCK
    program = (
        "import sys; from pathlib import Path; from cwbc.system.files import locked\n"
        "with locked(Path(sys.argv[1]), 'busy'): print('held', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="busy"), locked(path, "busy"):
            pass
        process.kill()
    with locked(path, "busy"):
        pass


def test_a_file_system_without_locks_is_worked_on_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    for number in (errno.ENOLCK, errno.EIO):
        monkeypatch.setattr(fcntl, "flock", Mock(side_effect=OSError(number, "as the system says")))
        without = contextlib.nullcontext() if number == errno.ENOLCK else pytest.raises(OSError, match="says")
        with without, locked(tmp_path / LOCK, "busy"):
            pass


def test_a_lock_neither_empties_a_file_nor_follows_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (tmp_path / LOCK).symlink_to(victim)
    refused = pytest.raises(InputError, match=r"\.lock is a symbolic link, and is not written to; remove it")
    with refused, locked(tmp_path / LOCK, "busy"):
        pass
    with locked(victim, "busy"):
        pass
    assert victim.read_text() == "precious"


def test_a_lock_that_is_no_plain_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / LOCK)
    with pytest.raises(InputError, match="is no plain file"), locked(tmp_path / LOCK, "busy"):
        pass


def test_no_link_is_appended_through_and_a_replaced_link_leaves_its_file(tmp_path: Path) -> None:
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("precious")
    link.symlink_to(victim)
    with pytest.raises(InputError, match="symbolic link"):
        open_to_append(link)
    write_atomically(link, "mine")
    assert (victim.read_text(), link.read_text(), link.is_symlink()) == ("precious", "mine", False)
    with open_to_append(tmp_path / "new") as file:
        file.write(b"line")
    assert (tmp_path / "new").read_bytes() == b"line"


def test_the_names_of_files_written_aside_cannot_be_foreseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    replace = os.replace

    def noted(source: Path, destination: Path) -> None:
        names.append(source.name)
        replace(source, destination)

    monkeypatch.setattr(os, "replace", noted)
    for _ in range(2):
        write_atomically(tmp_path / "file", "x")
    assert len(set(names)) == 2


def full_disk(monkeypatch: pytest.MonkeyPatch, writes: int) -> None:
    """After so many files that are safe on disk, there is no more room."""
    sync, left = os.fsync, iter([True] * writes)

    def fsync(descriptor: int) -> None:
        if not next(left, False):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


def test_files_are_replaced_together_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (tmp_path / name).write_text(f"old {name}")
    contents = {tmp_path / "a": "new a", tmp_path / "b": None, tmp_path / "c": "new c"}
    with monkeypatch.context() as patched:
        full_disk(patched, writes=1)
        with pytest.raises(OSError, match="cannot be written") as failed:
            write_together(contents, withdrawn=[tmp_path / "c"])
    assert failed.value.filename == str(tmp_path / "c")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {n: f"old {n}" for n in "abc"}
    write_together(contents, withdrawn=[tmp_path / "c"])
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new a", "c": "new c"}
    (tmp_path / "d").mkdir()
    with pytest.raises(IsADirectoryError):
        write_together({tmp_path / "a": "newer", tmp_path / "d": "x"})
    assert (tmp_path / "a").read_text() == "new a"


def test_what_cannot_be_read_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for content, message in (
        (b'{"a":\n "\xff"}', "line 2 has a byte that is no text, 0xff"),
        (b'{"a":', "line 1 column"),
        (b"[" * 100_000, "damaged"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_json(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="pipe is no plain file"):
        read_text(tmp_path / "pipe")
