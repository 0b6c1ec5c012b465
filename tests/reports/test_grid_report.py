"""Reports about grids of one's own: what they say is what was measured, whatever was measured."""

from __future__ import annotations

import csv
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pages
import pytest
from hand_made import FALLS, HOLDS, curves, outcome
from hypothesis import given
from hypothesis import strategies as st
from pages import Read
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from toys import write_toy

from cwbc.grids import engine
from cwbc.grids.cells import Scale, Variant, grid
from cwbc.grids.outcomes import Failure, Outcome, Results
from cwbc.reports import grid_report
from cwbc.reports.chart import Curve
from cwbc.reports.overall import Overall
from cwbc.results.evidence import Evidence
from cwbc.results.paths import MazePath
from cwbc.system.errors import InputError

TWO = ("hopper-medium", "walker2d-medium")
CONFIG = {
    **pages.CONFIG,
    "versions": {"cwbc": "0.0"},
    "hardware": {"device": "abacus", "cores": 2},
}


def kept(outcomes: Sequence[Outcome], folder: Path) -> list[Outcome]:
    """The same outcomes, each with a run directory as cells have them."""
    found = []
    for number, each in enumerate(outcomes):
        directory = folder / "cells" / str(number)
        directory.mkdir(parents=True)
        (directory / "config.json").write_text(json.dumps(CONFIG))
        (directory / "metrics.jsonl").write_text('{"step": 20, "loss": [1, 2], "seconds": 3.0}\n')
        found.append(dataclasses.replace(each, directory=directory))
    return found


def reported(
    outcomes: Sequence[Outcome], folder: Path, failures: Sequence[Failure] = ()
) -> tuple[dict[str, Any], Read]:
    """The summary and the page about outcomes."""
    page = grid_report.report(Results(kept(outcomes, folder), list(failures)), folder / "out", title="Mine")
    return json.loads((folder / "out" / "summary.json").read_text()), Read(page.read_text())


def failure(each: Outcome) -> Failure:
    return Failure(each.cell, each.directory, "the arm <fell> off")


def part(each: Outcome, seeds: slice = slice(None), targets: slice = slice(None)) -> Outcome:
    """Only some seeds or target returns of an outcome."""
    sweep = each.sweep
    less = dataclasses.replace(
        sweep,
        seeds=sweep.seeds[seeds],
        targets=sweep.targets[targets],
        returns=sweep.returns[seeds, targets],
        lengths=sweep.lengths[seeds, targets],
    )
    return dataclasses.replace(each, sweep=less)


def table(folder: Path, name: str) -> dict[str, Mapping[str, str]]:
    """The rows of a table's file, by their names."""
    rows = csv.DictReader((folder / "out" / f"{name}.csv").read_text().splitlines())
    return {next(iter(row.values())): row for row in rows}


