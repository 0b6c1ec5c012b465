from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from cwbc.results.paths import MazePath, paths_text, read_paths
from cwbc.system.errors import InputError

PATHS = [
    MazePath(0, 0.5, 1, np.array([[1.0, 2.25], [-3.0, 4.0]])),
    MazePath(0, 1.0, 1, np.array([[1.0, 2.0]])),
    MazePath(7, math.nan, 0, np.array([[1.126, 2.0], [0.0, 0.0], [5.0, 5.0]])),
]


def test_what_is_written_is_read_to_two_decimals(tmp_path: Path) -> None:
    path = tmp_path / "paths.csv"
    assert read_paths(path) == ()
    path.write_text(paths_text(PATHS))
    assert path.read_text().splitlines()[:3] == [
        "seed,target,episode,x,y",
        "0,0.5,1,1.0,2.25",
        "0,0.5,1,-3.0,4.0",
    ]
    for read, written in zip(read_paths(path), PATHS, strict=True):
        np.testing.assert_equal(read[:3], written[:3])
        np.testing.assert_array_equal(read.places, written.places.round(2))


@pytest.mark.parametrize(
    "text",
    [
        "seed,target\n0,1\n",
        "seed,target,episode,x,y\n0,1,0,here,2\n",
        "seed,target,episode,x,y\n0,1,0,nan,2\n",
        "a\n1\n",
    ],
)
def test_a_damaged_file_says_what_it_should_be(text: str, tmp_path: Path) -> None:
    path = tmp_path / "paths.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=r"paths.csv is damaged; expected a row seed,target,episode,x,y"):
        read_paths(path)
