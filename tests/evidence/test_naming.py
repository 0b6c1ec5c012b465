from __future__ import annotations

import pytest

from cwbc.evidence.naming import Datasets, distinct_names, file_names, named, quality, short_name


@pytest.mark.parametrize(
    ("names", "short"),
    [
        (["cwbc/hopper/medium-v0", "logs/arm.csv"], ["hopper-medium", "arm"]),
        (["cwbc/a/medium-v0", "d4rl/a/medium-v2"], ["cwbc/a/medium-v0", "d4rl/a/medium-v2"]),
        (["a/arm.csv", "a/arm.npz"], ["arm.csv", "arm.npz"]),
        (["a/arm.csv", "b/arm.csv", "leg.csv"], ["a/arm.csv", "b/arm.csv", "leg"]),
        (["x/a/arm.csv", "y/a/arm.csv"], ["x/a/arm.csv", "y/a/arm.csv"]),
    ],
)
def test_datasets_are_told_apart_by_no_more_than_it_takes(names: list[str], short: list[str]) -> None:
    assert distinct_names(names) == dict(zip(names, short, strict=True))


def test_files_have_plain_names_and_no_two_the_same() -> None:
    names = ["alpha = 1", "Alpha = 1", "a/b", "..", "x" * 300]
    found = file_names(names)
    assert [found[name] for name in names] == ["alpha-1", "Alpha-1-2", "a-b", "dataset", "x" * 60]


@pytest.mark.parametrize("datasets", ["ours", "d4rl"])
def test_the_paper_s_datasets_in_the_store(datasets: Datasets) -> None:
    assert short_name(named("walker2d-medium-replay", datasets)) == "walker2d-medium-replay"


def test_the_quality_is_known_for_the_paper_s_datasets_alone() -> None:
    assert quality("walker2d-medium-replay") == "medium-replay"
    assert quality("walker2d-random") is None
    assert quality("arm") is None
