"""The report about an item, which depends on how much of it was run."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hand_made import FALLS, curves, summary

from cwbc.grids.outcomes import Results
from cwbc.paper import ITEMS, verdicts
from cwbc.paper.item import FULL, QUICK
from cwbc.paper.published import WALKERS
from cwbc.paper.reproduction import Extent, report, unequal
from cwbc.results.evidence import Evidence

WHOLE = Extent(ITEMS["components"], "ours", False, FULL, {})
DATASETS = {name: summary(name) for name in WALKERS}


def extent(**scale: Any) -> Extent:
    return dataclasses.replace(WHOLE, scale=dataclasses.replace(FULL, **scale))


def test_games_have_seeds_and_steps_of_their_own() -> None:
    item = ITEMS["atari"]
    whole = Extent(item, "ours", False, item.benchmark.full, {})
    assert not whole.is_small
    fewer = dataclasses.replace(whole, scale=dataclasses.replace(whole.scale, steps=24_999))
    (remark,) = [remark for remark in fewer.remarks(DATASETS, {3}) if "no evidence" in remark]
    assert "small run: 3 seeds, 24,999 steps, where the paper has 3 and 25,000." in remark


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("run", "size"),
    [
        (extent(), None),
        (extent(seeds=10, steps=100_000), None),
        (extent(seeds=20, steps=200_000), None),
        (extent(seeds=9), "small run: 9 seeds, 100,000 steps, where the paper has 10 and 100,000."),
        (extent(seeds=20, steps=1), "small run: 20 seeds, 1 step, where the paper has 10 and 100,000."),
        (
            dataclasses.replace(WHOLE, quick=True, scale=QUICK),
            "quick run: 3 of 3 datasets, 2 seeds, 2,000 steps of small networks, 3 episodes.",
        ),
        (
            dataclasses.replace(WHOLE, quick=True, scale=dataclasses.replace(QUICK, seeds=20, steps=200_000)),
            "quick run: 3 of 3 datasets, 20 seeds, 200,000 steps of small networks, 3 episodes.",
        ),
    ],
)
def test_less_than_the_paper_is_no_evidence_about_it(
    run: Extent, size: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "RESAMPLES", 200)  # as clear as 2,000 here
    evidence = Evidence.of(curves(WALKERS, rvs=FALLS, rvs__cwbc=(20, 51, 51, 51)), WALKERS)
    shown, _ = report(run, evidence, Results([], []), DATASETS, {})
    remarks = " ".join(shown.remarks)
    scale = run.scale
    assert f"{scale.seeds} seeds with {scale.episodes} episodes per target return; ± is" in remarks
    if size is None:
        ending = "our run supports 3 and contradicts 0; 2 inconclusive."
        assert shown.headline == f"Figure 5: of 5 claims of the paper, {ending}"
        assert "no evidence" not in remarks
    else:
        ending = "a small run, which is no evidence, would support 3 and contradict 0; 2 inconclusive."
        assert shown.headline == f"Figure 5: of 5 claims of the paper, {ending}"
        assert f"This is a {size} It shows" in remarks
        assert "its verdicts are no evidence about the paper" in remarks
    assert str(shown.files["claims.md"].content).startswith(f"# {shown.headline}")


def test_reports_about_different_things_go_to_different_places() -> None:
    variations: list[dict[str, Any]] = [
        {},
        {"data": "d4rl"},
        {"quick": True},
        {"data": "d4rl", "quick": True},
        {"scale": dataclasses.replace(FULL, precision="bfloat16")},
        {"changes": {"--seeds": "3"}},
        {"changes": {"--steps": "3"}},
        {"changes": {"--steps": "3"}, "quick": True},
    ]
    folders = [dataclasses.replace(WHOLE, **each).folder for each in variations]
    assert folders[:4] == ["components", "components-d4rl", "components-quick", "components-d4rl-quick"]
    assert folders[4] == "components-bfloat16"
    assert len(set(folders)) == len(folders)
    assert all(folder.startswith("components-part-") for folder in folders[5:7])


def test_claims_are_shown_with_their_verdicts_and_what_is_left_to_chance() -> None:
    outcomes = curves(WALKERS[:2], rvs__cwbc=(20, 50, 50, 50))
    outcomes += curves(WALKERS[2:], apart=2, rvs__cwbc=(20, 50, 50, 41))  # of its best, 80 % are needed
    outcomes += curves(WALKERS, rvs=FALLS, rvs__w=FALLS)
    shown, _ = report(WHOLE, Evidence.of(outcomes, WALKERS), Results([], []), DATASETS, {})
    _, collapsed, _, reliable, _ = shown.summary["claims"]
    assert (collapsed["verdict"], reliable["verdict"]) == ("supported", "inconclusive")
    assert (reliable["holds"], [case["verdict"] for case in reliable["cases"]]) == (
        True,
        ["supported", "supported", "inconclusive"],
    )
    assert 0.05 < reliable["holds_in"] < 0.95
    assert reliable["holds_in"] + reliable["fails_in"] == pytest.approx(1)
    in_percent = f"{100 * reliable['holds_in']:.4g} %"
    text = str(shown.files["claims.md"].content).replace("\u00a0%", " %")
    assert "- **inconclusive**: RvS+CWBC is more reliable than RvS" in text
    assert f"Holds on 3 of 3, needs 3. On average 94 % against 0 %. Holds in {in_percent} of" in text
    assert f"  - ? {WALKERS[2]}: 82 % of 50.0 against 0 % of 50.0; holds in {in_percent}\n" in text
    assert f"  - + {WALKERS[0]}: 100 % of 50.0 against 0 % of 50.0\n" in text
    (blocks,) = shown.sections.values()
    assert '<dt class="">inconclusive</dt>' in "".join(blocks)


def test_different_numbers_of_training_steps_and_seeds_are_remarked() -> None:
    outcomes = curves(WALKERS, rvs=FALLS, cql=FALLS, iql=FALLS)
    assert unequal(Results(outcomes, [])) == []
    for number, each in enumerate(outcomes):
        steps = 1 if each.cell.label == "rvs" else 300_000
        training = dataclasses.replace(each.cell.training, steps=steps)
        seeds = (0, 1) if each.cell.label == "cql" else (0, 1, 2, 3)
        cell = dataclasses.replace(each.cell, training=training, seeds=seeds)
        outcomes[number] = dataclasses.replace(each, cell=cell)
    assert unequal(Results(outcomes, [])) == [
        "Training steps: 1 of rvs; 300,000 of cql and iql.",
        "Seeds: 4 of rvs and iql; 2 of cql.",
    ]
