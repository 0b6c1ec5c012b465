"""The page as a person meets it, in a real browser; skipped where there is none."""

from __future__ import annotations

import base64
import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from browser import Tab, browser, program
from matplotlib.image import imread
from pages import DATASET, history, sweep

from cwbc.reports import write_report
from cwbc.reports.page import block, page_html
from cwbc.reports.report import ReportDocument

pytestmark = pytest.mark.skipif(program() is None, reason="no Chromium on this machine")

LONG = "rvs+c (runs/of/somebody/who/likes/long/names/and/never/uses/a/space/in/them/rvs+c)"
TARGETS = (1000.0, 1500.0, 3200.0, 5000.0, 6400.0)
SWEEPS = [
    sweep("rvs", 900.0, 1400.0, 500.0, 100.0, 0.0, targets=TARGETS, spread=10.0),
    sweep("rvs+cwbc", 900.0, 1400.0, 1400.0, 1300.0, 1390.0, targets=TARGETS, spread=10.0),
    *(sweep(name, *[800.0] * 5, targets=TARGETS) for name in (LONG, *(f"method-{i}" for i in range(9)))),
]
HISTORIES = {
    "rvs": history("ByLength", (0.6, 0.4), [[2.0, 2.2], [1.0, 1.1]]),
    "rvs+cwbc": history("ByReturn", (0.1, 0.9), [[3.0, 3.2], [2.0, 2.1]]),
}
TIP, OFF = "document.getElementById('tip')", "document.querySelectorAll('.off').length"
VISIBLE = "[...document.querySelectorAll('.drawings > svg')].filter(s => s.getBoundingClientRect().width)"


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report")
    write_report(directory, SWEEPS, DATASET, {"command": "cwbc compare hops rvs"}, HISTORIES)
    return directory / "report.html"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Tab]:
    path = program()
    assert path is not None
    with browser(path) as tab:
        yield tab


@pytest.fixture
def tab(chromium: Tab, report: Path) -> Iterator[Tab]:
    """The report in a wide window, as if just made; nothing is complained about until the end."""
    chromium.complaints.clear()
    chromium.open(report)
    chromium.evaluate("sessionStorage.clear()")
    chromium.open(report)
    yield chromium
    assert chromium.complaints == []


def words(tab: Tab) -> list[str]:
    """The text about the values under the pointer, row by row."""
    if tab.evaluate(f"{TIP}.hidden"):
        return []
    cells = "row => [...row.children].map(cell => cell.innerText).join(' | ')"
    rows = tab.evaluate(f"[...{TIP}.querySelectorAll('tr')].map({cells})")
    return [tab.evaluate(f"{TIP}.querySelector('b').innerText"), *rows]


def hover(tab: Tab, fraction: float = 0.5) -> None:
    """Put the mouse at this fraction of the first chart's width."""
    tab.centre(".drawings > svg")
    box = f"{VISIBLE}[0].getBoundingClientRect()"
    x, y, width, height = tab.evaluate(f"(b => [b.x, b.y, b.width, b.height])({box})")
    tab.point(x + fraction * width, y + height / 2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 768, 1400])
def test_it_fits_every_window(tab: Tab, report: Path, width: int, scheme: str) -> None:
    tab.open(report, width, 850, scheme)
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    tab.evaluate("document.querySelector('details').open = true")
    assert tab.evaluate("document.documentElement.scrollWidth") == width
    # Of every chart, the one drawing that suits the window, with words that can be read.
    assert tab.evaluate(f"{VISIBLE}.map(s => s.classList[0])") == ["narrow" if width == 390 else "wide"] * 3
    letters = f"{VISIBLE}.map(s => 12 * s.getBoundingClientRect().width / s.viewBox.baseVal.width)"
    assert all(10 <= size <= 16 for size in tab.evaluate(letters))
    ends = f"{VISIBLE}.flatMap(s => [...s.querySelectorAll('text')].map(t => t.getBoundingClientRect()))"
    assert tab.evaluate(f"{ends}.filter(box => box.left < 0 || box.right > innerWidth).length") == 0


