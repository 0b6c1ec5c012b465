from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pages import Read

from cwbc.core.tasks import Task
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.comparison import comparison, summary_table
from cwbc.reports.page import page_html
from cwbc.reports.report import File, ReportDocument
from cwbc.results.evaluated import EvaluatedMethod, Methods
from cwbc.results.sentences import finding, retention_in_words
from cwbc.results.sweeps import Sweep
from cwbc.system.formatting import PERCENT

TASK = Task(expert_return=10.0, random_score=0.0, expert_score=20.0, far_return=20.0, near_return=1.0)


class Known(DatasetSummary):
    """A dataset of this task, with few digits."""

    task = TASK


DATASET = Known("<data> & co", None, "abc123", 1200, 60, -2.0, 5.0, 2.5, (-2.0, 1.0, 5.0), (4, 2))


def measured(
    *curve: float, targets: tuple[float, ...] = (5.0, 10.0, 20.0), dataset: DatasetSummary = DATASET
) -> EvaluatedMethod:
    """A method whose three seeds achieve these returns."""
    returns = np.broadcast_to(np.array(curve)[None, :, None], (3, len(curve), 3))
    sweep = Sweep("", np.arange(3), np.array(targets), returns, np.ones(returns.shape, np.int64))
    return EvaluatedMethod.of(sweep, dataset)


METHODS = {"rvs+cwbc": measured(4.0, 4.0, 3.9), "<i>rvs</i>": measured(4.0, 1.0, 0.0)}
PROVENANCE = {"command": "cwbc compare '<data>' rvs && true"}


def html(methods: Methods, dataset: DatasetSummary = DATASET, provenance: dict[str, str] = PROVENANCE) -> str:
    named = {
        name: dataclasses.replace(each, sweep=dataclasses.replace(each.sweep, method=name))
        for name, each in methods.items()
    }
    report = comparison(named, dataset, provenance, {}, {"results.csv": "every episode"})
    return report.page({"a.csv": File("", "numbers")})


def page(methods: Methods, dataset: DatasetSummary = DATASET) -> Read:
    return Read(html(methods, dataset))


def test_returns_of_0_or_1_are_success_rates() -> None:
    data = DatasetSummary("maze", None, "abc", 10, 60, 0.0, 1.0, 0.4, (0.0, 0.5, 1.0), (6, 4))
    methods = {"rvs": measured(0.6, 0.9, targets=(0.0, 1.0), dataset=data)}
    text = page(methods, data).text.replace(PERCENT, " %")
    assert "scores are success rates in %; that of the dataset's episodes is 40 %." in text
    assert "Success rates in % at the named targets" in text
    assert "success rate, %" in text
    assert "normalized" not in text.replace("return,normalized", "")
    assert "success rates in" in str(summary_table(methods).caption)
    other = dataclasses.replace(data, mean_return=0.39)  # a return within the last bin, but below 1
    assert "uccess rate" not in page({"rvs": measured(0.6, targets=(1.0,), dataset=other)}, other).text


def test_the_page_says_what_it_was_given() -> None:
    shown = page(METHODS)
    assert "<data> & co" in shown.text
    assert "cwbc compare '<data>' rvs && true" in shown.text
    assert "1,200" in shown.text
    rows = {row[0].strip(): [cell.split() for cell in row[1:]] for row in shown.rows}
    # at the dataset's best, 1x expert, 2x expert, the best point, retention, monotonicity; one target up to
    # the dataset's best is too little for a calibration error
    assert [cell[0] for cell in rows["<i>rvs</i>"]] == ["20.0", "5.0", "0.0", "20.0", "0", "0", "–"]
    assert rows["rvs+cwbc"][4][:2] == rows["rvs+cwbc"][5][:2] == ["98", "%"]
    assert rows["20 2× expert"] == [["19.5", "19.5", "to", "19.5"], ["0.0", "0.0", "to", "0.0"]]


def test_the_page_tells_what_broke_down() -> None:
    assert "broke down" not in page(METHODS).text
    shown = page({"rvs": measured(4.0, np.nan, 3.0), **METHODS})
    assert "Simulations broke down in 9 episodes (rvs at target 10): metrics that depend" in shown.text


def test_the_page_shows_the_calibration_error() -> None:
    shown = page({"rvs": measured(4.0, 4.0, targets=(2.0, 5.0))})
    (row,) = [row for row in shown.rows if row[0].strip() == "rvs"]
    # Scores of 20 were achieved for targets of 10 and 25.
    assert row[-1].split() == ["7.5", "7.5", "to", "7.5"]


def test_names_are_escaped() -> None:
    text = html(METHODS, provenance={"<b>": "<script>alert(1)</script>"})
    assert "<i>rvs" not in text
    assert "&lt;i&gt;rvs" in text
    assert "<script>alert" not in text
    assert "<title>&lt;data&gt; &amp; co" in text
    (data,) = Read(text).data
    assert data["series"][1]["name"] == "<i>rvs</i>"


