"""A description in a terminal, in a log and as a picture. (pytest wants a name that is there only once.)"""

from __future__ import annotations

import dataclasses
import io
import itertools
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import logged, with_returns
from rich.console import Console

from cwbc.core.regularizers import Conservative
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByReturn
from cwbc.data.statistics import DatasetStatistics
from cwbc.reports.dataset_charts import description_chart
from cwbc.reports.description import _bar, _formatter, show
from cwbc.reports.png import draw, save
from cwbc.system.errors import InputError

RANDOM = np.random.default_rng(0)
LONG = "a/very/long/name/with_$dollars$_and_under_scores/and[brackets]/that/goes/on/and/on/and/on/and/on-v0"


def described(data: Trajectories, **settings: Any) -> DatasetStatistics:
    return DatasetStatistics.of(data, ByReturn(**settings), Conservative())


def wide(dimensions: int) -> Trajectories:
    """Data with many observation dimensions."""
    data = with_returns(*range(30))
    observations = RANDOM.normal(size=(30, dimensions)).astype(np.float32)
    return dataclasses.replace(data, observations=observations)


CASES = {
    "published": with_returns(*RANDOM.normal(900, 300, 150), environment="Hopper-v5", time_limit=1000),
    "sparse": with_returns(*[0] * 90, *[1] * 10),
    "equal": with_returns(*[5] * 30),
    "equal but for rounding": with_returns(*np.linspace(5, 5 + 2e-6, 30)),
    "equal and published": with_returns(*[5] * 30, environment="Hopper-v5"),
    "three": logged([0, 1], [2], [3, 0, 1]),
    "one": with_returns(-3),
    "outlier": with_returns(*RANDOM.uniform(0, 9, 100), 1000),
    "large": with_returns(*RANDOM.normal(-3e7, 1e5, 100), name=LONG),
    "tiny": with_returns(*RANDOM.normal(0, 1e-6, 100)),
    "offset": with_returns(*RANDOM.uniform(1000, 1001, 100)),
    "discrete": dataclasses.replace(
        with_returns(*range(30)), actions=np.arange(30, dtype=np.int32) % 3, action_count=20
    ),
    "many dimensions": wide(17),
}


def printed(description: DatasetStatistics, terminal: bool = False, width: int = 80, **settings: Any) -> str:
    console = Console(
        file=io.StringIO(), width=width, force_terminal=terminal, color_system=None, highlight=False
    )
    show(description, console, **settings)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().replace("\u00a0", " ")


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_a_terminal_of_80_columns_is_enough(data: Trajectories) -> None:
    text = printed(described(data), terminal=True, dataset="file.hdf5")
    assert max(map(len, text.splitlines())) <= (80 if len(data.name) <= 80 else len(data.name))
    assert "…" not in text  # nothing is cut off
    assert "Next: `cwbc " in text


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_a_log_keeps_sentences_whole_and_has_no_codes(data: Trajectories) -> None:
    lines = printed(described(data)).splitlines()
    assert lines[0] == data.name
    assert "\x1b" not in "".join(lines)
    bullets = [line for line in lines if line.startswith("• ")]
    assert lines[-len(bullets) :] == bullets  # the advice comes last, a line each


def test_the_numbers_are_shown() -> None:
    data = with_returns(*[0] * 90, *[1] * 10, environment="Some-v0", time_limit=7)
    lines = printed(described(dataclasses.replace(data, unfinished_steps=12))).splitlines()
    assert "environment  Some-v0; horizon 7" in lines
    assert "episodes     100, 1 step each; 100 steps in all" in lines
    assert "ends         100 terminated, 0 truncated or not marked" in lines
    assert "dropped      the last 12 steps, an episode without an end" in lines
    rows = [line.split() for line in lines]
    assert ["observations[0]", "0", "49.5", "99", "28.87"] in rows
    assert "returns  0 or 1; success rate 10 % (10 of 100 episodes)" in lines
    other = printed(described(with_returns(*[0] * 90, *[2] * 10))).splitlines()
    percentiles = ["returns", "0.0", "0.0", "0.0", "0.0", "0.0", "0.2", "2.0", "2.0", "0.2"]
    assert percentiles in [line.split() for line in other]
    assert ["effective", "sample", "size", "100", "10"] in rows
    (weighting,) = [line for line in lines if line.startswith("+w ")]
    assert "20 bins, lambda 0.01, kappa 0.1 (a tenth of the return range" in weighting
    (regularizer,) = [line for line in lines if line.startswith("+c ")]
    assert (
        "regularizes 10 of 100 episodes, those from return 1 up; its targets are 1 to 2; percentile 95"
        in regularizer
    )


def test_what_is_near_zero_is_not_called_zero() -> None:
    text = printed(described(with_returns(*np.linspace(-45.7, -1, 199), -0.0153)), width=120)
    returns = next(line for line in text.splitlines() if line.startswith("returns"))
    assert "−0.0153" in returns
    assert "1 continuous action\n" in text


def test_the_histogram_has_bars_shares_and_marks() -> None:
    lines = printed(described(with_returns(*[0] * 90, *[1] * 10))).splitlines()
    low, empty, high = (line.split() for line in lines if " to " in line and line.startswith("0."))
    assert low[:4] == ["0.00", "to", "0.05", "90"]
    assert low[-2:] == ["<1", "%"]
    assert empty == ["0.05", "to", "0.95", "–"]  # eighteen bins without an episode in one row
    assert high[-3:] == ["100", "%", "▲"]
    assert low[4].count("█") > high[4].count("█")