def test_hovering_tells_the_nearest_values(tab: Tab) -> None:
    assert words(tab) == []
    hover(tab, 0.5)
    shown = words(tab)
    assert shown[0] == "target return 3,200 · 1× expert"
    assert shown[1] == "rvs+cwbc | 1,400 | 1,390 to 1,410 | score 43.6"  # the highest first
    assert shown[-1] == "rvs | 500 | 490 to 510 | score 16.0"
    hover(tab, 0.95)
    assert words(tab)[0] == "target return 6,400 · 2× expert"
    assert tab.evaluate("document.querySelectorAll('.hover').length") == 1
    left, right = tab.evaluate(f"(b => [b.left, b.right])({TIP}.getBoundingClientRect())")
    assert left >= 0
    assert right <= 1400
    tab.point(5, 5)
    assert words(tab) == []


def test_the_keyboard_reads_the_values_too(tab: Tab) -> None:
    tab.evaluate(f"{VISIBLE}[0].focus({{focusVisible: true}})")
    wanted = [words(tab)[0].split()[2]]
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"):
        tab.press(key)
        wanted.append(words(tab)[0].split()[2])
    assert wanted == ["1,000", "1,500", "3,200", "1,500", "6,400", "1,000"]
    tab.press("Escape")
    assert words(tab) == []


def test_a_finger_reads_the_values_too(tab: Tab, report: Path) -> None:
    tab.open(report, 390, 850)
    tab.do("Emulation.setTouchEmulationEnabled", enabled=True)
    try:
        x, y = tab.centre(".drawings > svg.narrow")
        for kind, points in (("touchStart", [{"x": x, "y": y}]), ("touchEnd", [])):
            tab.do("Input.dispatchTouchEvent", type=kind, touchPoints=points)
        tab.wait_for(f"!{TIP}.hidden")
        assert words(tab)[0].startswith("target return ")
        left, right = tab.evaluate(f"(b => [b.left, b.right])({TIP}.getBoundingClientRect())")
        assert left >= 0
        assert right <= 390
    finally:
        tab.do("Emulation.setTouchEmulationEnabled", enabled=False)


def test_legends_hide_methods_everywhere(tab: Tab) -> None:
    tab.click("[data-toggle='rvs']")
    # Two charts in two sizes, a row of the scores, a column of the target returns: a head and five.
    assert tab.evaluate(OFF) == 2 * 2 + 1 + 6
    pressed = "[...document.querySelectorAll(\"[data-toggle='rvs']\")].map(b => b.ariaPressed)"
    assert tab.evaluate(pressed) == ["false", "false"]
    hover(tab)
    assert not any(line.startswith("rvs |") for line in words(tab))
    assert any(line.startswith("rvs+cwbc |") for line in words(tab))
    tab.click("[data-toggle='rvs']")
    assert tab.evaluate(OFF) == 0


def test_a_double_click_shows_nothing_else(tab: Tab) -> None:
    tab.click("[data-toggle='rvs+cwbc']", times=2)
    hover(tab)
    assert [line.split(" | ")[0] for line in words(tab)[1:]] == ["rvs+cwbc"]


def test_light_and_dark(tab: Tab, report: Path) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    ink = "getComputedStyle(document.querySelector('.look-0 .line')).stroke"
    light, line = tab.evaluate(paper), tab.evaluate(ink)
    assert line == "rgb(0, 114, 178)"
    tab.open(report, scheme="dark")
    dark = tab.evaluate(paper)
    assert dark != light
    assert tab.evaluate(ink) != line
    tab.click("#theme")
    assert tab.evaluate(paper) == light
    tab.open(report, scheme="dark")  # as long as the window is open
    assert tab.evaluate(paper) == light
    tab.click("#theme")
    assert tab.evaluate(paper) == dark