@pytest.mark.usefixtures("no_pictures")
def test_a_grid_from_training_to_report(tmp_path: Path) -> None:
    """Two files of one name, an environment without published scores, labels with anything in them."""
    paths = [tmp_path / "one" / "logs.hdf5", tmp_path / "other" / "logs.hdf5"]
    for path in paths:
        path.parent.mkdir()
        write_toy(path)
    with h5py.File(paths[1], "r+") as file:
        file["rewards"][:] *= 0.5
    labels = ["rvs", 'alpha = 0.1 | <i>"a"</i> & b/c']
    small = {"width": 16, "batch_size": 4}
    variants = [Variant(label, "rvs", small) for label in labels]
    cells = grid([*map(str, paths)], variants, Scale("small", 20, 2, 3, points=3, precision="float32"))
    # They differ in their seeds alone, so that one program trains them.
    cells = tuple(dataclasses.replace(cell, seeds=(i % 2, 2)) for i, cell in enumerate(cells))
    results = engine.run(cells, tmp_path / "cells")
    out = tmp_path / "out"
    assert grid_report.report(results, out, title="<Mine>") == out / "report.html"

    page = Read((out / "report.html").read_text())
    summary = json.loads((out / "summary.json").read_text())
    assert set(summary["files"]) == {file.name for file in out.iterdir()}
    assert {link for link in page.links if not link.startswith("#")} <= set(summary["files"])
    assert len(list(out.glob("*.png"))) == 2
    assert summary["title"] == "<Mine>"
    assert summary["headline"] in page.text
    assert [dataset["name"] for dataset in summary["datasets"]] == [*map(str, paths)]
    steps = {dataset["steps"] for dataset in summary["datasets"]}
    assert f"The datasets hold {steps.pop():,} steps each." in summary["remarks"]
    # Nothing is said of the paper, nor of experts that are not known.
    assert "the dataset's best return" in summary["headline"]
    for word in ("paper", "claim", "expert", "D4RL"):
        assert word not in page.text
    assert "command" not in summary["provenance"]
    assert "width 16, " in summary["provenance"]["settings of all"]
    assert {row["method"] for row in table(tmp_path, "settings").values()} == {"rvs"}
    assert "mujoco" in summary["provenance"]["versions"]

    rows = []
    for cell in csv.DictReader((out / "cells.csv").read_text().splitlines()):
        of_cell = csv.DictReader((Path(cell["directory"]) / "results.csv").read_text().splitlines())
        rows += [row | {"dataset": cell["dataset"], "method": cell["method"]} for row in of_cell]
    assert len(rows) == 2 * 2 * 2 * 3 * 3  # datasets, labels, seeds, targets, episodes
    assert '\\<i>"a"\\</i>' in (out / "scores.md").read_text()  # no markup in Markdown either
    shown = table(tmp_path, "scores")
    assert set(shown) == {"one/logs.hdf5", "other/logs.hdf5", "average"}
    for path, each in zip(paths, results.outcomes[::2], strict=True):
        for label in labels:
            scores = [
                float(row["normalized"])
                for row in rows
                if (row["dataset"], row["method"]) == (str(path), label)
                and float(row["target"]) == pytest.approx(each.dataset.best)
            ]
            found = shown[f"{path.parent.name}/logs.hdf5"][label]
            assert float(found) == pytest.approx(np.mean(scores))


@pytest.mark.usefixtures("no_pictures")
def test_the_headline_names_the_best_on_average(tmp_path: Path) -> None:
    outcomes = [
        outcome("hopper-medium", "rvs", (20, 50, 60, 0), apart=1),
        outcome("hopper-medium", "cwbc", (20, 50, 50, 25), apart=1),
        outcome("walker2d-medium", "rvs", (20, 50, 10, 5), apart=1),
        outcome("walker2d-medium", "cwbc", (20, 40, 40, 40), apart=1),
    ]
    summary, page = reported(outcomes, tmp_path)
    headline = summary["headline"]
    # (50 + 40) / 2 against (60 + 10) / 2; of the best points 25/50 and 40/40, 0/60 and 5/50.
    assert "At the expert return, cwbc scores highest, 45.0 on average over 2 datasets" in headline
    assert "OOD retention is 75\u00a0% for cwbc, 5\u00a0% for rvs." in headline
    assert "not clearly above rvs" in headline  # each is better on one of the two
    assert "Performance profiles at 1× expert" in page.text
    assert summary["provenance"]["training time"] == "12 s for all 4 cells"
    overall = table(tmp_path, "overall")
    assert overall["rvs"]["P(better)"] == ""
    assert float(overall["cwbc"]["P(better)"]) == 0.5
    assert float(overall["cwbc"]["mean"]) == pytest.approx(45)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({"a": 50.0}, "a scores 50.0 on hopper-medium"),
        ({"a": 50.0, "b": 40.0}, "a scores highest, 50.0 on hopper-medium"),
        ({"a": 50.0, "b": 50.04}, "all 2 methods score 50.0 on hopper-medium"),
        ({"a": 50.0, "b": 50.04, "c": 1.0}, "a and b score highest, 50.0 on hopper-medium"),
        ({"a": 50.0, "b": 49.0, "c": 1.0}, "a scores highest, 50.0 on hopper-medium, not clearly above b"),
        ({"a": -5.0, "b": -5.5}, "a scores highest, −5.0 on hopper-medium, not clearly above b"),
    ],
)
def test_the_headline_says_how_much_it_means(scores: dict[str, float], said: str, tmp_path: Path) -> None:
    outcomes = [outcome("hopper-medium", label, (-9, -9, at, -9), apart=1) for label, at in scores.items()]
    summary, _ = reported(outcomes, tmp_path)
    # Of two equal methods with two seeds, one beats the other in both seeds every third time.
    assert f"{said}, with 2 seeds each." in summary["headline"]
    assert ("overall" in summary["tables"]) == (len(scores) > 1)
    (tmp_path / "enough").mkdir()
    summary, _ = reported([repeated(each, 3) for each in outcomes], tmp_path / "enough")
    assert f"{said}." in summary["headline"]


