"""How problems are told."""

from __future__ import annotations

import numpy as np

from cwbc.findings import PLACES_KEPT, Finding, Origin, Place, Rejected


def test_a_sentence_has_what_where_and_the_remedy() -> None:
    places = (Place(3, episode="a", step=1, value="nan"), Place(9, unit="line", episode="b"), Place(12))
    finding = Finding("error", "x is odd", "make it even", "x", 5, places)
    assert finding.sentence() == "x is odd: nan at row 3 (episode a, step 1) and 4 more; make it even"
    assert finding.sentence(places=3).startswith(
        "x is odd: nan at row 3 (episode a, step 1), line 9 (episode b), row 12 and 2 more;"
    )
    assert Finding("error", "x is odd", "make it even").sentence() == "x is odd; make it even"
    assert [place["row"] for place in finding.to_json(2)["places"]] == [3, 9]


def test_a_rejection_tells_the_first_error_and_counts_the_others() -> None:
    warning = Finding("warning", "hm", "look")
    errors = [Finding("error", f"wrong {i}", "mend") for i in range(3)]
    assert str(Rejected("log.csv", [warning, errors[0]])) == "log.csv: wrong 0; mend"
    many = Rejected("log.csv", [warning, *errors])
    assert str(many) == "log.csv: wrong 0; mend (and 2 more: `cwbc data check` lists all)"
    assert many.findings == (warning, *errors)


def test_places_are_found_in_episodes_and_in_the_source() -> None:
    starts = np.array([0, 3, 4])
    steps = np.array([2, 3, 5])
    plain = list(Origin("x").places(starts, steps))
    assert [(p.row, p.episode, p.step) for p in plain] == [(2, "0", 2), (3, "1", 0), (5, "2", 1)]
    rows = np.array([5, 4, 3, 2, 1, 0])
    origin = Origin("x", rows=rows, unit="line", first_row=2, episodes=["a", "b", "c"])
    told = list(origin.places(starts, steps, ["u", "v", "w"]))
    assert [str(p) for p in told] == [
        "u at line 5 (episode a, step 2)",
        "v at line 4 (episode b, step 0)",
        "w at line 2 (episode c, step 1)",
    ]
    # A log that numbers its steps itself may begin at 1, or leave some out: no other number is shown.
    own = Origin("x", step_name="t")
    assert [str(p) for p in own.places(starts, steps)] == [
        f"row {r} (episode {e})" for r, e in ((2, 0), (3, 1), (5, 2))
    ]


def test_not_every_place_is_kept() -> None:
    assert len(list(Origin("x").places(np.array([0]), np.arange(5000)))) == PLACES_KEPT