def test_the_page_needs_nothing_else() -> None:
    text = html(METHODS)
    shown = Read(text)
    beside = [link for link in shown.links if not link.startswith("#")]
    assert beside == ["summary.json", "results.csv", "a.csv"]
    for outside in ("http:", "https:", "url(", "@import", "src="):
        assert outside not in text


def test_the_contents_of_a_page_lead_to_its_parts() -> None:
    shown = page(METHODS)
    parts = [found["id"] for tag, found in shown.elements if tag == "section"]
    assert [link.removeprefix("#") for link in shown.links if link.startswith("#")] == parts
    assert "<nav" not in page_html(ReportDocument("", "", "", [], {}, {}), {"Tables": []})


def test_what_runs_have_not_kept_is_left_out() -> None:
    assert "Training" not in page(METHODS).text


def test_a_method_is_hidden_by_one_name_everywhere() -> None:
    shown = page(METHODS)
    (button,) = shown.having("data-toggle", "rvs+cwbc")
    assert button["aria-pressed"] == "true"
    tags = [tag for tag, found in shown.elements if found.get("data-series") == "rvs+cwbc"]
    # A line in each of two sizes, a row of the scores, a column of all targets: its head and three.
    assert sorted(tags) == ["g", "g", "td", "td", "td", "th", "tr"]


def test_unpublished_references_are_not_called_expert() -> None:
    unknown = DatasetSummary(**vars(DATASET))
    shown = page({"rvs": measured(4.0, 3.0, targets=(5.0, 12.0), dataset=unknown)}, unknown)
    assert "expert" not in shown.text
    assert "relative to the dataset's own" in shown.text
    # Scores count from the lowest, -2: 6 / 7 at the best, 5 / 7 at the best + range.
    message = "At the dataset's best return plus its range, OOD retention is 83\u00a0% for rvs."
    assert message in shown.text


def test_scores_of_a_game_are_those_of_a_gamer() -> None:
    game = DatasetSummary(**vars(DATASET) | {"environment": "ALE/Pong-v5"})
    shown = page({"rvs": measured(4.0, 3.0, targets=(5.0, 12.0), dataset=game)}, game)
    assert (
        "gamer-normalized: 0 is a random policy (−21), 100 a gamer (15), in points of the game" in shown.text
    )
    assert "relative to the dataset's own" not in shown.text


def test_methods_may_have_been_evaluated_at_different_targets() -> None:
    shown = page({"rvs": measured(4.0, targets=(5.0,)), "bc": measured(3.0, targets=(7.0,))})
    rows = {row[0].strip(): [cell.split()[0] for cell in row[1:]] for row in shown.rows}
    assert rows["5 dataset's best"] == ["20.0", "–"]
    assert rows["7"] == ["–", "15.0"]
    assert "The methods were evaluated at different targets" in shown.text
    assert "Calibration error in points" not in shown.text
    assert 'class="best' not in html(
        {"rvs": measured(4.0, targets=(5.0,)), "bc": measured(3.0, targets=(7.0,))}
    )


def test_calibration_errors_are_compared() -> None:
    # Returns of 2 and 5 are scores of 10 and 25: one achieves its target, the other always 20.
    targets = (2.0, 5.0, 20.0)
    shown = page(
        {"flat": measured(4.0, 4.0, 4.0, targets=targets), "rvs": measured(2.0, 5.0, 0.0, targets=targets)}
    )
    message = "Calibration error in points of score, up to the dataset's best return: rvs 0.0; flat 7.5."
    assert message in shown.text
    assert "evaluated at different targets" not in shown.text


FAR = "At twice the expert return, "


@pytest.mark.parametrize(
    ("methods", "expected"),
    [
        (
            {"rvs": measured(4.0, 1.0, -1.0), "rvs+cwbc": measured(4.0, 4.0, 3.9)},
            FAR + "OOD retention is 98 % for rvs+cwbc, 0 % for rvs.",
        ),
        (
            {
                name: measured(4.0, 4.0, far)
                for name, far in zip("abcde", (1.0, 2.0, 4.0, 0.0, 3.0), strict=True)
            },
            FAR + "OOD retention is 100 % for c, 0 % for d (the max and the min score of 5 methods).",
        ),
        (
            {"bad": measured(-1.0, -2.0, -3.0)},
            FAR + "bad scores −15.0 (no OOD retention: the best score is not clearly above 0).",
        ),
        (
            {"dt": measured(4.0, 3.0, targets=(5.0, 10.0)), "bc": measured(2.0, 2.0, 2.0)},
            "At the expert return, dt scores 15.0; bc scores 10.0.",
        ),
        ({"dt": measured(3.0, targets=(7.0,))}, "At its best target, dt scores 15.0."),
        ({"dt": measured(float("nan"), targets=(7.0,))}, "No score could be evaluated."),
        (
            {"bc": measured(3.0, targets=(np.nan,)), "rvs": measured(4.0, 1.0, 2.0)},
            FAR + "OOD retention is 50 % for rvs. bc has no target and scores 15.0.",
        ),
        ({"bc": measured(3.0, targets=(np.nan,))}, "bc has no target and scores 15.0."),
    ],
)
def test_the_headline_tells_the_finding(methods: dict[str, EvaluatedMethod], expected: str) -> None:
    assert finding(methods) == expected.replace(" %", PERCENT)