def repeated(each: Outcome, times: int) -> Outcome:
    """As if more seeds had reached the same."""
    sweep = each.sweep
    returns, lengths = np.tile(sweep.returns, (times, 1, 1)), np.tile(sweep.lengths, (times, 1, 1))
    more = dataclasses.replace(sweep, seeds=np.arange(len(returns)), returns=returns, lengths=lengths)
    return dataclasses.replace(each, sweep=more)


def test_seeds_are_called_few_by_the_fewest() -> None:
    assert grid_report._few([5, 10]) == ""
    assert grid_report._few([1, 1]) == "with one seed each"
    assert grid_report._few([10, 1, 4]) == "with one or 4 or 10 seeds each"


@pytest.mark.usefixtures("no_pictures")
def test_one_seed_is_told(tmp_path: Path) -> None:
    outcomes = [part(each, slice(1)) for each in curves(TWO, rvs=HOLDS, dt=FALLS)]
    summary, page = reported(outcomes, tmp_path)
    assert "not clearly above dt, with one seed each." in summary["headline"]
    assert "too few seeds for an interval" in page.text
    assert "±" not in page.text


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("targets", [slice(0, 2), slice(2, 3), slice(3, 4)])
def test_returns_that_were_not_asked_leave_cells_empty(targets: slice, tmp_path: Path) -> None:
    """The curves have a low point, the dataset's best, 1x and 2x expert."""
    outcomes = [part(each, targets=targets) for each in curves(TWO, rvs=(20, 45, 40, 30), dt=HOLDS)]
    summary, page = reported(outcomes, tmp_path)
    near, far = targets.start == 2, targets.start == 3
    for name, numbers in table(tmp_path, "scores").items():
        assert bool(numbers["rvs"]) == near, name
    rows = table(tmp_path, "named-returns")
    assert {bool(row["2× expert"]) for row in rows.values()} == {far}
    assert {bool(row["OOD retention"]) for row in rows.values()} == {far}
    if near:
        assert "dt scores highest, 50.0" in summary["headline"]
    elif far:
        assert "OOD retention is 100\u00a0% for dt" in summary["headline"]  # its best point is the only one
    else:
        assert "At its best target, dt scores 50.0; rvs scores 45.0 (" in summary["headline"]
    assert "A dash stands for what was not evaluated" in page.text


@pytest.mark.usefixtures("no_pictures")
def test_what_failed_is_told_and_left_out(tmp_path: Path) -> None:
    outcomes = curves(TWO, rvs=(20, 50, 30, 10), dt=HOLDS)
    summary, page = reported(outcomes[1:], tmp_path, [failure(outcomes[0])])
    assert "dt scores highest, 50.0 on walker2d-medium, where all were evaluated" in summary["headline"]
    assert "1 of 4 cells failed" in page.text
    assert "the arm <fell> off" in page.text
    assert table(tmp_path, "overall")["dt"]["P(better) note"] == "than rvs"  # still the first
    # Another dataset that fails as a whole keeps the names of the others as they were.
    (tmp_path / "second").mkdir()
    summary, _ = reported([outcomes[3]], tmp_path / "second", [failure(outcomes[0])])
    assert "on walker2d-medium, where all were evaluated" in summary["headline"]
    (tmp_path / "third").mkdir()
    summary, _ = reported([outcomes[1], outcomes[2]], tmp_path / "third")
    assert "so they cannot be compared" in summary["headline"]


def broken(each: Outcome, target: int) -> Outcome:
    """The same outcome, but one episode of the first seed broke down."""
    returns = each.sweep.returns.copy()
    returns[0, target] = np.nan
    return dataclasses.replace(each, sweep=dataclasses.replace(each.sweep, returns=returns))


