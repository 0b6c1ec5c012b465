"""What all items have in common."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hand_made import found, outcome, verdicts
from pages import html

from cwbc.paper import ITEMS
from cwbc.paper.item import FULL, QUICK
from cwbc.results.evidence import Evidence


@pytest.mark.parametrize("name", [item.name for item in ITEMS.values() if item.variants])
@pytest.mark.parametrize("scores", [(20, 50, np.nan, 50), (np.nan,) * 4])
def test_simulations_that_broke_down_decide_nothing(
    name: str, scores: tuple[float, float, float, float]
) -> None:
    item = ITEMS[name]
    labels = [each if isinstance(each, str) else each.label for each in item.variants]
    findings = found(name, [outcome(dataset, label, scores) for dataset in item.datasets for label in labels])
    assert verdicts(findings) == [None] * len(findings.claims)
    shown = [table.to_markdown() for table in findings.tables.values()]
    shown += [html(chart) for chart in findings.charts]
    assert not [text for text in shown if re.search(r"\bnan\b", text)]


@pytest.mark.parametrize("item", ITEMS.values(), ids=lambda item: item.name)
def test_every_item_declares_what_it_needs(item) -> None:  # type: ignore[no-untyped-def]
    assert set(item.quick_datasets) <= set(item.datasets)
    for quick in (False, True):
        cells = item.cells(item.names("ours", quick), QUICK if quick else FULL)
        assert len(cells) == item.count(quick)
        names = [(cell.dataset, cell.label) for cell in cells]
        assert len(set(names)) == len(names)
        assert {len(cell.seeds) for cell in cells} <= ({2} if quick else {10})
        steps = {cell.training.steps for cell in cells}
        assert steps <= ({2_000} if quick else {100_000})
        if not quick:
            assert {c.training.batch_size for c in cells} <= {64}
        elif any(cell.method.learner.looks_back for cell in cells):
            assert {c.training.batch_size for c in cells if c.method.learner.looks_back} == {16}
    assert bool(item.variants) or item.needs_data
    # Without any outcome there is no verdict, and no crash.
    item.exhibits(Evidence({}, item.datasets))
    assert {claim.holds for claim in item.claims(Evidence({}, item.datasets))} == {None}