def falling(*far: float) -> EvaluatedMethod:
    """Seeds that achieve these returns at twice the expert's, and 4 at the data's best."""
    returns = np.array([[[4.0], [each]] for each in far])
    sweep = Sweep("", np.arange(len(far)), np.array([5.0, 20.0]), returns, np.ones(returns.shape, np.int64))
    return EvaluatedMethod.of(sweep, DATASET)


HIGH, WIDE, LOW = falling(4.0, 3.9, 3.95), falling(4.0, 2.0, 3.0), falling(2.0, 2.1, 2.05)


@pytest.mark.parametrize(
    ("methods", "overlap"),
    [
        ({"a": HIGH, "b": WIDE}, "; their 95 % intervals overlap."),
        ({"a": HIGH, "b": LOW}, "b."),
        ({"a": HIGH, "b": WIDE, "c": LOW}, "; the 95 % intervals of a and b, of b and c overlap."),
        ({"a": HIGH, "b": LOW, "c": LOW}, "; the 95 % intervals of b and c overlap."),
        ({"a": HIGH, "b": HIGH, "c": WIDE}, "; all their 95 % intervals overlap."),
        (dict.fromkeys("abcd", HIGH) | {"e": LOW}, "; 6 pairs of their 95 % intervals overlap."),
        ({"a": falling(4.0, 3.9), "b": falling(4.0, 2.0)}, "b."),  # two seeds have no intervals
        ({"a": HIGH, "b": WIDE, "c": falling(4.0, 2.0)}, "; the 95 % intervals of a and b overlap."),
    ],
)
def test_the_finding_says_which_intervals_overlap(methods: dict[str, EvaluatedMethod], overlap: str) -> None:
    message = finding(methods).replace(PERCENT, " %")
    assert message.startswith(FAR + "OOD retention is 99 % for a")
    assert message.endswith(overlap)
    assert ("overlap" in message) == ("overlap" in overlap)


def test_methods_are_named_in_the_order_of_their_retention() -> None:
    shares = {"high": 0.4, "none": np.nan, "low": 1.0}
    message = retention_in_words(shares, {"high": 60.0, "none": -1.0, "low": 20.0})
    assert message.replace(PERCENT, " %") == (
        "OOD retention is 100 % for low, 40 % for high; "
        "none scores −1.0 (no OOD retention: the best score is not clearly above 0)"
    )


def test_the_page_opens_with_what_to_do() -> None:
    text = html(METHODS)
    expected = "expected return 4, 95\u00a0% interval 4 to 4 (score 20.0)."
    assert f"<h1>Use rvs+cwbc with target return 5: {expected}</h1>" in text
    assert '<ul class="warnings">' not in text
    alone = page({"rvs": measured(4.0, 1.0, 0.0)})
    assert "Do not raise the target: at 20 it achieves 0." in alone.text


def test_training_warnings_stand_above_the_caveats() -> None:
    warned = dataclasses.replace(measured(4.0, 1.0, 0.0), training_warnings=["The loss rose."])
    text = html({"<b>": warned})
    assert '<ul class="warnings"><li>&lt;b&gt;: The loss rose.</li></ul>' in text
    assert text.index("The loss rose.") < text.index('<ul class="caveats">')
    assert "Its training ended with warnings." in text


def test_a_method_that_takes_no_target_has_a_row_and_no_rank() -> None:
    shown = page({"bc": measured(2.0, targets=(np.nan,)), "rvs": measured(4.0, 1.0, 0.5)})
    rows = {row[0].strip(): [cell.split() for cell in row[1:]] for row in shown.rows}
    row = rows["bc without a target"]
    assert [cell[0] for cell in row] == ["10.0", "10.0", "10.0", "10.0", "–", "–", "–"]
    assert row[4] == ["–", "without", "a", "target"]
    assert rows["without a target"] == [["10.0", "10.0", "to", "10.0"], ["–"]]
    assert rows["5 dataset's best"][0] == ["–"]
    assert "different targets" not in shown.text


def test_a_retention_that_is_not_defined_is_said_to_be() -> None:
    shown = page({"rvs": measured(0.8, 0.5, -0.9)})  # scores of 4 and -4.5
    (row,) = [row for row in shown.rows if row[0].strip() == "rvs"]
    assert row[5].split() == ["–", "not", "defined"]
    assert "−113" not in shown.text