@pytest.mark.usefixtures("no_pictures")
def test_what_broke_down_is_told_and_not_known(tmp_path: Path) -> None:
    outcomes = curves(TWO, rvs=(20, 50, 60, 60), dt=HOLDS)
    outcomes[0] = broken(outcomes[0], 2)
    summary, page = reported(outcomes, tmp_path)
    said = "Simulations broke down in 1 episode (rvs on hopper-medium at target 3,200): metrics"
    assert said in page.text
    assert any(remark.startswith(said) for remark in summary["remarks"])
    rows = table(tmp_path, "scores")
    assert (rows["hopper-medium"]["rvs"], rows["average"]["rvs"]) == ("", "")
    assert float(rows["hopper-medium"]["dt"]) == pytest.approx(50)
    assert "rvs scores highest, 60.0 on walker2d-medium, where all were evaluated" in summary["headline"]
    # The best point is that of those that are known.
    row, *_ = named_returns(tmp_path)
    assert (row["dataset"], row["method"], row["1× expert"]) == ("hopper-medium", "rvs", "")
    assert float(row["best point"]) == pytest.approx(60)
    (tmp_path / "alone").mkdir()
    summary, _ = reported(outcomes[:2], tmp_path / "alone")
    assert summary["headline"] == "No dataset has whole results of all 2 methods, so they cannot be compared."


def named_returns(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader((folder / "out" / "named-returns.csv").read_text().splitlines()))


@pytest.mark.usefixtures("no_pictures")
def test_a_method_without_a_score_above_zero_has_nothing_to_keep(tmp_path: Path) -> None:
    outcomes = [
        outcome("hopper-medium", "rvs", (-9, -9, -4, -9)),
        outcome("walker2d-medium", "rvs", HOLDS),
    ]
    summary, _ = reported(outcomes, tmp_path)
    assert [row["OOD retention"] for row in named_returns(tmp_path)] == ["", "1.0"]
    assert "twice the expert return, rvs scores 20.5." in summary["headline"]  # the mean of −9 and 50


@given(st.lists(st.sampled_from([-5.0, 20.0, 50.0, np.nan]), min_size=4, max_size=4).map(tuple))
def test_reports_on_runs_and_grids_have_the_same_numbers(scores: tuple[float, float, float, float]) -> None:
    each = outcome("hopper-medium", "rvs", scores, apart=1)
    found = Evidence.of([each], TWO).evaluated["hopper-medium"]["rvs"]
    summary = found.to_json()
    points = [summary["at_expert"], summary["at_twice_expert"], summary["best_point"]]
    points.append(summary["ood_retention"])
    expected = [np.nan if point is None or point["value"] is None else point["value"] for point in points]
    in_grids = [found.at_expert, found.at(found.task.far_return), found.top, found.retention]
    np.testing.assert_allclose(in_grids, expected)


@pytest.mark.usefixtures("no_pictures")
def test_a_grid_of_which_nothing_was_finished(tmp_path: Path) -> None:
    outcomes = curves(TWO, rvs=HOLDS)
    summary, page = reported([], tmp_path, list(map(failure, outcomes)))
    assert summary["headline"] == "None of the 2 cells was finished."
    assert page.text.count("the arm <fell> off") == 2
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"report.html", "summary.json"}
    with pytest.raises(InputError, match="no cell to report on"):
        grid_report.report(Results([], []), tmp_path / "none")


@pytest.mark.usefixtures("no_pictures")
def test_one_dataset_opens_with_what_to_deploy_as_a_comparison_does(tmp_path: Path) -> None:
    summary, page = reported(curves(TWO[:1], rvs=FALLS, cwbc=HOLDS), tmp_path)
    headline = page.text.index("Use cwbc with target return 2,560: expected return")
    caveat = page.text.index("Two seeds: too few seeds for an interval.")
    assert headline < caveat < page.text.index(summary["headline"])
    assert "What to deploy" not in page.text
    (heading,) = [found for _, found in page.elements if found.get("id") == "dataset-and-training"]
    assert heading
    several, page = reported(curves(TWO, rvs=FALLS, cwbc=HOLDS), tmp_path / "several")
    assert page.text.index(several["headline"]) < page.text.index("What to deploy")
    assert page.text.count("Scores at every target return") == 2  # of each dataset, as of a comparison


@pytest.mark.usefixtures("no_pictures")
def test_datasets_with_and_without_experts_together(tmp_path: Path) -> None:
    known = curves(TWO[:1], rvs=HOLDS)
    about = dataclasses.replace(known[0].dataset, name="mine", environment="Mine-v0", lowest=100.0)
    mine = outcome("hopper-medium", "rvs", (30, 60, 60, 60), about=about)
    summary, page = reported([*known, mine], tmp_path)
    assert "the expert return or the dataset's best return, rvs scores 55.0" in summary["headline"]
    assert "Without published reference returns (mine)" in page.text


