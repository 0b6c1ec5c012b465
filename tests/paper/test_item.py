"""What all items have in common."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from hand_made import found, outcome, verdicts
from pages import html

from cwbc.core.methods import sized
from cwbc.core.tasks import TASKS
from cwbc.grids.cells import Cell
from cwbc.grids.preparation import target_returns
from cwbc.paper import ITEMS
from cwbc.paper.item import FULL, LOCOMOTION, QUICK, UPDATES, Item
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


VALUE_BASED = {"td3bc": 256, "cql": 256, "iql": 256, "rebrac": 1024}  # batch sizes


@pytest.mark.parametrize("item", ITEMS.values(), ids=lambda item: item.name)
def test_every_item_declares_what_it_needs(item) -> None:  # type: ignore[no-untyped-def]
    assert set(item.quick_datasets) <= set(item.datasets) or item.quick_datasets == ("pointmaze-umaze",)
    for quick in (False, True):
        scale = item.benchmark.quick if quick else item.benchmark.full
        cells = item.cells(item.names("ours", quick), scale)
        assert len(cells) == item.count(quick)
        names = [(cell.dataset, cell.label) for cell in cells]
        assert len(set(names)) == len(names)
        few = {label: min(5, scale.seeds) for label in item.costly}
        assert all(len(cell.seeds) == few.get(cell.label, scale.seeds) for cell in cells)
        if item.benchmark != LOCOMOTION:
            continue
        assert (scale.seeds, scale.steps) == ((2, 2_000) if quick else (10, None))
        cloned = [cell for cell in cells if cell.label not in VALUE_BASED]
        assert {cell.training.steps for cell in cloned} <= ({2_000} if quick else {100_000})
        if not quick:
            assert {c.training.batch_size for c in cloned} <= {64}
        elif any(cell.method.learner.looks_back for cell in cells):
            assert {c.training.batch_size for c in cells if c.method.learner.looks_back} == {16}
    assert bool(item.variants) or item.needs_data
    # Without any outcome there is no verdict, and no crash.
    item.exhibits(Evidence({}, item.datasets))
    assert {claim.holds for claim in item.claims(Evidence({}, item.datasets))} == {None}


def trained(item: Item, steps: int | None = None) -> dict[str, Cell]:
    """The full cells of one dataset, by label."""
    cells = item.cells(["any"], dataclasses.replace(FULL, precision="float32", steps=steps))
    return {cell.label: cell for cell in cells}


def test_value_based_methods_take_more_updates_unless_steps_are_given() -> None:
    cells = trained(ITEMS["table1"])
    assert list(cells) == ["rvs", "rvs+cwbc", "dt", "dt+cwbc", *VALUE_BASED, "rvs+q"]
    for label, batch_size in VALUE_BASED.items():
        training = cells[label].training
        assert (training.steps, training.batch_size) == (UPDATES, batch_size) == (300_000, batch_size)
        assert cells[label].method == sized(label, "paper")[0]
    assert (cells["rvs+q"].method, cells["rvs+q"].training) == sized("rvs+q", "paper")
    assert {cell.training.steps for cell in trained(ITEMS["table1"], steps=500_000).values()} == {500_000}


def test_methods_whose_training_costs_most_have_fewer_seeds_unless_a_number_is_given() -> None:
    item = ITEMS["table1"]
    assert {label for label, cell in trained(item).items() if len(cell.seeds) == 5} == {"cql", "rebrac"}
    given = item.cells(["any"], dataclasses.replace(FULL, precision="float32"), seeds_are_given=True)
    assert {len(cell.seeds) for cell in given} == {10}
    assert {len(cell.seeds) for cell in item.cells(["any"], QUICK)} == {2}


def test_methods_that_need_no_target_are_evaluated_without_one() -> None:
    cells = trained(ITEMS["table1"]) | trained(ITEMS["filtered-bc"])
    for label in (*VALUE_BASED, "rvs+q", "filtered-bc"):
        assert cells[label].targets == target_returns(cells[label], TASKS["hopper"], 3000.0) == ()
    assert cells["rvs+cwbc"].targets is None
    assert 2400.0 in target_returns(cells["rvs+cwbc"], TASKS["hopper"], 3000.0)


def test_a_quick_table_1_has_few_value_based_methods_but_those_that_are_named() -> None:
    item = ITEMS["table1"]
    labels = [cell.label for cell in item.cells(["any"], QUICK)]
    assert labels == ["rvs", "rvs+cwbc", "dt", "dt+cwbc", "td3bc", "rvs+q"]
    assert item.count(quick=True) == 2 * len(labels)
    assert [cell.label for cell in item.only(None, ["iql", "rvs"]).cells(["any"], QUICK)] == ["rvs", "iql"]
