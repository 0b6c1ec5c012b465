from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cwbc.files import folder_aside, write_atomically


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


def test_permissions_follow_the_umask_as_for_any_file(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    write_atomically(tmp_path / "atomic", "x")
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_folder_aside_goes_with_its_block_and_a_dead_ones_with_the_next(tmp_path: Path) -> None:
    dead = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    left = tmp_path / f".cwbc-{int(dead.stdout)}"
    alive = tmp_path / f".cwbc-{os.getppid()}"
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
