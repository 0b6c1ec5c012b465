"""Verdicts of Figure 4 and of the appendix on hand-made returns."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import logged, with_returns
from hand_made import found, on_all, verdicts

from cwbc.paper import ITEMS
from cwbc.paper.published import DATASETS, WALKERS


def test_transformed() -> None:
    # Filtering takes ten of a hundred; weighting samples half from the best one, or uniformly from ten.
    one = with_returns(*([1.0] * 90 + [50.0] * 9 + [99.0]))
    assert verdicts(found("transformed", [], **on_all(one, DATASETS))) == [True, True, False]
    ten = with_returns(*([1.0] * 90 + [99.0] * 10))
    assert verdicts(found("transformed", [], **on_all(ten, DATASETS))) == [True, True, True]
    assert verdicts(found("transformed", [], walker2d_medium_replay=ten)) == [None, None, None]
    high = with_returns(*np.linspace(0, 100, 100))
    assert verdicts(found("transformed", [], **on_all(high, DATASETS)))[0] is False
    # Most datasets must be low, not all of them.
    assert verdicts(found("transformed", [], **{**on_all(ten, DATASETS), "walker2d_medium": high}))[0] is True
    assert set(ITEMS["transformed"].quick_datasets) == set(WALKERS)


def test_bias_variance() -> None:
    returns = np.linspace(0, 100, 1000) ** 2
    findings = found("bias-variance", [], walker2d_medium=with_returns(*returns))
    assert verdicts(findings)[2:] == [None, None]
    assert "by definition" in findings.claims[2].reason
    table = findings.tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["uniform"][1] == pytest.approx(1 / 1000)
    assert rows["top 10 %"][1] == pytest.approx(1 / 100)


def test_bias_variance_can_be_contradicted() -> None:
    # Most of a thousand are low and all of the best differ: filtering uses a hundred of them, weighting more.
    low = with_returns(*np.linspace(0, 100, 1000) ** 2)
    assert verdicts(found("bias-variance", [], **on_all(low)))[:2] == [True, True]
    # Nine tenths are the best already: weighting draws from the rest, bin by bin, more than it is.
    best = with_returns(*([100.0] * 90 + list(np.linspace(0, 90, 10))))
    assert verdicts(found("bias-variance", [], **on_all(best)))[:2] == [False, False]
    # The best episode is by far the longest: drawing by length has the least bias.
    longest = logged([1.0] * 100, *([each] for each in np.linspace(0, 90, 9)))
    assert verdicts(found("bias-variance", [], **on_all(longest)))[0] is False
    # Two kinds: filtering takes all of the better one, and so does weighting.
    two = with_returns(*([0.0] * 90 + [100.0] * 10))
    assert verdicts(found("bias-variance", [], **on_all(two)))[:2] == [True, False]


def test_bias_variance_is_about_what_is_trained() -> None:
    # A good long episode and bad short ones: by length the best is sampled more often than uniformly.
    data = logged([10.0] * 10, *([[1.0]] * 10))
    table = found("bias-variance", [], walker2d_medium=data).tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["uniform"][3] == pytest.approx((10 / 11) ** 2)
    assert rows["by length"][3] == pytest.approx(1 / 4)
    data = logged([10.0] * 3, [30.0], *([[1.0]] * 18))  # the top two of twenty, the longer one more often
    table = found("bias-variance", [], walker2d_medium=data).tables["bias-variance-walker2d-medium"]
    rows = {row.name: [cell.number for cell in row.cells] for row in table.rows}
    assert rows["top 10 %"][1] == pytest.approx((3 / 4) ** 2 + (1 / 4) ** 2)
    effective = found("transformed", [], walker2d_medium=data).tables["transformed"].rows[0].cells[-1].number
    assert effective == pytest.approx(1 / ((3 / 4) ** 2 + (1 / 4) ** 2))
