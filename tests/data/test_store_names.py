"""Names of datasets stay where they are put."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tables import columns, write

from cwbc.data import load
from cwbc.data.store import contained


@pytest.mark.parametrize(
    "name", ["cart", "d4rl/hopper/medium-v2", "my data (1)", "größe", "v1.2", ".hidden", "a+b"]
)
def test_usual_names_stay(name: str) -> None:
    assert contained(name) == name


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("../../../../ESCAPED", "ESCAPED"),
        ("/etc/passwd", "etc/passwd"),
        ("a/../../b", "a/b"),
        ("..\\b", "..-b"),
        ("a\0b\n\x1b[31m", "a-b-[31m"),
        ("a\ud800", "a-"),
        ("..", "data"),
        (" / . ", "data"),
        ("", "data"),
    ],
)
def test_names_that_would_lead_elsewhere(name: str, place: str) -> None:
    assert contained(name) == place


@settings(derandomize=True, deadline=None, database=None)
@given(st.text(st.sampled_from("./\\~a\0\n \ud800é")) | st.text())
@example("..\0/..")
def test_no_name_leads_elsewhere(name: str) -> None:
    place = os.path.normpath(f"/runs/{contained(name)}")
    assert place.startswith("/runs/")
    assert "\0" not in place
    place.encode()
    assert contained(contained(name)) == contained(name)


def test_a_folder_is_called_by_its_own_name_however_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs" / "inner").mkdir(parents=True)
    write(tmp_path / "logs" / "part-0.parquet", columns())
    for where, given_as in (("logs/inner", ".."), ("logs", "."), ("", "logs/inner/..")):
        monkeypatch.chdir(tmp_path / where)
        assert load(given_as).name == "logs"


def test_a_file_with_an_odd_name(tmp_path: Path) -> None:
    assert load(write(tmp_path / "a\n\x1b[1mb.csv", columns())).name == "a-[1mb"
