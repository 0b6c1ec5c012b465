from __future__ import annotations

import base64
import hashlib
import re

from pages import Read

from cwbc.paper.verdicts import Case, Claim
from cwbc.reports.method_styles import COLOURS, COLOURS_ON_DARK
from cwbc.reports.page import block, page_html
from cwbc.reports.report import ReportDocument

PAGE = page_html(
    ReportDocument("title & co", "kicker", "headline", ["lead"], {}, {}),
    {
        "Table 1: scores": [block("paragraph", "a < b")],
        "More": [
            block("folded", "all of it", [block("facts", {"a": "1 < 2", "nothing": ""})]),
            block("links", {"a.csv": "rows"}),
        ],
    },
)


def test_a_page_has_its_parts_in_order() -> None:
    read = Read(PAGE)
    words = (
        "kicker",
        "headline",
        "lead",
        "Table 1: scores",
        "a < b",
        "More",
        "1 < 2",
        "rows",
    )
    places = [read.text.index(word) for word in words]
    assert places == sorted(places)
    assert [found["id"] for tag, found in read.elements if tag == "section"] == ["table-1-scores", "more"]
    assert read.links == ["a.csv"]
    assert "nothing" not in read.text  # a fact without a value


def test_the_policy_lets_run_the_one_script_that_is_there() -> None:
    (policy,) = Read(PAGE).having("http-equiv", "Content-Security-Policy")
    (script,) = re.findall(r"<script>(.*?)</script>", PAGE, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy["content"]
    assert policy["content"].startswith("default-src 'none'")


def test_options_are_not_broken_at_their_hyphens() -> None:
    shown = block("facts", {"": "cwbc --batch-size=4 well-known"})
    assert 'cwbc <span class="option">--batch-size</span>=4 well-known' in shown


def test_claims_have_their_verdicts_and_cases() -> None:
    cases = [Case("<hopper>", "1 < 2", holds=False, fails_in=1.0), Case("walker2d", "?", holds=None)]
    read = Read(block("claims", [Claim("a & b", "<b>so</b>", cases, holds=True, holds_in=1.0)]))
    assert "a & b\n<b>so</b>" in read.text
    assert "<hopper> 1 < 2" in read.text
    kinds = [(tag, found.get("class")) for tag, found in read.elements if tag in ("dt", "li")]
    assert kinds == [("dt", "good"), ("li", "bad"), ("li", "")]


def test_words_can_be_read_in_both_themes() -> None:
    """Contrast as WCAG 2 defines it: 4.5 for words, 3 for lines (some have less on white)."""

    def luminance(colour: str) -> float:
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    def contrast(one: str, other: str) -> float:
        light, dark = sorted((luminance(one), luminance(other)), reverse=True)
        return (light + 0.05) / (dark + 0.05)

    found = re.findall(r"--([\w-]+): light-dark\((#\w+), (#\w+)\);", PAGE)
    light, dark = ({name: ends[theme] for name, *ends in found} for theme in (0, 1))
    for theme in (light, dark):
        for ground in ("paper", "card", "beyond"):
            for words in ("ink", "soft", "accent", "good", "bad"):
                assert contrast(theme[words], theme[ground]) >= 4.5, (words, ground)
    assert all(contrast(colour, dark["card"]) >= 3 for colour in COLOURS_ON_DARK)
    assert [light[f"look-{i}"] for i in range(len(COLOURS))] == list(COLOURS)
