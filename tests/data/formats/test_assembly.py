"""From tables in any order and format to episodes, and how odd tables are reported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pytest
from tables import FORMATS, columns, write

from cwbc.core.trajectories import Trajectories
from cwbc.data import load, read
from cwbc.data.formats.columns import ColumnOptions
from cwbc.system.errors import InputError


def loaded(folder: Path, kind: str = "parquet", **changes: Any) -> Trajectories:
    return load(write(folder / f"log.{kind}", columns(**changes)))


def issues(folder: Path, kind: str = "parquet", **changes: Any) -> list[str]:
    recording = read(write(folder / f"log.{kind}", columns(**changes)))
    return [issue.sentence() for issue in recording.issues]


def refused(match: str, folder: Path, kind: str = "parquet", **changes: Any) -> None:
    with pytest.raises(InputError, match=match):
        loaded(folder, kind, **changes)


def shuffled(order: Any, **changes: Any) -> dict[str, Any]:
    return {name: column[order] for name, column in columns(**changes).items()}


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_reads_as_the_same_episodes(tmp_path: Path, kind: str) -> None:
    data = loaded(tmp_path, kind, note=np.arange(6))
    assert data.name == "log"
    assert data.lengths.tolist() == [3, 1, 2]
    assert data.terminated.tolist() == [True, False, True]
    assert data.returns.tolist() == [6, 10, -0.5]
    np.testing.assert_array_equal(data.observations[:, 0], np.array([0.5, 1, 2, 3, 4, 5], np.float32))
    np.testing.assert_array_equal(data.actions[:, 0], np.linspace(-1, 1, 6, dtype=np.float32))
    assert data.observation_names == ("observation_0", "observation_1")
    assert data.action_names == ("action_0", "action_1")
    assert data.content_hash == loaded(tmp_path).content_hash
    assert read(tmp_path / f"log.{kind}").origin.ignored == (("note",) if kind != "parquet" else ())


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_does_not_matter(tmp_path: Path, kind: str, seed: int) -> None:
    order = np.random.default_rng(seed).permutation(6)
    mixed = loaded(tmp_path, kind, **shuffled(order))
    assert mixed.content_hash == loaded(tmp_path, kind).content_hash


def test_interleaved_episodes_without_steps_keep_the_order_of_their_rows(tmp_path: Path) -> None:
    order = np.array([0, 3, 4, 1, 5, 2])
    mixed = loaded(tmp_path, **shuffled(order) | {"step": None})
    assert mixed.content_hash == loaded(tmp_path).content_hash


@pytest.mark.parametrize(
    "names",
    [
        np.array(["b", "b", "b", "d", "x", "x"]),
        np.array([-7, -7, -7, 0, 3, 3]),
        np.array([5, 5, 5, 2**40, 2**63 - 1, 2**63 - 1]),
    ],
    ids=["text", "negative", "large"],
)
def test_episodes_may_be_named_in_any_way(tmp_path: Path, names: Any) -> None:
    assert loaded(tmp_path, episode=names).content_hash == loaded(tmp_path).content_hash
    mixed = loaded(tmp_path, **shuffled(np.array([5, 1, 3, 2, 4, 0]), episode=names))
    assert mixed.content_hash == loaded(tmp_path).content_hash
    place = r"is not finite: nan at row 5 \(episode (x|3|9223372036854775807)\)"
    refused(place, tmp_path, episode=names, reward=np.array([0, 0, 0, 0, 0, np.nan]))


def test_episodes_may_be_told_by_their_last_steps_alone(tmp_path: Path) -> None:
    data = loaded(tmp_path, episode=None, step=None)
    assert data.content_hash == loaded(tmp_path).content_hash
    done = np.array([0, 0, 1, 1, 0, 1])
    data = loaded(tmp_path, episode=None, step=None, terminated=None, truncated=None, done=done)
    assert data.lengths.tolist() == [3, 1, 2]
    assert data.terminated.tolist() == [True, True, True]
    data = loaded(tmp_path, episode=None, step=None, terminated=None, done=done)
    assert data.terminated.tolist() == [True, False, True]


def test_a_trailing_episode_without_an_end_is_counted(tmp_path: Path) -> None:
    done = np.array([0, 0, 1, 0, 0, 0])
    data = loaded(tmp_path, episode=None, step=None, terminated=None, truncated=None, done=done)
    assert (data.lengths.tolist(), data.unfinished_steps) == ([3], 3)


def test_named_episodes_need_no_marks(tmp_path: Path) -> None:
    data = loaded(tmp_path, terminated=None, truncated=None)
    assert data.lengths.tolist() == [3, 1, 2]
    assert data.terminated.tolist() == [False, False, False]


def test_what_does_not_tell_the_episodes_apart(tmp_path: Path) -> None:
    refused("no column separates the episodes", tmp_path, episode=None, terminated=None, truncated=None)
    alone = r"terminated alone does not mark the end of every episode; .*--truncated.*--done terminated"
    refused(alone, tmp_path, episode=None, truncated=None)
    path = write(tmp_path / "log.csv", columns(episode=None, truncated=None, step=None))
    marked = read(path, options=ColumnOptions(done="terminated")).data
    assert marked.lengths.tolist() == [3, 3]


def test_steps_that_repeat_are_refused(tmp_path: Path) -> None:
    text = r"step repeats: 1 \(as at row 1\) at row 2 \(episode 0\); each step is in one row: remove"
    refused(text, tmp_path, step=np.array([0, 1, 1, 0, 0, 1]))
    refused(
        r"step repeats: 1 \(as at line 3\) at line 4 \(episode 0",
        tmp_path,
        "csv",
        step=np.array([0, 1, 1, 0, 0, 1]),
    )


def test_gaps_in_steps_are_a_warning(tmp_path: Path) -> None:
    assert issues(tmp_path, step=np.array([0, 1, 4, 7, 0, 2])) == [
        "step has gaps: 4 after 1 at row 2 (episode 0) and 1 more; "
        "the rewards of missing steps are missing from the returns",
        "step starts neither at 0 nor at 1: 7 at row 3 (episode 1); are the first steps missing?",
    ]
    assert issues(tmp_path, step=np.array([1, 2, 3, 1, 1, 2])) == []


def test_a_time_orders_steps_but_has_no_gaps(tmp_path: Path) -> None:
    times = np.array([0, 5, 60, 3, 70, 80]).astype("datetime64[s]")
    assert issues(tmp_path, step=times) == []
    assert issues(tmp_path, step=np.array([0.25, 0.5, 9.75, 1, 1, 1.5])) == []
    mixed = loaded(tmp_path, **shuffled(np.array([2, 0, 1, 5, 3, 4]), step=times))
    assert mixed.content_hash == loaded(tmp_path).content_hash
    refused("step repeats", tmp_path, step=np.array([0.25, 0.25, 9.75, 1, 1, 1.5]))


def test_steps_are_checked_without_a_column_of_episodes_too(tmp_path: Path) -> None:
    shown = issues(tmp_path, episode=None, step=np.array([0, 2, 1, 0, 0, 1]))
    assert shown == [
        "step goes back: 1 after 2 at row 2 (episode 0); the rows are out of order: a column that "
        "names the episode of each would order them",
        "step has gaps: 2 after 0 at row 1 (episode 0); the rewards of missing steps are missing "
        "from the returns",
    ]
    refused("step goes back", tmp_path, episode=None, step=np.array([0, 2, 1, 0, 0, 1]))
    refused("step repeats", tmp_path, episode=None, step=np.array([0, 1, 1, 0, 0, 1]))


def test_a_name_that_is_used_twice_is_a_warning(tmp_path: Path) -> None:
    assert issues(tmp_path, step=None, episode=np.array([0, 0, 1, 1, 0, 0]), terminated=None) == [
        "episode continues after rows of others: row 4 (episode 0, step 2); they are read in this order: "
        "does --step COLUMN order them, or is a name used twice?",
    ]


def test_whole_numbers_written_as_real_ones_name_episodes(tmp_path: Path) -> None:
    real = loaded(tmp_path, episode=np.array([0.0, 0, 0, 1, 2, 2]))
    assert real.content_hash == loaded(tmp_path).content_hash
    text = "episode is not an integer: 0.5 at row 0; expected an integer or a name per row"
    refused(text, tmp_path, episode=np.array([0.5, 0, 0, 1, 2, 2]))


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_a_time_that_is_missing(tmp_path: Path, kind: str) -> None:
    times = np.array([0, "NaT", 60, 3, 70, 80], "datetime64[s]")
    refused("step has no value: row 1; every step has a number", tmp_path, kind, step=times)


def test_an_end_in_the_middle_of_an_episode_is_a_warning(tmp_path: Path) -> None:
    assert issues(tmp_path, terminated=np.array([0, 1, 1, 0, 0, 1], bool)) == [
        "terminated is true before the last step of an episode: row 1 (episode 0); "
        "do several episodes have one name?"
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize(
    ("name", "values", "text"),
    [
        (
            "reward",
            [1, 2, None, 4, 5, 6],
            r"reward is not finite: nan at (row|line) (2|4) \(episode 0\)",
        ),
        ("observation_1", [1.5, None, 2, 4, 5, 6], r"observation_1 is not finite: nan at (row 1|line 3) "),
        ("episode", [0, 0, None, 1, 2, 2], r"episode has no value: (row 2|line 4); every row belongs to an"),
        ("episode", ["a", "a", None, "b", "c", "c"], r"episode has no value: (row 2|line 4)"),
        ("step", [0, 1, None, 0, 0, 1], r"step has no value: (row 2|line 4); every step has a number"),
        ("truncated", [None, 0, 0, 1, 0, 0], r"truncated is neither true nor false: nan at (row 0|line 2);"),
        ("terminated", [True, None, True, False, False, True], r"terminated is neither true nor false"),
        ("terminated", [0, 0, 2, 0, 0, 1], r"terminated is neither true nor false: 2 at (row 2|line 4)"),
    ],
)
def test_values_that_are_missing_or_wrong(
    tmp_path: Path, kind: str, name: str, values: list[Any], text: str
) -> None:
    refused(text, tmp_path, kind, **{name: pyarrow.array(values)})


def test_ends_may_be_words(tmp_path: Path) -> None:
    words = ["False", " no", "true ", "FALSE", "0", "Yes"]
    data = loaded(tmp_path, "parquet", terminated=words)
    assert data.content_hash == loaded(tmp_path).content_hash
    text = "terminated is neither true nor false: perhaps at row 5; expected true or false"
    refused(text, tmp_path, "parquet", terminated=[*words[:5], "perhaps"])


def test_choices_may_be_written_as_real_numbers(tmp_path: Path) -> None:
    one: dict[str, Any] = {"action_0": None, "action_1": None}
    discrete = ColumnOptions(action_kind="discrete")
    path = write(tmp_path / "log.parquet", columns(**one, action=[0.0, 1, 0, 2, 1, 0]))
    assert not load(path).discrete
    assert read(path, options=discrete).data.actions.tolist() == [0, 1, 0, 2, 1, 0]
    path = write(tmp_path / "log.parquet", columns(**one, action=[0.0, 1, 0.5, 2, 1, 0]))
    with pytest.raises(InputError, match=r"action is not an integer: 0.5 at row 2; --action-kind continuous"):
        read(path, options=discrete)


def test_discrete_actions_that_are_missing_or_too_large(tmp_path: Path) -> None:
    one: dict[str, Any] = {"action_0": None, "action_1": None}
    assert loaded(tmp_path, **one, action=np.array([0, 1, 0, 2, 1, 0])).action_size == 3
    missing = pyarrow.array([0, 1, None, 2, 1, 0])
    refused("action has no value: row 2; every step has an action", tmp_path, **one, action=missing)
    # 2^32 must not come out as 0.
    refused("action is outside the discrete range", tmp_path, **one, action=np.array([0, 1, 2**32, 2, 1, 0]))


def test_a_table_without_rows(tmp_path: Path) -> None:
    for kind in FORMATS:
        empty = {name: column[:0] for name, column in columns().items()}
        with pytest.raises(InputError, match="there are no rows; give one row per step"):
            load(write(tmp_path / f"log.{kind}", empty))


@pytest.mark.parametrize(("kind", "reports"), [("parquet", 9), ("hdf5", 3), ("npz", 3)])
def test_reading_tells_its_progress(tmp_path: Path, kind: str, reports: int) -> None:
    rows = 150_000
    values = {name: np.resize(column, rows) for name, column in columns(step=None, episode=None).items()}
    shown: list[tuple[int, int | None]] = []
    read(write(tmp_path / f"log.{kind}", values), progress=lambda done, total: shown.append((done, total)))
    assert shown[-1] == (5 * rows, 5 * rows)
    assert [done for done, _ in shown] == sorted(done for done, _ in shown)
    assert len(shown) == reports


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("31.12.2024 10:00", True),
        ("12/31/2024", True),
        ("5-31-24", True),
        ("noon", False),
        ("10 o.clock", False),
    ],
)
def test_dates_that_are_not_read_get_a_hint(tmp_path: Path, written: str, hint: bool) -> None:
    logs = write(tmp_path / "logs.csv", columns(step=None, time=[written] * 6))
    shown = [issue.sentence() for issue in read(logs).warnings()]
    text = "time is not used: it holds dates in a form that is not read: "
    assert any(sentence.startswith(text) for sentence in shown) == hint
    with pytest.raises(InputError, match="time holds text") as refused:
        read(logs, options=ColumnOptions(step="time"))
    assert ("dates and times are read as 2024-05-31" in str(refused.value)) == hint


def test_dates_in_iso_form_order_the_steps(tmp_path: Path) -> None:
    times = [f"2024-12-31T10:00:0{second}" for second in (2, 0, 1, 0, 1, 0)]
    data = read(write(tmp_path / "logs.csv", columns(step=None, time=times))).data
    assert data.rewards.tolist() == [2, 3, 1, 10, 0.5, -1]