@pytest.mark.usefixtures("no_pictures")
def test_scores_of_games_are_said_to_be_a_gamer_s(tmp_path: Path) -> None:
    gamer, d4rl = "0 is a random policy, 100 a gamer", "as in D4RL"
    _, page = reported(curves(["pong-replay"], rvs=HOLDS), tmp_path)
    assert gamer in page.text
    assert d4rl not in page.text
    assert "published reference returns" not in page.text
    _, page = reported(curves([*TWO[:1], "pong-replay"], rvs=HOLDS), tmp_path / "both")
    assert gamer in page.text
    assert d4rl in page.text


@pytest.mark.usefixtures("no_pictures")
def test_labels_and_seeds_that_do_not_match(tmp_path: Path) -> None:
    outcomes = curves(TWO, rvs=HOLDS, dt=FALLS)
    fewer = [part(outcomes[0], slice(1)), *outcomes[1:]]
    summary, _ = reported(fewer, tmp_path)
    assert "rvs scores highest, 50.0" in summary["headline"]
    overall = table(tmp_path, "overall")
    assert overall["rvs"]["IQM"] == ""
    assert overall["dt"]["IQM"] != ""
    results = kept([outcomes[0], outcomes[0]], tmp_path / "twice")
    with pytest.raises(InputError, match="two cells on cwbc/hopper/medium-v0 are called 'rvs'"):
        grid_report.report(Results(results, []), tmp_path / "refused")
    assert not (tmp_path / "refused").exists()
    grid_report.report(Results([results[0], results[0]], []), tmp_path / "same")  # one cell in two grids
    assert (tmp_path / "same" / "seeds.csv").read_text().count("cwbc/") == 2 * 4  # seeds, targets


def test_a_report_replaces_only_its_like(tmp_path: Path) -> None:
    outcomes = curves(TWO, rvs=HOLDS)
    reported(outcomes, tmp_path)
    assert (tmp_path / "out" / "walker2d-medium.png").exists()
    fewer = dataclasses.replace(outcomes[0], directory=tmp_path / "cells" / "0")
    grid_report.report(Results([fewer], []), tmp_path / "out")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["title"] == "out"
    assert {file.name for file in (tmp_path / "out").iterdir()} == set(summary["files"])
    results = Results([], [failure(outcomes[0])])
    (tmp_path / "theirs").mkdir()
    for name, content in {"diary.txt": "dear diary", "summary.json": '{"methods": {}}'}.items():
        (tmp_path / "theirs" / name).write_text(content)
        with pytest.raises(InputError, match=r"holds other files.*give another directory"):
            grid_report.report(results, tmp_path / "theirs")
    (tmp_path / "theirs" / "summary.json").write_text('{"item": {"name": "table1"}, "files": []}')
    with pytest.raises(InputError, match="holds the report of table1"):
        grid_report.report(results, tmp_path / "theirs")
    (tmp_path / "grid" / "cell").mkdir(parents=True)
    (tmp_path / "grid" / "cell" / "checkpoint.safetensors").touch()
    with pytest.raises(InputError, match="holds cells"):
        grid_report.report(results, tmp_path / "grid")
    with pytest.raises(InputError, match="cannot be a directory"):
        grid_report.report(results, tmp_path / "theirs" / "diary.txt" / "in")


def test_profiles_of_scores_below_zero_go_down_from_one() -> None:
    evidence = Evidence.of(curves(TWO, apart=1, rvs=(-9, -9, -4, -9), dt=(-9, -9, -2, -9)), TWO)
    (chart,) = Overall.of(evidence, ["rvs", "dt"]).profiles()
    for curve in chart.panels[0].layers:
        assert isinstance(curve, Curve)
        assert (curve.value[0], curve.value[-1]) == (1.0, 0.0)
        assert (np.diff(curve.value) <= 0).all()


def test_evidence_keeps_datasets_of_one_short_name_apart() -> None:
    both = [outcome("hopper-medium", "rvs", scores) for scores in (HOLDS, FALLS)]
    theirs = dataclasses.replace(
        both[1], cell=dataclasses.replace(both[1].cell, dataset="d4rl/hopper/medium-v2")
    )
    evidence = Evidence.of([both[0], theirs], ())
    found = {dataset: each["rvs"].at_expert for dataset, each in evidence.evaluated.items()}
    assert found == pytest.approx({"cwbc/hopper/medium-v0": 50, "d4rl/hopper/medium-v2": 10})


