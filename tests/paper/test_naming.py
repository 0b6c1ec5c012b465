from __future__ import annotations

import pytest

from cwbc.paper.naming import Datasets, named, quality
from cwbc.paper.published import DATASETS
from cwbc.results.dataset_names import short_name


@pytest.mark.parametrize("datasets", ["ours", "d4rl"])
def test_the_paper_s_datasets_in_the_store(datasets: Datasets) -> None:
    assert short_name(named("walker2d-medium-replay", datasets)) == "walker2d-medium-replay"


def test_the_quality_is_known_for_the_paper_s_datasets_alone() -> None:
    assert quality("walker2d-medium-replay") == "medium-replay"
    assert quality("walker2d-random") is None
    assert quality("arm") is None


def test_names_go_both_ways() -> None:
    assert named("walker2d-medium-replay", "d4rl") == "d4rl/walker2d/medium-replay-v2"
    for dataset in DATASETS:
        assert short_name(named(dataset, "ours")) == short_name(named(dataset, "d4rl")) == dataset
    assert short_name("my/logs.hdf5") == "logs"
