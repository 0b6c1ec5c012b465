"""What a file may hold does no harm when it is printed."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from cwbc.system.console import PlainConsole, output, say
from cwbc.system.progress import progress


def test_control_codes_and_markup_are_only_text(capsys: pytest.CaptureFixture[str]) -> None:
    for tell in (output, say):
        tell("a\a[red]\rb\x1b]0;title\x1b\\ \x9b31m\tc\nd")
    line = "a[red]b]0;title\\ 31m\tc\nd\n".expandtabs()
    assert capsys.readouterr() == (line, line)


def test_lines_stay_whole_for_programs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    for tell in (output, say):
        tell("word " * 20)
    assert [text.count("\n") for text in capsys.readouterr()] == [1, 1]


def test_a_moving_bar_makes_way() -> None:
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with progress(console, "training", 10, "steps") as update:
        update(5)
        say("a remark", console)
    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).split("\n")
    (remark,) = (line for line in lines if "remark" in line)
    assert remark.rpartition("\x1b[2K")[2] == "a remark"  # after the bar's line was erased


def test_a_console_keeps_its_own_styles_and_drops_what_names_bring() -> None:
    console = PlainConsole(file=io.StringIO(), force_terminal=True, color_system="standard", width=60)
    table = Table("method")
    table.add_row(Text("a\x1b]0;gotcha\x07\x9b2Jb", style="bold"))
    console.print(table)
    console.print("plain \x1b[2J words", markup=False, highlight=False)
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "\x1b[1ma]0;gotcha2Jb" in said
    assert "plain [2J words" in said
    assert not any(sequence in said for sequence in ("\x1b]", "\x1b[2J", "\x9b", "\x07"))
