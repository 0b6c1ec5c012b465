"""`cwbc data list`: all that is stored or available, without opening any of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import modules_of, run
from tables import columns, write

import cwbc
from cwbc.data import store
from cwbc.data.formats import minari


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)


def test_list_shows_what_is_here_and_what_can_be_had(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "logs.csv", columns())
    run("data", "import", "logs.csv", "--name=mine")
    minari.export(cwbc.load("mine"), "other/mine-v0")
    capsys.readouterr()
    assert run("data", "list") == 0
    out = capsys.readouterr().out
    assert [line.split()[:3] for line in out.splitlines()[:2]][1] == ["mine", "3", "6"]
    assert "other/mine-v0" in out
    assert "d4rl/halfcheetah/medium-v2" in out
    assert "1,000,000  237.7 MB" in out
    entry = store.find("mine")
    assert entry is not None
    entry.path.write_bytes(b"")
    assert run("data", "list") == 0
    assert "damaged" in capsys.readouterr().out
    (entry.path.parent / "cwbc-manifest.json").write_text("{")
    assert run("data", "list") == 0
    assert "`cwbc data check mine` shows how" in capsys.readouterr().out
    assert run("data", "list", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert (listed["here"][0]["name"], listed["here"][0]["whole"]) == ("mine", False)
    assert listed["minari"] == ["other/mine-v0"]
    assert len(listed["obtainable"]) == 21


def test_names_with_brackets_are_only_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path / "a[red].csv", columns())
    assert run("data", "import", "a[red].csv", "--name=mine", "--env=[/x]") == 0
    assert run("data", "list") == 0
    assert "[/x]" in capsys.readouterr().out


def test_the_list_opens_nothing_and_imports_no_reader(tmp_path: Path) -> None:
    write(tmp_path / "logs.csv", columns())
    assert run("data", "import", "logs.csv", "--name=mine") == 0
    for options in ((), ("--json",)):
        imported = modules_of(f"from cwbc.cli.main import main; main({['data', 'list', *options]})")
        assert imported <= {"cwbc", "docstring_parser", "rich", "tyro", "typing_extensions", "pygments"}
