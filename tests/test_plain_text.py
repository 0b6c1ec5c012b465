"""What a file may hold does no harm when it is printed."""

from __future__ import annotations

import pytest

from cwbc.plain_text import output, say


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
