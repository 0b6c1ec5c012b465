"""Parquet and CSV as people write them."""

from __future__ import annotations

import gzip
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from tables import columns, write

from cwbc.data import load
from cwbc.system.errors import InputError


def with_lists(observation: Any) -> dict[str, Any]:
    return columns(observation_0=None, observation_1=None, observation=observation)


PAIRS = [[0.5, -1], [1, -2.5], [2, -3], [3, -4], [4, -5], [5, -6]]


@pytest.mark.parametrize(
    "kind",
    [
        pyarrow.list_(pyarrow.float64()),
        pyarrow.large_list(pyarrow.float32()),
        pyarrow.list_(pyarrow.float64(), 2),
    ],
    ids=str,
)
def test_a_column_of_lists(tmp_path: Path, kind: Any) -> None:
    data = load(write(tmp_path / "log.parquet", with_lists(pyarrow.array(PAIRS, kind))))
    assert data.content_hash == load(write(tmp_path / "plain.parquet", columns())).content_hash
    assert (data.observation_names, data.action_names) == ((), ("action_0", "action_1"))


def test_lists_written_as_text(tmp_path: Path) -> None:
    for written in (str, lambda pair: f"[{pair[0]}  {pair[1]}]", lambda pair: str(tuple(pair))):
        path = write(tmp_path / "log.csv", with_lists([written(pair) for pair in PAIRS]))
        assert load(path).content_hash == load(write(tmp_path / "plain.csv", columns())).content_hash


@pytest.mark.parametrize(
    ("pairs", "text"),
    [
        ([[1.0, 2], [1], [1, 2], [1, 2, 3], [1, 2], [1, 2]], r"1 values at row 1, 3 values at row 3;"),
        ([[1.0, 2], None, [1, 2], [1, 2], [1, 2], [1, 2]], r"no list at row 1;"),
    ],
)
def test_lists_of_different_lengths(tmp_path: Path, pairs: Any, text: str) -> None:
    path = write(tmp_path / "log.parquet", with_lists(pairs))
    first = "observation holds lists of different lengths, 2 values in the first row: "
    with pytest.raises(InputError) as caught:
        load(path)
    (finding,) = caught.value.issues  # type: ignore[attr-defined]
    assert finding.sentence(locations=2).startswith(first + text)


def test_a_list_with_a_hole_is_told_by_its_place(tmp_path: Path) -> None:
    path = write(tmp_path / "log.parquet", with_lists([[1.0, 2], [1, None], *PAIRS[2:]]))
    with pytest.raises(InputError, match=r"observations\[1\] is not finite: nan at row 1 \(episode 0\)"):
        load(path)


def test_text_that_is_no_list(tmp_path: Path) -> None:
    path = write(tmp_path / "log.csv", with_lists(["[1, 2]", "[1, x]", *map(str, PAIRS[2:])]))
    with pytest.raises(InputError, match=r"observation holds lists of different lengths.*no list at line 3"):
        load(path)


@pytest.mark.parametrize("sign", [";", "\t", ","])
def test_other_signs_between_columns(tmp_path: Path, sign: str) -> None:
    plain = write(tmp_path / "log.csv", columns())
    other = tmp_path / "other.tsv"
    other.write_text(plain.read_text().replace(",", sign))
    assert load(other).content_hash == load(plain).content_hash


def test_windows_lines_and_compressed_files(tmp_path: Path) -> None:
    plain = write(tmp_path / "log.csv", columns())
    text = plain.read_text()
    (tmp_path / "windows.csv").write_bytes(("\ufeff" + text.replace("\n", "\r\n")).encode())
    (tmp_path / "packed.csv.gz").write_bytes(gzip.compress(text.encode()))
    assert load(tmp_path / "windows.csv").content_hash == load(plain).content_hash
    packed = load(tmp_path / "packed.csv.gz")
    assert (packed.name, packed.content_hash) == ("packed", load(plain).content_hash)


def test_lines_are_counted_only_where_none_is_skipped(tmp_path: Path) -> None:
    path = write(tmp_path / "log.v2.csv", columns(reward=np.array([0, 0, np.nan, 0, 0, 0])))
    with pytest.raises(InputError, match="reward is not finite: nan at line 4"):
        load(path)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:2], "", *lines[2:], "", ""]))
    with pytest.raises(InputError, match="reward is not finite: nan at row 2"):
        load(path)
    path.write_text("\n".join([*lines[:2], *lines[4:], "", ""]))
    assert load(path).name == "log.v2"


