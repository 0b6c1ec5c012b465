"""`cwbc evaluate --actions`: results of sampled and of greedy actions are different results."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

import pytest
from command_line import TINY, run
from pixels import PIXELS, pixel_data
from toys import toy_data

import cwbc
from cwbc.data.formats import hdf5


def test_discrete_actions_are_sampled_or_greedy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hdf5.write(tmp_path / "toy.hdf5", toy_data(discrete=True))
    out, other = tmp_path / "bc", tmp_path / "other"
    options = [option for option in TINY if "episodes" not in option]
    assert run("train", tmp_path / "toy.hdf5", "bc", *options, "--out", out) == 0

    def evaluated(*options: str) -> tuple[int, str]:
        status = run("evaluate", out, "--episodes=3", "--device=cpu", *options)
        return status, capsys.readouterr().err

    def sampled() -> bool:
        found: bool = json.loads((out / "summary.json").read_text())["dataset"].get("sampled_actions", False)
        return found

    assert evaluated()[0] == 0
    assert not sampled()
    greedy = (out / "results.csv").read_text()
    shutil.copytree(out, other)
    status, said = evaluated("--actions=sampled")
    assert status == 2
    assert "different settings: actions was 'greedy', now 'sampled'; --overwrite replaces it" in said
    assert evaluated("--actions=sampled", "--overwrite")[0] == 0
    assert sampled()
    assert (out / "results.csv").read_text() != greedy
    assert "bc: already evaluated" in evaluated()[1]
    assert "bc: already evaluated" in evaluated("--actions=sampled")[1]
    assert run("report", out, other, "--out", tmp_path / "both") == 2
    assert "with sampled actions" in capsys.readouterr().err
    sweeps = [cwbc.evaluate(out, episodes=3, actions=choice) for choice in ("sampled", "greedy")]
    assert [float(sweep.returns.sum()) for sweep in sweeps] == [
        sum(float(line.split(",")[4]) for line in (run / "results.csv").read_text().splitlines()[1:])
        for run in (out, other)
    ]


@pytest.mark.usefixtures("no_pictures")
def test_a_method_without_a_distribution_stands_beside_sampled_ones(tmp_path: Path) -> None:
    """On images, where actions are sampled unless there is nothing to sample from."""
    hdf5.write(tmp_path / "pixels.hdf5", dataclasses.replace(pixel_data(), environment=PIXELS))
    options = [*TINY, "--context=4", "--frame-stack=2", "--targets=0,3"]
    assert (
        run("compare", tmp_path / "pixels.hdf5", "discrete-cql", "bc", *options, "--out", tmp_path / "out")
        == 0
    )
    flags = {}
    for method in ("discrete-cql", "bc"):
        summary = json.loads((tmp_path / "out" / method / "summary.json").read_text())
        flags[method] = summary["dataset"].get("sampled_actions", False)
    assert flags == {"discrete-cql": False, "bc": True}
    for names in (("bc", "discrete-cql"), ("discrete-cql", "bc"), ("discrete-cql",)):
        runs = [tmp_path / "out" / name for name in names]
        assert run("report", *runs, "--out", tmp_path / "again") == 0
    greedy = tmp_path / "greedy"
    shutil.copytree(tmp_path / "out" / "bc", greedy)
    assert run("evaluate", greedy, "--actions=greedy", "--overwrite", "--episodes=2", "--device=cpu") == 0
    assert run("report", greedy, tmp_path / "out", "--out", tmp_path / "mixed") == 2