def test_wide_tables_scroll_under_their_first_column(tab: Tab, report: Path) -> None:
    tab.open(report, 390, 850)
    tab.wait_for("document.querySelector('.box.scrolls')")
    assert tab.evaluate("getComputedStyle(document.querySelector('.scrolls + .hint')).display") == "block"
    name = "document.querySelector('.box tbody th').getBoundingClientRect().left"
    before = tab.evaluate(name)
    tab.evaluate("document.querySelector('.box').scrollLeft = 1e6")
    assert tab.evaluate("document.querySelector('.box').scrollLeft") > 50
    assert tab.evaluate(name) == before
    # The last column is there to be read, and beside the names.
    last, box = (
        tab.evaluate(f"(b => [b.left, b.right])(document.querySelector('{where}').getBoundingClientRect())")
        for where in (".box tbody td:last-child", ".box")
    )
    assert before < last[0] < last[1] <= box[1]


def test_charts_can_be_saved(tab: Tab, tmp_path: Path) -> None:
    table = tab.saved("[data-get='csv']", tmp_path, "hops-reliability.csv").decode()
    rows = list(csv.DictReader(io.StringIO(table)))
    assert len(rows) == len(SWEEPS) * len(TARGETS)
    assert rows[2]["achieved return"] == "500.0"
    png = tab.saved("[data-get='png']", tmp_path, "hops-reliability.png")
    assert png.startswith(b"\x89PNG")
    pixels = np.round(255 * imread(io.BytesIO(png))[:, :, :3])  # [row, column, colour]
    assert min(pixels.shape[:2]) > 1500
    # The blue of the first method and the white ground are in it: styles came along.
    assert (pixels == [0, 114, 178]).all(axis=2).sum() > 1000
    assert (pixels == 255).all(axis=2).mean() > 1 / 3


def test_paper_is_light_and_has_everything(tab: Tab, report: Path) -> None:
    tab.open(report, scheme="dark")
    dark = tab.evaluate("getComputedStyle(document.body).color")
    opened = "document.querySelectorAll('details[open]').length"
    tab.evaluate(f"addEventListener('beforeprint', () => {{ window.printed = {opened} }})")
    pdf = base64.b64decode(tab.do("Page.printToPDF", printBackground=True)["data"])
    assert pdf.startswith(b"%PDF")
    assert tab.evaluate("window.printed") == 1
    assert tab.evaluate(opened) == 0
    tab.do("Emulation.setEmulatedMedia", media="print")
    assert tab.evaluate("getComputedStyle(document.body).color") != dark
    assert tab.evaluate(f"{VISIBLE}.length") == 3
    assert tab.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
    tab.do("Emulation.setEmulatedMedia", media="")


def test_charts_show_without_javascript(tab: Tab, report: Path) -> None:
    tab.do("Emulation.setScriptExecutionDisabled", value=True)
    try:
        tab.open(report)
        assert tab.evaluate(f"{VISIBLE}.length") == 3
        assert tab.evaluate("getComputedStyle(document.querySelector('.tools')).display") == "none"
    finally:
        tab.do("Emulation.setScriptExecutionDisabled", value=False)


def test_no_other_script_runs_and_nothing_is_fetched(chromium: Tab, tmp_path: Path) -> None:
    blocks = [
        "<script>document.title = 'changed'</script>",
        "<img src='x.png' onerror=\"document.title = 'changed'\">",
        "<p onclick=\"document.title = 'changed'\" id='here'>here</p>",
    ]
    page = tmp_path / "page.html"
    bare = ReportDocument("as it was", "", "", [], {}, {})
    text = page_html(bare, {"": [block("paragraph", "HERE")]})
    page.write_text(text.replace("HERE", "".join(blocks)))
    (tmp_path / "x.png").write_bytes(b"")
    chromium.open(page)
    chromium.click("#here")
    assert chromium.evaluate("document.title") == "as it was"
    assert len([text for text in chromium.complaints if "Content Security Policy" in text]) == 4