def test_whole_numbers_that_become_real_far_below(tmp_path: Path) -> None:
    rows = 400_000  # beyond what a reader looks at to guess a type
    reward = np.zeros(rows)
    reward[-1] = 0.5
    lines = "observation,action,reward,done\n" + "".join(
        f"{i % 7},0,{'0.5' if i == rows - 1 else 0},{int(i % 10 == 9)}\n" for i in range(rows)
    )
    (tmp_path / "log.csv").write_text(lines)
    data = load(tmp_path / "log.csv")
    assert data.discrete
    assert (data.rewards.max(), data.steps) == (0.5, rows)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "observation,action,reward,done\n1,0,1,0\n1,0,1\n1,0,1,0,9\n",
            "rows do not have the 4 values of the header: 3 values at line 3 and 1 more; give each row",
        ),
        ("0,0,0.5,0\n1,0,1,1\n", "same name: 0, 0, 0.5, 0: numbers, so the header seems to be missing"),
        (
            "observation,action,reward,reward\n1,0,1,1\n",
            "two columns have the same name: observation, action,",
        ),
        (
            "observation,action,reward,done\n1,0,much,1\n",
            "reward holds text: 'much' at line 2; expected",
        ),
        ("observation,action,reward,done\n", "there are no rows"),
        ("1,2,3,4\n1,0,1,1\n", "it has 1, 2, 3, 4: numbers, so the header seems to be missing"),
        ("observation,action,reward,done\n\xff\xfe\x00,0,1,1\n", "observation holds|cannot be read as CSV"),
    ],
)
def test_texts_that_are_no_logs(tmp_path: Path, text: str, error: str) -> None:
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=error):
        load(path)


def test_a_folder_of_parquet_files(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    halves = [
        {name: column[rows] for name, column in columns().items()} for rows in (slice(4, 6), slice(0, 4))
    ]
    for number, half in enumerate(halves):
        write(folder / f"part-{number}.parquet", half)
    data = load(folder)
    assert data.name == "mine"
    assert data.content_hash == load(write(tmp_path / "log.parquet", columns())).content_hash
    write(folder / "part-2.parquet", columns(reward=None, payment=np.zeros(6)))
    with pytest.raises(InputError, match=r"part-2.parquet has other columns than .*part-0.parquet; all of"):
        load(folder)


def test_other_types_of_numbers(tmp_path: Path) -> None:
    from decimal import Decimal

    plain = load(write(tmp_path / "log.parquet", columns()))
    names = pyarrow.array(["b", "b", "b", "d", "x", "x"]).dictionary_encode()
    rewards = pyarrow.array([Decimal(text) for text in ("1", "2", "3", "10", "-1", "0.5")])
    steps = pyarrow.array([0, 1, 2, 0, 0, 1], pyarrow.uint8())
    small = pyarrow.array(columns()["observation_0"], pyarrow.float32())
    other = write(
        tmp_path / "log.parquet",
        columns(episode=names, reward=rewards, step=steps, observation_0=small),
    )
    assert load(other).content_hash == plain.content_hash


def test_without_pyarrow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for kind in ("csv", "parquet"):
        path = write(tmp_path / f"log.{kind}", columns())
        monkeypatch.setitem(sys.modules, f"pyarrow.{kind}", None)
        with pytest.raises(InputError, match=r"files need more packages: pip install 'cwbc\[tables\]'"):
            load(path)


def test_parts_with_odd_numbers_in_their_names(tmp_path: Path) -> None:
    for name in ("\u00b22", "\u0663", "1", "x"):
        write(tmp_path / f"{name}.parquet", columns(episode=None, step=None))
    assert load(tmp_path).episodes == 12


@pytest.mark.parametrize("name", ["_a", ".a"])
def test_a_folder_without_parts_that_are_data(tmp_path: Path, name: str) -> None:
    write(tmp_path / f"{name}.parquet", columns())
    with pytest.raises(InputError, match=r"has no Parquet files except _name or \.name"):
        load(tmp_path)
