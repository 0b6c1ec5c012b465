"""`cwbc reproduce` as users meet it: the list, what it refuses, and an item from data to report."""

from __future__ import annotations

import csv
import dataclasses
import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from command_line import run
from pixels import PIXELS, pixel_data
from toys import toy_data, write_toy

from cwbc import behaviours, data
from cwbc.data import store
from cwbc.grids import engine, preparation, ray_engine
from cwbc.grids.cells import Cell, Variant
from cwbc.grids.outcomes import Failure, Results
from cwbc.paper import ITEMS
from cwbc.paper.item import FULL, Item
from cwbc.paper.published import Datasets
from cwbc.system.errors import InputError

TINY = ("--quick", "--seeds=2", "--steps=20", "--device=cpu")


@dataclasses.dataclass(frozen=True)
class OnFile(Item):
    """An item whose dataset is a file."""

    def names(self, datasets: Datasets, quick: bool) -> tuple[str, ...]:
        return self.datasets


def on_toy(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put an item's data in the toy's place."""
    toy = str(write_toy(folder / "toy.hdf5"))
    small = tuple(  # as in test_cli: what is compiled there serves here
        dataclasses.replace(variant, options={**variant.options, "width": 16, "batch_size": 4})
        for variant in (Variant(v, v) if isinstance(v, str) else v for v in ITEMS[name].variants)
    )
    fields = vars(ITEMS[name]) | {"datasets": (toy,), "quick_datasets": (toy,), "variants": small}
    monkeypatch.setitem(ITEMS, name, OnFile(**fields))


def test_without_an_item_all_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("reproduce") == 0
    said = capsys.readouterr().out
    assert len(ITEMS) == 15
    for item in ITEMS.values():
        assert item.name in said
        assert item.place in said
    table1 = next(line for line in said.splitlines() if line.startswith("table1"))
    assert table1.split()[3:5] == ["81", "12"]  # cells of a full run, and of a quick one


def test_mistakes_are_found_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    refused = {
        "did you mean 'table1'?": ("tabel1",),
        "which item? table1, ": ("--quick",),
        "--methods does nothing for transformed": ("transformed", "--methods=rvs"),
        "--seeds must be at least 1; got 0": ("table1", "--seeds=0"),
        "steps must be at least 1; got -5": ("table1", "--steps=-5"),
        "steps must be at most 2,147,483,647; got 1000000000000": ("table1", "--steps=1000000000000"),
        "--steps does nothing for bias-variance": ("bias-variance", "--steps=5"),
        "did you mean 'walker2d-medium'": ("table1", "--datasets=walker2d-medium-replay,walkr2d-medium"),
        "unknown method of this item 'rvs+w'": ("table1", "--methods=rvs,rvs+w"),
        "give --engine ray with it": ("table1", "--address=ray://there"),
        "cwbc data download walker2d-medium-expert-v2": ("components", "--data=d4rl"),
        "cwbc data download antmaze-large-play-v2": ("antmaze", "--data=d4rl"),
        "pointmaze-umaze is a generated dataset": ("antmaze", "--data=d4rl", "--quick"),
        "the behaviour policies of cwbc/antmaze/umaze-v0 do not come with this version": ("antmaze",),
    }
    # Whether or not there are any by now.
    monkeypatch.setattr("cwbc.data.generated.is_shipped", lambda task: False)
    for expected, arguments in refused.items():
        assert run("reproduce", *arguments) == 2
        assert expected in capsys.readouterr().err
    assert run("reproduce", "dt-concat", "--data=d4rl", "--quick") == 2
    assert "1 of D4RL's datasets" in capsys.readouterr().err  # a quick run takes one

    def no_gpu(device: str | None) -> None:
        raise InputError(f"--device {device}: jax finds no GPU")

    monkeypatch.setattr("cwbc.cli.reproduce.use_device", no_gpu)
    assert run("reproduce", "table1", "--quick", "--device=gpu") == 2
    assert "--device gpu: jax finds no GPU" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_part_of_an_item_keeps_its_order() -> None:
    def cells(item: Item) -> dict[tuple[str, str], Cell]:
        trained = item.cells(item.names("ours", quick=False), FULL)
        return {(cell.dataset, cell.label): cell for cell in trained}

    part = ITEMS["table1"].only(["hopper-medium", "walker2d-medium"], ["rvs+cwbc", "rvs"])
    robots = ("walker2d", "hopper")
    labels = [(f"cwbc/{robot}/medium-v0", label) for robot in robots for label in ("rvs", "rvs+cwbc")]
    assert list(cells(part)) == labels
    assert part.only(None, None) == part
    assert [each.label for each in cells(ITEMS["alpha"].only(None, ["alpha=0.1"])).values()] == [
        "alpha = 0.1"
    ] * 3
    assert cells(part).items() <= cells(ITEMS["table1"]).items()


@pytest.mark.usefixtures("no_pictures")
def test_what_is_finished_in_another_precision_is_not_trained_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("max-return", tmp_path, monkeypatch)
    monkeypatch.setattr("cwbc.paper.reproduction.check", lambda *_: None)  # the toy is no full dataset
    full = ("max-return", "--seeds=1", "--steps=2", "--device=cpu")
    assert run("reproduce", *full, "--precision=bfloat16") == 0
    assert "2 of them not trained yet, which takes days" in capsys.readouterr().err
    assert run("reproduce", *full) == 2
    expected = "of 2 cells that are not finished in float32, 2 are in bfloat16, as GPUs train"
    assert expected in capsys.readouterr().err
    assert len(list(tmp_path.glob("runs/cells/[!.]*"))) == 2
    assert run("reproduce", *full, "--precision=bfloat16") == 0
    assert "days" not in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_an_item_from_data_to_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("max-return", tmp_path, monkeypatch)
    read: list[str] = []

    def counted(name: str, *rest: Any, **more: Any) -> Any:
        read.append(name)
        return data.read(name, *rest, **more)

    monkeypatch.setattr(preparation, "read", counted)
    assert run("reproduce", "max-return", *TINY) == 0
    assert len(read) == 1  # for its summary, its cells and its report
    said = capsys.readouterr().out
    (out,) = tmp_path.glob("runs/reproduce/max-return-quick-part-*")
    assert {"report.html", "summary.json", "claims.md", "seeds.csv", "max-return.md", "max-return.csv"} <= {
        file.name for file in out.iterdir()
    }
    assert len(list(out.glob("*.png"))) == 1
    cells = list(csv.DictReader((out / "cells.csv").read_text().splitlines()))
    assert {cell["dataset"] for cell in cells} == {str(tmp_path / "toy.hdf5")}
    lines = [(Path(cell["directory"]) / "results.csv").read_text().splitlines() for cell in cells]
    rows = [row for of_cell in lines for row in csv.DictReader(of_cell)]
    assert {row["method"] for row in rows} == {"rvs", "rvs+cwbc"}
    assert "4.0" in {row["target"] for row in rows}  # 0.8 of the toy's best, 5
    of_seeds = list(csv.DictReader((out / "seeds.csv").read_text().splitlines()))
    same = [row for row in rows if all(row[key] == of_seeds[-1][key] for key in ("method", "seed", "target"))]
    for key in ("return", "normalized", "length"):
        mean = statistics.fmean(float(row[key]) for row in same)
        assert float(of_seeds[-1][key]) == pytest.approx(mean, rel=1e-6)
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["claims"]) == 3
    assert summary["claims"][0]["verdict"] == "inconclusive"  # one dataset cannot tell
    assert any("quick run" in remark for remark in summary["remarks"])
    assert summary["provenance"]["command"].startswith("cwbc reproduce max-return")
    assert "in which 2 cells finished" in summary["provenance"]["wall time"]
    page = (out / "report.html").read_text()
    assert "Prediction loss" in page
    assert "Returns in the data and in training" in page
    for claim in summary["claims"]:
        assert claim["text"] in said
        assert claim["text"].split("'")[0] in page
    # The same command again trains nothing.
    checkpoints = {file: file.stat().st_mtime_ns for file in tmp_path.glob("runs/cells/*/checkpoint*")}
    assert len(checkpoints) == 2
    assert not (out / "tracked").exists()
    assert run("reproduce", "max-return", *TINY, "--track=tensorboard") == 0
    assert {file: file.stat().st_mtime_ns for file in checkpoints} == checkpoints
    assert {path.name for path in out.glob("tracked/toy/*")} == {"rvs", "rvs+cwbc"}
    summary = json.loads((out / "summary.json").read_text())
    assert "in which 0 cells finished" in summary["provenance"]["wall time"]


@pytest.mark.usefixtures("no_pictures")
def test_a_method_without_a_target_from_data_to_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("table1", tmp_path, monkeypatch)
    command = ("reproduce", "table1", *TINY, "--methods=rvs+q")
    assert run(*command) == 0
    (out,) = tmp_path.glob("runs/reproduce/table1-quick-part-*")
    rows = list(csv.DictReader((out / "seeds.csv").read_text().splitlines()))
    assert [(row["method"], row["target"]) for row in rows] == [("rvs+q", "")] * 2
    (row,) = csv.DictReader((out / "table1.csv").read_text().splitlines())
    mean = statistics.fmean(float(each["normalized"]) for each in rows)
    assert float(row["rvs+q"]) == pytest.approx(mean, rel=1e-5)
    assert run(*command) == 0
    assert "in which 0 cells finished" in (out / "summary.json").read_text()  # they count as evaluated


def test_items_that_train_nothing_and_places_that_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("bias-variance", tmp_path, monkeypatch)
    assert run("reproduce", "bias-variance", "--out", "mine") == 0
    assert {"report.html", "summary.json"} <= {file.name for file in (tmp_path / "mine").iterdir()}
    assert not (tmp_path / "runs").exists()
    assert "our run supports" in capsys.readouterr().out
    assert run("reproduce", "bias-variance", "--out", "mine", "--quick") == 0
    assert "a small run, which is no evidence, would support" in capsys.readouterr().out
    (remark, *_) = json.loads((tmp_path / "mine" / "summary.json").read_text())["remarks"]
    assert "1 of 1 datasets, generated ones with 200,000 steps" in remark
    assert "no evidence about the paper" in remark
    assert "seed" not in remark
    assert run("reproduce", "bias-variance", "--out", "mine") == 0
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs" / "diary.txt").write_text("dear diary")
    assert run("reproduce", "bias-variance", "--out", "theirs") == 2
    assert "holds other files, such as diary.txt" in capsys.readouterr().err
    assert run("reproduce", "bias-variance", "--out", "theirs/diary.txt") == 2
    assert "cannot be a directory (File exists); give another --out" in capsys.readouterr().err
    (tmp_path / "theirs" / "diary.txt").rename(tmp_path / "theirs" / ".diary.txt.tmp")  # a kill's
    assert run("reproduce", "bias-variance", "--out", "theirs") == 0
    on_toy("transformed", tmp_path, monkeypatch)
    assert run("reproduce", "transformed", "--out", "theirs") == 2
    assert "holds the report of bias-variance; give another --out" in capsys.readouterr().err
    summary = tmp_path / "theirs" / "summary.json"
    earlier = json.loads(summary.read_text())
    (tmp_path / "theirs" / "old.png").touch()
    summary.write_text(json.dumps({**earlier, "files": [*earlier["files"], "old.png", "../toy.hdf5"]}))
    assert run("reproduce", "bias-variance", "--out", "theirs") == 0
    assert not (tmp_path / "theirs" / "old.png").exists()  # of a report that had more
    assert (tmp_path / "toy.hdf5").exists()
    (tmp_path / "cells" / "cell").mkdir(parents=True)
    (tmp_path / "cells" / "cell" / "checkpoint.safetensors").touch()
    assert run("reproduce", "bias-variance", "--out", "cells") == 2
    assert "holds cells" in capsys.readouterr().err


@pytest.mark.usefixtures("no_pictures")
def test_a_failed_cell_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("components", tmp_path, monkeypatch)

    def fail(cells, root, **settings):  # type: ignore[no-untyped-def]
        return Results([], [Failure(cell, root, "went where no number is") for cell in cells])

    monkeypatch.setattr(engine, "run", fail)
    assert run("reproduce", "components", *TINY) == 1
    assert "rvs+cwbc: went where no number is" in capsys.readouterr().err
    (out,) = tmp_path.glob("runs/reproduce/components-quick-part-*")
    assert "went where no number is" in (out / "report.html").read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert len(summary["failures"]) == 3
    assert {claim["verdict"] for claim in summary["claims"]} == {"inconclusive"}


def test_a_part_leaves_claims_about_the_whole_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("bias-variance", tmp_path, monkeypatch)
    toy = ITEMS["bias-variance"].datasets[0]
    other = str(write_toy(tmp_path / "other.hdf5"))
    whole = dataclasses.replace(ITEMS["bias-variance"], datasets=(toy, other), quick_datasets=(toy, other))
    monkeypatch.setitem(ITEMS, "bias-variance", whole)
    assert run("reproduce", "bias-variance", "--out=whole") == 0
    assert run("reproduce", "bias-variance", "--out=part", f"--datasets={toy}") == 0
    first, part = (
        json.loads((tmp_path / folder / "summary.json").read_text())["claims"][0]
        for folder in ("whole", "part")
    )
    assert first["verdict"] == "supported"
    assert part["verdict"] == "inconclusive"
    assert part["reason"].startswith("Results for only 1 of its 2 datasets")
    assert [case["dataset"] for case in part["cases"]] == ["toy"]


def test_parts_have_places_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("components", tmp_path, monkeypatch)
    monkeypatch.setattr(engine, "run", lambda cells, root, **settings: Results([], []))
    parts = [
        ("--methods=rvs",),
        ("--methods=rvs,rvs+w",),
        ("--methods=rvs", "--seeds=1"),
        ("--seeds=1", "--steps=3"),
        ("--seeds=3", "--steps=1"),
    ]
    for part in parts:
        assert run("reproduce", "components", *part, "--device=cpu") == 0
    for again in (("--methods=rvs+w, rvs",), ("--steps=3", "--seeds=1")):  # the same in another order
        assert run("reproduce", "components", *again, "--device=cpu") == 0
    folders = list((tmp_path / "runs" / "reproduce").iterdir())
    assert len(folders) == len(parts)
    summaries = [json.loads((folder / "summary.json").read_text()) for folder in folders]
    said = [remark for summary in summaries for remark in summary["remarks"] if "no evidence" in remark]
    assert sorted(remark.split(",")[0] for remark in said) == [
        "This is a small run: 1 seed",
        "This is a small run: 1 seed",
        "This is a small run: 3 seeds",
    ]


def test_a_cluster_gets_the_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("alpha", tmp_path, monkeypatch)
    wanted: dict[str, Any] = {}

    def keep(cells, root, **settings):  # type: ignore[no-untyped-def]
        wanted.update(settings, cells=cells, root=root)
        return Results([], [])

    monkeypatch.setattr(ray_engine, "run", keep)
    monkeypatch.setattr(ray_engine, "offered", lambda address: "gpu" if address == "there:6379" else "cpu")
    cluster = ("--engine=ray", "--address=there:6379")  # there is no GPU here
    assert run("reproduce", "alpha", "--quick", "--seeds=3", "--cells=mine", *cluster) == 0
    assert (wanted["address"], wanted["device"], wanted["root"]) == ("there:6379", None, Path("mine"))
    assert next(cell.label for cell in wanted["cells"]) == "alpha = 0"
    assert {cell.seeds for cell in wanted["cells"]} == {(0, 1, 2)}
    assert {cell.training.precision for cell in wanted["cells"]} == {"bfloat16"}


def test_what_a_gpu_has_trained_can_be_read_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("alpha", tmp_path, monkeypatch)
    wanted: list[str] = []

    def keep(cells, root, **settings):  # type: ignore[no-untyped-def]
        wanted.extend(cell.training.precision for cell in cells)
        return Results([], [])

    monkeypatch.setattr(engine, "run", keep)
    assert run("reproduce", "alpha", "--quick", "--device=cpu", "--precision=bfloat16") == 0
    assert set(wanted) == {"bfloat16"}
    assert run("reproduce", "bias-variance", "--precision=bfloat16") == 2  # it trains nothing


@pytest.mark.usefixtures("no_pictures")
def test_games_from_data_to_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With pixels in the place of Qbert."""
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    logged = dataclasses.replace(pixel_data(), name="cwbc/qbert/replay-v0", environment=PIXELS)
    store.add(logged.with_clipped_rewards(), "cwbc data make cwbc/qbert/replay-v0 --size 25000")
    small = {"width": 16, "layers": 1, "batch_size": 4, "context": 4}
    variants = tuple(Variant(label, label, small) for label in ("rvs", "rvs+cwbc", "bc"))
    monkeypatch.setitem(ITEMS, "atari", dataclasses.replace(ITEMS["atari"], variants=variants))
    command = ("reproduce", "atari", "--quick", "--steps=20", "--device=cpu")
    assert run(*command, "--methods=rvs+cwbc,bc") == 0
    (out,) = tmp_path.glob("runs/reproduce/atari-quick-part-*")
    rows = list(csv.DictReader((out / "seeds.csv").read_text().splitlines()))
    targets = {
        method: {row["target"] for row in rows if row["method"] == method} for method in ("bc", "rvs+cwbc")
    }
    assert targets["bc"] == {""}
    assert {"0.0", "3.0", "9.0", "12.0", "15.0"} < targets["rvs+cwbc"]  # the best return is 3
    (row,) = csv.DictReader((out / "atari.csv").read_text().splitlines())
    assert row["dataset"] == "qbert-replay"
    # The table of this game is at five times the best.
    beyond = [row for row in rows if (row["method"], row["target"]) == ("rvs+cwbc", "15.0")]
    mean = statistics.fmean(float(each["normalized"]) for each in beyond)
    assert float(row["rvs+cwbc"]) == pytest.approx(mean, rel=1e-5)
    settings = [json.loads(path.read_text()) for path in tmp_path.glob("runs/cells/*/config.json")]
    (regularized,) = [each["method"] for each in settings if each["method"]["name"] == "rvs+cwbc"]
    assert regularized["regularizer"]["noise"] == 500.0
    summary = json.loads((out / "summary.json").read_text())
    verdicts = {claim["text"].rsplit(", ", 1)[-1]: claim["verdict"] for claim in summary["claims"]}
    # What these few rewards decide whatever the policy does: they are fewer points than the best return.
    low = "CWBC achieves returns much higher than the best one in the dataset."
    assert verdicts == dict.fromkeys(verdicts, "inconclusive") | {low: "contradicted"}
    assert any("gamer-normalized" in remark for remark in summary["remarks"])
    assert any("by snapshots of Q-learning" in remark for remark in summary["remarks"])


def test_games_whose_behaviours_do_not_come_with_the_package_are_refused_at_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.setattr(behaviours, "ZOO", tmp_path / "none")
    monkeypatch.chdir(tmp_path)
    for options, games in (((), ("Breakout", "Qbert", "Pong", "Seaquest")), (("--quick",), ("Qbert",))):
        assert run("reproduce", "atari", *options) == 2
        said = capsys.readouterr().err
        assert said.count("do not come with this version of cwbc") == len(games)
        assert all(f"`cwbc behaviours train ALE/{game}-v5`" in said for game in games)
    assert run("reproduce", "atari", "--data=d4rl") == 2
    assert "there is no data of D4RL's for atari; --data must be ours" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_d4rls_own_data_is_taken_once_it_is_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    names = ITEMS["bias-variance"].names("d4rl", quick=False)
    assert "d4rl/walker2d/medium-expert-v2" in names
    for name in names:
        store.add(dataclasses.replace(toy_data(), name=name), "a file of D4RL")
    assert run("reproduce", "bias-variance", "--data=d4rl") == 0
    summary = json.loads(
        (tmp_path / "runs" / "reproduce" / "bias-variance-d4rl" / "summary.json").read_text()
    )
    assert [dataset["name"] for dataset in summary["datasets"]] == list(names)
    assert not any("generated by D4RL's recipes" in remark for remark in summary["remarks"])


def test_a_full_run_does_not_take_the_data_of_a_quick_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CWBC_DATA", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    for name in ITEMS["bias-variance"].names("ours", quick=True):
        store.add(dataclasses.replace(toy_data(), name=name), f"cwbc data make {name} --size 200000")
    assert run("reproduce", "bias-variance", "--quick") == 0
    assert run("reproduce", "bias-variance") == 2
    said = capsys.readouterr().err
    assert "3 datasets are stored in a smaller size than a full run's" in said
    assert "\ncwbc data make cwbc/walker2d/medium-v0 --size full --overwrite\n" in said


def test_places_are_tried_before_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    on_toy("components", tmp_path, monkeypatch)
    monkeypatch.setattr(engine, "run", None)
    (tmp_path / "file").touch()
    for option in ("--out", "--cells"):
        assert run("reproduce", "components", *TINY, f"{option}=file/x") == 2
        assert (
            f"file/x cannot be a directory (Not a directory); give another {option}"
            in capsys.readouterr().err
        )
