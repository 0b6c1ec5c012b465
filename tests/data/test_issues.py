"""How data issues are reported."""

from __future__ import annotations

from typing import Any

import numpy as np

from cwbc.data.issues import LOCATIONS_STORED, DataError, Issue, Location, Origin


def test_a_sentence_has_what_where_and_the_remedy() -> None:
    locations = (
        Location(3, episode="a", step=1, value="nan"),
        Location(9, unit="line", episode="b"),
        Location(12),
    )
    issue = Issue("error", "x is odd", "make it even", "x", 5, locations)
    assert issue.sentence() == "x is odd: nan at row 3 (episode a, step 1) and 4 more; make it even"
    assert issue.sentence(locations=3).startswith(
        "x is odd: nan at row 3 (episode a, step 1), line 9 (episode b), row 12 and 2 more;"
    )
    assert Issue("error", "x is odd", "make it even").sentence() == "x is odd; make it even"
    assert [place["row"] for place in issue.to_json(2)["locations"]] == [3, 9]


def test_a_rejection_tells_the_first_error_and_counts_the_others() -> None:
    warning = Issue("warning", "hm", "look")
    errors = [Issue("error", f"wrong {i}", "mend") for i in range(3)]
    assert str(DataError("log.csv", [warning, errors[0]])) == "log.csv: wrong 0; mend"
    many = DataError("log.csv", [warning, *errors])
    assert str(many) == "log.csv: wrong 0; mend (and 2 more: `cwbc data check` lists all)"
    assert many.issues == (warning, *errors)


def shown(origin: Origin, starts: Any, steps: Any, values: Any = None) -> list[str]:
    return list(map(str, origin.issue("error", "odd", "", starts, steps, values=values).locations))


def test_locations_are_in_episodes_and_in_the_source() -> None:
    starts = np.array([0, 3, 4])
    steps = np.array([2, 3, 5])
    plain = Origin("x").issue("error", "odd", "", starts, steps, "column")
    assert (plain.column, plain.count) == ("column", 3)
    assert [(at.row, at.episode, at.step) for at in plain.locations] == [
        (2, "0", 2),
        (3, "1", 0),
        (5, "2", 1),
    ]
    rows = np.array([5, 4, 3, 2, 1, 0])
    origin = Origin("x", rows=rows, unit="line", first_row=2, episodes=["a", "b", "c"])
    assert shown(origin, starts, steps, ["v2", "v3", "v5"]) == [
        "v2 at line 5 (episode a, step 2)",
        "v3 at line 4 (episode b, step 0)",
        "v5 at line 2 (episode c, step 1)",
    ]
    # A log with its own step numbers may start at 1, or leave some out: no other number is shown.
    assert shown(Origin("x", step_name="t"), starts, steps) == [
        f"row {r} (episode {e})" for r, e in ((2, 0), (3, 1), (5, 2))
    ]


def test_not_every_location_is_stored() -> None:
    issue = Origin("x").issue("error", "odd", "", np.array([0]), np.arange(5000))
    assert (issue.count, len(issue.locations)) == (5000, LOCATIONS_STORED)
