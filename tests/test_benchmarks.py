"""Benchmarks as values: promises, stored reports, and what counts as worse."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

from benchmarks import __main__ as command
from benchmarks import rows
from benchmarks.comparison import check_device, compare, worsened
from benchmarks.data import cpu_importing
from benchmarks.inputs import logged
from benchmarks.rows import Report, Row
from benchmarks.tables import report_table
from benchmarks.training import operations
from cwbc.core.cloning import Cloning, CloningBatch
from cwbc.core.layers import Parameters
from cwbc.core.learners import Columns
from cwbc.core.methods import sized
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import Choice, gathered, sample, to_device
from cwbc.system.errors import InputError

RATE = Row("step", 80.0, "GFLOP/s", 100.0, "product", promise=0.9, more_is_better=True)
COST = Row("rvs+c", 3.0, "ms", 2.0, "plain", promise=1.6)
WAIT = Row("start", 0.3, "s", 0.02, "python", promise=0.5, promise_on="measured")
BARE = Row("compiling", 4.0, "s")
CURVE = tuple(Row("load", 0.01 * n, "s", 0.01 * n, "in proportion", steps=100 * n) for n in (1, 10))
REPORT = Report("cpu", "some processor", 2, {"jax": "0.10"}, (RATE, COST, WAIT, BARE, *CURVE))


def with_rows(*changed: Row) -> Report:
    return dataclasses.replace(REPORT, rows=changed)


def worse_names(stored: Report, now: Report, tolerance: float = 1.25) -> list[str]:
    return [change.now.label for change in worsened(compare(stored, now), tolerance)]


def test_a_promise_is_about_the_ratio_or_the_number_itself() -> None:
    assert [row.kept for row in (RATE, COST, WAIT, BARE)] == [False, True, True, None]
    assert [row.ratio for row in (RATE, COST, BARE)] == [0.8, 1.5, None]
    assert dataclasses.replace(RATE, measured=90.0).kept
    assert not dataclasses.replace(WAIT, measured=0.6).kept


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows.write(tmp_path / "new" / "cpu.json", REPORT)
    assert rows.read(tmp_path / "new" / "cpu.json") == REPORT
    stored = json.loads((tmp_path / "new" / "cpu.json").read_text())["rows"][0]
    assert (stored["ratio"], stored["kept"]) == (0.8, False)


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": 0}', '{"format": 1, "rows": [{}]}'])
def test_a_file_that_is_no_report_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cpu.json"
    with pytest.raises(InputError, match="no such file"):
        rows.read(path)
    path.write_text(text)
    with pytest.raises(InputError, match="is no report of benchmarks"):
        rows.read(path)
    with pytest.raises(InputError, match="expected a file"):
        rows.read(tmp_path)


def test_the_speed_of_the_machine_does_not_matter() -> None:
    slower = [
        dataclasses.replace(row, measured=7 * row.measured, limit=row.limit and 7 * row.limit)
        for row in REPORT.rows
    ]
    assert worse_names(REPORT, with_rows(*slower)) == []


def test_worse_is_a_lower_rate_or_a_higher_cost() -> None:
    less, more = dataclasses.replace(RATE, measured=60.0), dataclasses.replace(COST, measured=6.0)
    assert worse_names(REPORT, with_rows(less, more)) == ["rvs+c", "step"]  # 2 times as bad, then 1.33
    assert worse_names(REPORT, with_rows(less, more), tolerance=1.5) == ["rvs+c"]
    better = dataclasses.replace(RATE, measured=99.0), dataclasses.replace(COST, measured=2.0)
    assert worse_names(REPORT, with_rows(*better)) == []


def test_only_rows_of_both_runs_with_limits_are_compared() -> None:
    longer = dataclasses.replace(BARE, measured=400.0)
    other = dataclasses.replace(COST, name="another", measured=40.0)
    assert worse_names(REPORT, with_rows(longer, other)) == []


def test_points_of_a_curve_have_different_labels() -> None:
    last = dataclasses.replace(CURVE[1], measured=1.0)
    assert worse_names(REPORT, with_rows(CURVE[0], last)) == ["load with 1,000 steps of data"]


def test_what_takes_no_time_is_not_compared() -> None:
    first = dataclasses.replace(CURVE[0], measured=0.03)
    assert worse_names(REPORT, with_rows(first)) == []


def test_devices_of_two_kinds_are_not_compared() -> None:
    with pytest.raises(InputError, match="only runs on one kind of device"):
        check_device(dataclasses.replace(REPORT, device="NVIDIA H200"), "cpu")


def test_the_table_shows_every_row() -> None:
    lines = [" ".join(line.split()) for line in report_table(REPORT).splitlines()]
    assert lines[2] == "step 80 GFLOP/s 100 GFLOP/s product 80% at least 90% NO"
    assert lines[3] == "rvs+c 3 ms 2 ms plain 1.50x at most 1.60x yes"
    assert lines[4] == "start 0.3 s 0.02 s python 15.00x at most 0.5 s yes"
    assert lines[5] == "compiling 4 s"


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measured = list(REPORT.rows)

    def subject() -> Iterator[Row]:
        yield from measured

    monkeypatch.setattr(command, "CPU", ("all",))
    monkeypatch.setattr(command, "_cpu_subjects", lambda: {"all": subject})
    stored, now = tmp_path / "stored.json", tmp_path / "now.json"
    assert command.main(["--json", str(stored)]) == 0
    assert stored.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert command.main(["--json", str(now), "--against", str(stored)]) == 0
    assert "4 ratios compared" in capsys.readouterr().out
    measured[1] = dataclasses.replace(COST, measured=30.0)
    assert command.main(["--json", str(now), "--against", str(stored)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].split() == ["rvs+c", "1.50x", "15.00x", "10.00"]
    assert command.main(["--json", str(now), "--against", str(stored), "--tolerance", "11"]) == 0
    for wrong in (["--tolerance", "nan"], ["--only", "nothing"], ["--against", str(tmp_path)]):
        assert command.main([*wrong, "--json", str(now)]) == 2
    assert command.main(["--only", "al"]) == 2
    assert "did you mean 'all'" in capsys.readouterr().err


def test_every_subject_has_a_name() -> None:
    assert tuple(command._cpu_subjects()) == command.CPU


def test_an_import_is_measured_by_the_command_line_in_a_process_of_its_own() -> None:
    took, memory = cpu_importing(rows=3000)
    assert took.measured > 0
    assert memory.measured > 1  # MB


@pytest.mark.parametrize("name", ["rvs+c", "dt"])
def test_operations_are_those_that_the_compiler_counts(name: str) -> None:
    data = logged(2000)
    method, training = sized(name, "small")
    spec = PolicySpec.fit(method, data, training)
    learner, source = spec.method.learner, to_device(data, spec.method)
    assert isinstance(learner, Cloning)
    parameters = jax.eval_shape(lambda key: learner.initial_parameters(spec, key), jax.random.key(0))

    def batch() -> CloningBatch:
        def gather(choice: Choice) -> Columns:
            return gathered(source.columns, choice)

        sampled = sample(spec, training, source.episodes, jnp.uint32(0), jnp.int32(0), gather)
        return learner.batch(*sampled, source.numbers)

    def loss(parameters: Parameters, batch: CloningBatch) -> jax.Array:
        return learner.losses(spec, parameters | learner.prepared(parameters), batch)[0]

    shapes = jax.eval_shape(batch)
    counted: Any = jax.jit(jax.grad(loss)).lower(parameters, shapes).cost_analysis()
    windows = len(shapes.weights)
    assert 1 < counted["flops"] / operations(spec, windows) < 1.05  # all that is no product adds a little
