"""A source of datasets is one value: in the list, it is loaded from, listed, suggested and downloaded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import run
from conftest import logged
from tables import columns, write

import cwbc.data
from cwbc.cli import data as data_cli
from cwbc.cli import data_list
from cwbc.core.trajectories import Trajectories
from cwbc.data import SOURCES, activity, load, read, store, stored_name
from cwbc.data.checks import Recording
from cwbc.data.formats.columns import ColumnOptions
from cwbc.data.issues import Origin
from cwbc.data.sources import DatasetSource, Offer, Remote
from cwbc.system.errors import InputError

Said = pytest.CaptureFixture[str]


def lab(name: str = "lab/arm") -> Trajectories:
    return logged([1, 2], [3.5], name=name)


def download(name: str, url: str | None, overwrite: bool, progress: object) -> tuple[store.Entry, str]:
    return store.add(lab("lab/distant"), url or "the lab", overwrite), "it came by post"


LAB = DatasetSource(
    key="lab",
    headings=("in the lab", "steps"),
    offers=lambda: [Offer("lab/arm", ("3",))],
    names=lambda: ["lab/arm", "lab/distant"],
    has=lambda name: name == "lab/arm",
    read=lambda name, options, progress: Recording(lab(), Origin(name)),
    hint=lambda name: "lab/leg was broken" if name == "lab/leg" else None,
    stored_name=lambda name: "lab/distant" if name == "far" else name,
    remote=Remote(lambda name: name in ("far", "lab/distant"), download, unit=None),
    activity=("recording", "steps"),
    reserved=True,
)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "minari"))
    monkeypatch.chdir(tmp_path)
    for module in (cwbc.data, data_cli, data_list):
        monkeypatch.setattr(module, "SOURCES", (*SOURCES, LAB))


def test_its_datasets_are_loaded_and_suggested() -> None:
    assert load("lab/arm").content_hash == lab().content_hash
    assert activity("lab/arm") == ("recording lab/arm", "steps")
    with pytest.raises(InputError, match="unknown dataset 'lab/ar'; did you mean 'lab/arm'"):
        load("lab/ar")
    with pytest.raises(InputError, match=r"^lab/leg was broken$"):
        load("lab/leg")
    with pytest.raises(InputError, match="the columns of lab/arm have their roles already"):
        read("lab/arm", options=ColumnOptions(reward="paid"))


def test_its_datasets_are_listed(capsys: Said) -> None:
    assert run("data", "list") == 0
    assert "in the lab  steps\nlab/arm         3\n" in capsys.readouterr().out
    assert run("data", "list", "--json") == 0
    assert json.loads(capsys.readouterr().out)["lab"] == ["lab/arm"]


def test_its_datasets_are_downloaded_and_removed_by_any_spelling(capsys: Said) -> None:
    assert run("data", "download", "far", "--url=box") == 0
    assert "it came by post" in capsys.readouterr().err
    assert stored_name("far") == "lab/distant"
    entry = store.find("lab/distant")
    assert entry is not None
    assert (entry.name, entry.source) == ("lab/distant", "box")
    assert run("data", "remove", "far") == 0
    assert stored_name("far") is None
    assert run("data", "download", "lab-distnat") == 2
    assert "unknown dataset 'lab-distnat'; did you mean 'lab/distant'" in capsys.readouterr().err


def test_its_names_are_not_for_others(tmp_path: Path, capsys: Said) -> None:
    write(tmp_path / "logs.csv", columns())
    for name in ("lab/arm", "lab"):
        assert run("data", "import", "logs.csv", f"--name={name}") == 2
        assert f"{name} is the name of another dataset; choose another --name" in capsys.readouterr().err
    assert run("data", "import", "logs.csv", "--name=lab/own") == 0
