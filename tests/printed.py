"""The averages that the paper prints below its tables, against which typing errors in them show."""

from __future__ import annotations

from collections.abc import Mapping

AVERAGES: Mapping[str, Mapping[str, float]] = {  # by table and method
    "Table 1": {
        "rvs": 64.6, "rvs+cwbc": 76.5, "dt": 66.7, "dt+cwbc": 71.9,
        "td3bc": 75.3, "cql": 80.6, "iql": 77.0, "tto": 72.6,
    },
    "Table 5": {
        "rvs": 50.6, "rvs+w": 52.7, "rvs+c": 62.3, "rvs+cwbc": 87.1, "dt": 97.9, "cql": 107.2, "bc": 60.9,
    },
    "Table 6": {
        "rvs": 18.3, "rvs+w": 29.2, "rvs+c": 18.2, "rvs+cwbc": 29.5, "dt": 19.8, "cql": 11.4, "bc": 16.7,
    },
    "Table 7": {"rvs": 64.6, "rvs+w": 61.7, "rvs+c": 73.1, "rvs+cwbc": 76.5, "rvs+f": 56.5, "rvs+f+c": 71.8},
    "Table 8": {"filtered-bc": 74.0, "rvs": 64.6, "rvs+cwbc": 76.5},
}  # fmt: skip
FILTERED_BC_BY_QUALITY: Mapping[str, Mapping[str, float]] = {  # Table 8's, by quality and method
    "medium": {"filtered-bc": 58.1, "rvs": 48.7, "rvs+cwbc": 59.6},
    "medium-replay": {"filtered-bc": 59.7, "rvs": 47.1, "rvs+cwbc": 67.0},
    "medium-expert": {"filtered-bc": 104.3, "rvs": 98.1, "rvs+cwbc": 102.9},
}
