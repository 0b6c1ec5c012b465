from __future__ import annotations

import csv
import io
import math

import pytest
from pages import Read, html

from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.system.formatting import PERCENT, percent

NAN = math.nan
TABLE = ReportTable(
    "method",
    [
        TableColumn("hopper", "10 seeds", better="higher"),
        TableColumn("error", better="lower"),
        TableColumn("verdict"),
    ],
    [
        TableRow(
            "rvs|x",
            [TableCell(80.25, 79.0, 81.5, published=82.0), TableCell(0.3), TableCell("confirmed")],
            series="rvs|x",
        ),
        TableRow(
            "dt",
            [
                TableCell(85.0, spread=1.26, published=84.0, published_spread=2.0),
                TableCell(0.7),
                TableCell("no"),
            ],
        ),
        TableRow("bc", [TableCell(float("nan")), TableCell(), TableCell()], tags=("new",)),
    ],
)


def test_markdown_is_aligned_and_escaped() -> None:
    columns = [TableColumn("a", "n=2", better="higher"), TableColumn("verdict")]
    rows = [
        TableRow("x|y", [TableCell(80.25, 79.0, 81.5, published=82.0), TableCell("yes")]),
        TableRow(
            "bc", [TableCell(float("nan"), published=2.0, published_spread=1.0), TableCell()], tags=("new",)
        ),
        TableRow("dt", [TableCell(85.0, spread=1.26, published=84.0), TableCell("no")]),
    ]
    assert ReportTable("method", columns, rows).to_markdown() == (
        "| method   |  a (n=2) (published, difference) | verdict |\n"
        "| -------- | -------------------------------: | ------: |\n"
        "| x\\|y     | 80.2 (79.0 to 81.5) (82.0, −1.8) |     yes |\n"
        "| bc (new) |                    – (2.0 ± 1.0) |       – |\n"
        "| dt       |      **85.0 ± 1.3** (84.0, +1.0) |      no |\n"
    )


def test_csv_has_the_numbers_themselves() -> None:
    rows = list(csv.DictReader(io.StringIO(TABLE.to_csv())))
    assert rows[0] == {
        "method": "rvs|x",
        "hopper": "80.25",
        "hopper low": "79.0",
        "hopper high": "81.5",
        "hopper spread": "",
        "hopper published": "82.0",
        "hopper published spread": "",
        "hopper difference": "-1.75",
        "error": "0.3",
        "verdict": "confirmed",
    }
    assert [row["hopper spread"] for row in rows] == ["", "1.26", ""]
    assert set(rows[2].values()) == {"bc", ""}


def test_html_shows_ours_beside_the_published() -> None:
    shown = Read(html(TABLE))
    rows = {row[0].split()[0]: [" ".join(cell.split()) for cell in row[1:]] for row in shown.rows}
    assert rows["method"] == ["hopper 10 seeds published, difference", "error", "verdict"]
    assert rows["rvs|x"] == ["80.2 79.0 to 81.5 82.0 −1.8", "0.3", "confirmed"]
    assert rows["dt"] == ["85.0 ± 1.3 84.0 ± 2.0 +1.0", "0.7", "no"]
    assert rows["bc"] == ["–"] * 3
    kinds = [found.get("class") for tag, found in shown.elements if tag == "td"]
    assert kinds == [None, "best", None, "best", None, None, *[None] * 3]
    classes = [found.get("class") for tag, found in shown.elements if tag == "span"]
    assert [kind for kind in classes if kind in ("good", "bad")] == ["bad", "good"]
    assert [tag for tag, found in shown.elements if found.get("data-series") == "rvs|x"] == ["tr"]


@pytest.mark.parametrize(
    ("values", "best"),
    [((1.0, 2.0), [1]), ((2.04, 2.0), []), ((1.0, 2.04, 2.0), [1, 2]), ((2.0,), []), ((NAN, 2.0), [])],
    ids=["one", "all alike as written", "a tie as written", "alone", "one known"],
)
def test_the_best_is_emphasized_where_there_is_one(values: tuple[float, ...], best: list[int]) -> None:
    by_column = ReportTable(
        "m", [TableColumn("c", better="higher")], [TableRow("r", [TableCell(value)]) for value in values]
    )
    columns = [TableColumn(f"c{i}", better="higher") for i in range(len(values))]
    by_row = ReportTable("m", columns, [TableRow("r", [TableCell(value) for value in values])], best_of="row")
    for table in (by_column, by_row):
        cells = [found for tag, found in Read(html(table)).elements if tag == "td"]
        assert [i for i, found in enumerate(cells) if found.get("class") == "best"] == best
        assert (f"bold: the best of its {table.best_of}" in html(table)) is bool(best)


def test_what_is_not_known_is_not_written() -> None:
    nan = float("nan")
    row = TableRow("r", [TableCell(1.0, nan, nan), TableCell(1.0, spread=nan), TableCell(nan, nan, nan, nan)])
    table = ReportTable("t", [TableColumn("a"), TableColumn("b"), TableColumn("c")], [row])
    assert table.to_markdown().splitlines()[-1].split() == ["|", "r", "|", "1.0", "|", "1.0", "|", "–", "|"]
    assert table.to_csv().splitlines()[-1] == "r,1.0,1.0,"


def test_fractions_have_one_sign_and_a_bar() -> None:
    column = TableColumn("kept", written=percent, bar=True)
    table = ReportTable(
        "m", [column], [TableRow("a", [TableCell(0.5, 0.4, 0.6)]), TableRow("b", [TableCell(-0.2)])]
    )
    shown = Read(html(table))
    assert [row[1].strip() for row in shown.rows[1:]] == [f"50{PERCENT} 40 to 60{PERCENT}", f"−20{PERCENT}"]
    assert [found["style"] for found in shown.having("style")] == ["width:50%", "width:0%"]


def test_heat_is_relative_to_the_highest() -> None:
    table = ReportTable(
        "t",
        [TableColumn("a"), TableColumn("b")],
        [TableRow("r", [TableCell(20.0), TableCell(5.0)])],
        heat=True,
    )
    assert [found["style"] for found in Read(html(table)).having("style")] == [
        "--heat:100%",
        "--heat:25%",
    ]


def test_groups_stand_before_names_and_have_a_column_of_their_own() -> None:
    rows = [
        TableRow("rvs, wide", [TableCell(1.0)], group="hopper"),
        TableRow("dt", [TableCell(2.0)], group="walker2d"),
    ]
    table = ReportTable("method", [TableColumn("score")], rows, groups="dataset")
    assert table.plain() == [
        ("dataset", "method", "score"),
        ("hopper", "rvs, wide", 1.0),
        ("walker2d", "dt", 2.0),
    ]
    heading, _, first, second = table.to_markdown().splitlines()
    assert [line.split(" |")[0] for line in (heading, first, second)] == [
        "| dataset, method  ",
        "| hopper, rvs, wide",
        "| walker2d, dt     ",
    ]