def test_many_bins_share_rows() -> None:
    found = described(with_returns(*range(500)), bins=333)
    lines = [line for line in printed(found).splitlines() if " to " in line and line.strip()[0].isdigit()]
    assert len(lines) == 20
    assert sum(int(line.split()[3]) for line in lines) == 500
    assert lines[-1].split()[2] == "499"


def test_many_dimensions_are_cut_short() -> None:
    text = printed(described(wide(17)))
    assert "observations[11]" in text
    assert "observations[12]" not in text
    assert "... and 5 more; --json has all" in text
    assert "--json" not in printed(described(wide(12)))


def test_discrete_actions_are_counted() -> None:
    lines = [line.split() for line in printed(described(CASES["discrete"])).splitlines()]
    assert ["0", "10", "33", "%"] in lines
    assert ["3", "0"] in lines
    assert "20 discrete actions" in printed(described(CASES["discrete"]))


def test_names_are_no_markup() -> None:
    data = dataclasses.replace(
        with_returns(*range(30), name="x[bold]y"), observation_names=("a[red]b", "n" * 50)
    )
    text = printed(described(data))
    assert "x[bold]y" in text
    assert "a[red]b" in text
    assert "n" * 17 + "…" + "n" * 16 + " " in text


def test_bars() -> None:
    assert [_bar(length) for length in (0, 0.001, 0.5, 1, 2.25)] == ["", "▏", "▌", "█", "██▎"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0, 0.05, 1], ["0.00", "0.05", "1.00"]),
        ([-575.2, 4867], ["−575", "4,867"]),
        ([1000.1, 1000.9], ["1,000.1", "1,000.9"]),
        ([-3e7, 1e5], ["−3.00e7", "0.01e7"]),
        ([2e-6, 1e-6], ["2e−6", "1e−6"]),
        ([5, 5], ["5", "5"]),
        ([0, 0], ["0", "0"]),
        ([-0.0001, 100], ["0", "100"]),
    ],
)
def test_numbers_of_a_range(values: list[float], texts: list[str]) -> None:
    assert [_formatter(values)(value) for value in values] == texts


def test_the_picture_shows_what_is_sampled() -> None:
    found = described(CASES["published"])
    draws, targets = draw(description_chart(found)).axes
    before, after = (patch.get_data() for patch in draws.patches if hasattr(patch, "get_data"))
    np.testing.assert_array_equal(before.edges, found.bin_edges)
    np.testing.assert_allclose(before.values, 100 * np.array(found.by_length.probabilities))
    np.testing.assert_allclose(after.values, 100 * np.array(found.by_return.probabilities))
    (box,) = (patch.get_data() for patch in targets.patches if hasattr(patch, "get_data"))
    np.testing.assert_allclose(box.edges, [found.returns.best, found.noise.max_target])
    assert {text.get_text().split("\n")[0] for text in draws.texts} == {"dataset's best", "1× expert"}
    low, high = draws.get_xlim()
    assert low < found.returns.min < 3200 < found.noise.max_target < high


def test_an_expert_is_drawn_only_where_one_is_known() -> None:
    draws, _ = draw(description_chart(described(CASES["outlier"]))).axes
    assert {text.get_text() for text in draws.texts} == {"dataset's best\n1,000"}


@pytest.mark.parametrize("data", CASES.values(), ids=CASES)
def test_nothing_overlaps_or_leaves_the_picture(data: Trajectories) -> None:
    drawn = draw(description_chart(described(data)))
    draws, targets = drawn.axes
    drawn.draw_without_rendering()
    for text in (draws._left_title, targets._left_title, *draws.texts, drawn.legends[0]):  # type: ignore[attr-defined]
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= drawn.bbox.width
    ticks = [tick.label1.get_window_extent() for tick in targets.xaxis.get_major_ticks()]
    assert all(left.x1 < right.x0 for left, right in itertools.pairwise(ticks))


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG\r\n"), ("b.SVG", b"<?xml"), ("new/c.pdf", b"%PDF")]
)
def test_the_suffix_says_the_format(tmp_path: Path, name: str, start: bytes) -> None:
    path = tmp_path / name
    save(description_chart(described(CASES["published"])), path)
    first = path.read_bytes()
    assert first.startswith(start)
    assert [other.name for other in path.parent.iterdir()] == [path.name]
    save(description_chart(described(CASES["published"])), path)
    assert path.read_bytes() == first  # nothing in it tells when it was drawn


def test_a_png_has_the_size_of_the_other_figures(tmp_path: Path) -> None:
    save(description_chart(described(CASES["large"])), tmp_path / "picture.png")
    png = (tmp_path / "picture.png").read_bytes()
    assert struct.unpack(">II", png[16:24]) == (1800, 1280)


@pytest.mark.parametrize("name", ["picture.gif", "picture"])
def test_other_formats_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"is a file in \.png, \.svg, \.pdf; got (\.gif|no suffix)"):
        save(description_chart(described(CASES["three"])), tmp_path / name)
    assert not list(tmp_path.iterdir())