@pytest.mark.usefixtures("no_pictures")
def test_cells_are_tracked_by_the_names_of_the_report(tmp_path: Path) -> None:
    found = kept(curves(TWO, rvs=FALLS, rvs__cwbc=HOLDS), tmp_path)
    grid_report.report(Results(found, []), tmp_path / "out", track="tensorboard")
    folder = tmp_path / "out" / "tracked"
    assert {str(path.relative_to(folder)) for path in folder.glob("*/*")} == {
        f"{dataset}/{label}" for dataset in TWO for label in ("rvs", "rvs+cwbc")
    }
    (events,) = folder.glob("hopper-medium/rvs+cwbc/events/mean/*")
    read = EventAccumulator(str(events)).Reload()
    assert [(each.step, each.value) for each in read.Scalars("training/loss")] == [(20, 1.5)]
    scores = {each.step: each.value for each in read.Scalars("sweep/normalized score")}
    sweep = next(each.sweep for each in found if each.cell.label == "rvs+cwbc")
    assert len(scores) == len(sweep.targets)
    assert scores[3200] == pytest.approx(HOLDS[2])
    # A report about less leaves nothing of the others.
    grid_report.report(Results(found[:1], []), tmp_path / "out", track="tensorboard")
    assert len(list(folder.glob("*/*/events/mean/*"))) == 1
    grid_report.report(Results(found, []), tmp_path / "out")
    assert len(list(folder.glob("*/*/events/mean/*"))) == 1  # unchanged


@pytest.mark.usefixtures("no_pictures")
def test_a_method_that_takes_no_target_is_not_ranked_by_retention(tmp_path: Path) -> None:
    outcomes = curves(TWO, rvs=FALLS, cwbc=HOLDS, bc=HOLDS)
    for number, each in enumerate(outcomes):
        if each.cell.label == "bc":
            first = {name: getattr(each.sweep, name)[:, :1] for name in ("returns", "lengths")}
            once = dataclasses.replace(each.sweep, targets=np.array([np.nan]), **first)
            outcomes[number] = dataclasses.replace(each, sweep=once)
    summary, page = reported(outcomes, tmp_path)
    assert "OOD retention is 100\u00a0% for cwbc, 0\u00a0% for rvs. bc has no target" in summary["headline"]
    rows = {row["method"]: row for row in named_returns(tmp_path)}
    assert (rows["bc"]["OOD retention"], rows["cwbc"]["OOD retention"]) == ("", "1.0")
    assert rows["bc"]["1× expert"] == rows["bc"]["2× expert"] != ""
    assert "Flat lines: bc has no target." in page.text
    assert "A dash stands for" not in page.text
    seeds = csv.DictReader((tmp_path / "out" / "seeds.csv").read_text().splitlines())
    assert {row["target"] for row in seeds if row["method"] == "bc"} == {""}


def test_success_rates_have_intervals_and_mazes_their_paths(tmp_path: Path) -> None:
    (about,) = curves(["antmaze-umaze"], rvs=(0, 100, 100, 100))
    places = np.array([[0.0, 0.0], [4.0, 0.0]])
    sweep = dataclasses.replace(
        about.sweep,
        seeds=np.arange(3),
        returns=np.ones((3, 4, 10)),
        lengths=np.ones((3, 4, 10), np.int64),
        paths=[MazePath(seed, 1.0, 0, places) for seed in range(3)],
    )
    outcomes = [dataclasses.replace(about, sweep=sweep)]
    _, page = reported(outcomes, tmp_path)
    text = page.text.replace("\u00a0%", " %")
    assert "Every return in the data is 0 or 1: scores are success rates in %." in text
    assert "small numbers are 95 % intervals, those of all runs together by bootstrap" in text
    shown = table(tmp_path, "scores")["antmaze-umaze"]
    assert (shown["rvs"], shown["rvs high"]) == ("100.0", "100.0")
    assert float(shown["rvs low"]) == pytest.approx(100 / (1 + 4.302653**2 / 30))
    assert (tmp_path / "out" / "antmaze-umaze-paths.png").stat().st_size > 1000
    assert "antmaze-umaze: paths in the maze" in page.text
    (image,) = page.having("src")
    assert image["src"].startswith("data:image/png;base64,")
    evidence = Evidence.of([dataclasses.replace(about, sweep=dataclasses.replace(sweep, paths=()))], [])
    (row,) = Overall.of(evidence, ["rvs"]).table({}).rows
    assert row.cells[1].number == pytest.approx(100)  # interquartile mean of runs that are all alike
    assert np.isnan([row.cells[1].low, row.cells[1].high]).all()
