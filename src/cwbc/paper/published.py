"""The paper's datasets, and its tables as printed: normalized scores, mean and deviation.

The target of its own methods is the expert return, but for games; it quotes the others from their papers.
Beside them are CORL's scores at the last checkpoint, where the paper has none of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from cwbc.behaviours import ANT_MAZES as _KINDS
from cwbc.behaviours import MAZES as _SIZES
from cwbc.reports.showing import PublishedTable, Score
from cwbc.system.errors import InputError

ROBOTS = ("walker2d", "hopper", "halfcheetah")
QUALITIES = ("medium", "medium-replay", "medium-expert")
DATASETS = tuple(f"{robot}-{kind}" for robot in ROBOTS for kind in QUALITIES)  # in the tables' order
WALKERS = ("walker2d-medium-replay", "walker2d-medium", "walker2d-medium-expert")  # the figures' order
GAMES = tuple(f"{game}-replay" for game in ("breakout", "qbert", "pong", "seaquest"))  # of Table 5
MEDIUMS, REPLAYS, EXPERTS = (tuple(f"{robot}-{kind}" for robot in ROBOTS) for kind in QUALITIES)
ANT_MAZES = tuple(f"antmaze-{kind}" for kind in _KINDS)
POINT_MAZES = tuple(f"pointmaze-{size}" for size in _SIZES)  # not the paper's: for quick runs

Datasets = Literal["ours", "d4rl"]


def named(dataset: str, datasets: Datasets) -> str:
    """The name in the store of a dataset such as walker2d-medium or pong-replay."""
    task, kind = dataset.split("-", 1)
    if dataset in POINT_MAZES and datasets == "d4rl":
        other = f"--datasets {ANT_MAZES[0]}"
        raise InputError(f"{dataset} is a generated dataset, not one of D4RL's; give {other}, or another")
    return f"cwbc/{task}/{kind}-v0" if datasets == "ours" else f"d4rl/{task}/{kind}-v2"


def quality(dataset: str) -> str:
    """The kind of a dataset, such as medium-replay."""
    return dataset.partition("-")[2]


def _table(name: str, rows: str, wins: Mapping[str, int] | None = None) -> PublishedTable:
    """Read rows as the paper prints them: a dataset, then mean±deviation or a mean alone for each method."""
    head, *lines = [line.split() for line in rows.strip().splitlines()]
    scores: dict[str, dict[str, Score]] = {method: {} for method in head}
    for dataset, *cells in lines:
        for method, cell in zip(head, cells, strict=True):
            scores[method][dataset] = Score(*map(float, cell.split("±")))
    return PublishedTable(name, scores, wins or {})


MAIN = _table(
    "Table 1",
    """
                              rvs        rvs+cwbc   dt         dt+cwbc    td3bc  cql   iql   tto
    walker2d-medium           73.3±5.7   73.6±5.4   71.5±3.9   70.4±4.5   83.7   82.9  78.3  81.3±8.0
    walker2d-medium-replay    54.0±12.1  72.8±7.5   53.4±12.2  60.5±8.9   81.8   86.1  73.9  79.4±12.8
    walker2d-medium-expert    102.2±2.3  107.6±0.5  99.8±21.3  108.2±0.8  110.1  109.5 109.6 91.0±10.8
    hopper-medium             56.6±5.5   62.9±3.6   59.9±4.9   63.9±4.4   59.3   64.6  66.3  67.4±11.3
    hopper-medium-replay      87.7±9.7   87.7±4.2   56.4±20.1  76.9±5.9   60.9   97.8  94.7  99.4±12.6
    hopper-medium-expert      108.8±0.9  110.0±2.8  95.4±11.3  103.4±9.0  98.0   102.0 91.5  106.0±1.1
    halfcheetah-medium        16.2±4.5   42.2±0.7   42.5±0.6   41.6±1.7   48.3   49.1  47.4  44.0±1.2
    halfcheetah-medium-replay -0.4±2.7   40.4±0.8   34.5±4.2   36.9±2.2   44.6   47.3  44.2  44.1±3.5
    halfcheetah-medium-expert 83.4±2.1   91.1±2.0   87.2±2.7   85.6±2.0   90.7   85.8  86.7  40.8±8.7
    """,
    {"rvs+cwbc": 8, "dt+cwbc": 6},
)

# Scores are gamer-normalized; the target is the dataset's best, or five times that (`atari.MULTIPLES`).
ATARI = _table(
    "Table 5",
    """
                    rvs         rvs+w        rvs+c       rvs+cwbc    dt          cql   bc
    breakout-replay 126.9±38.0  120.1±28.43  163.0±50.4  237.3±82.1  267.5±97.5  211.1 138.9±61.7
    qbert-replay    -0.4±0.2    0.0±0.4      12.4±8.6    19.1±2.7    15.4±11.4   104.2 17.3±14.7
    pong-replay     75.7±8.6    90.7±6.4     84.1±9.6    90.4±1.9    106.1±8.1   111.9 85.2±20.0
    seaquest-replay 0.2±0.2     -0.1±0.1     1.6±0.2     1.4±0.3     2.5±0.4     1.7   2.1±0.3
    """,
    # As printed. By its own numbers, RvS+W is above RvS on Qbert as well: 0.0 vs. -0.4.
    {"rvs+w": 1, "rvs+c": 4, "rvs+cwbc": 4},
)

HARD_FILTERING = _table(
    "Table 7",
    """
                              rvs        rvs+w      rvs+c      rvs+cwbc   rvs+f      rvs+f+c
    walker2d-medium           73.3±5.7   54.5±7.7   71.3±4.9   73.6±5.4   60.9±4.9   68.2±7.1
    walker2d-medium-replay    54.0±12.1  61.2±14.7  62.0±13.5  72.8±7.5   47.1±7.7   53.9±11.0
    walker2d-medium-expert    102.2±2.3  104.1±0.5  102.1±10.2 107.6±0.5  101.7±3.3  105.4±0.6
    hopper-medium             56.6±5.5   62.5±7.1   61.0±5.3   62.9±3.6   62.4±5.0   65.7±6.4
    hopper-medium-replay      87.7±9.7   92.4±6.1   91.5±3.5   87.7±4.2   91.2±5.3   92.1±2.9
    hopper-medium-expert      108.8±0.9  108.4±1.8  101.0±13.4 110.0±2.8  97.5±15.0  105.8±3.5
    halfcheetah-medium        16.2±4.5   4.0±5.4    40.7±1.0   42.2±0.7   1.4±3.3    36.2±2.5
    halfcheetah-medium-replay -0.4±2.7   -0.8±2.2   36.8±1.5   40.4±0.8   -0.1±3.5   35.7±2.8
    halfcheetah-medium-expert 83.4±2.1   69.1±3.7   91.2±1.0   91.1±2.0   46.0±1.5   83.2±5.0
    """,
    # 9 as printed: hopper-medium-replay, 87.7 as RvS, is counted here, and not in Table 1.
    {"rvs+w": 4, "rvs+c": 6, "rvs+cwbc": 9, "rvs+f": 3, "rvs+f+c": 5},
)

FILTERED_BC = _table(
    "Table 8",
    """
                              filtered-bc rvs        rvs+cwbc
    walker2d-medium           75.0        73.3±5.7   73.6±5.4
    hopper-medium             56.9        56.6±5.5   62.9±3.6
    halfcheetah-medium        42.5        16.2±4.5   42.2±0.7
    walker2d-medium-replay    62.5        54.0±12.1  72.8±7.5
    hopper-medium-replay      75.9        87.7±9.7   87.7±5.2
    halfcheetah-medium-replay 40.6        -0.4±2.7   40.4±0.8
    walker2d-medium-expert    109.0       102.2±2.3  107.6±0.5
    hopper-medium-expert      110.9       108.8±0.9  110.0±2.8
    halfcheetah-medium-expert 92.9        83.4±2.1   91.1±2.0
    """,
)

ANT_MAZE = _table(
    "Table 6",
    """
                              rvs        rvs+w      rvs+c      rvs+cwbc   dt   cql  bc
    antmaze-umaze             54.0±13.56 65.0±18.03 58.0±8.72  65.0±12.85 65.6 44.8 54.6
    antmaze-umaze-diverse     55.0±15.65 46.0±16.85 50.0±10.95 42.0±7.48  51.2 23.4 45.6
    antmaze-medium-play       0.0±0.0    26.0±12.0  0.0±0.0    25.0±13.6  1.0  0.0  0.0
    antmaze-medium-diverse    1.0±3.0    24.0±15.62 1.0±3.0    23.0±11.0  0.6  0.0  0.0
    antmaze-large-play        0.0±0.0    4.0±4.9    0.0±0.0    5.0±6.71   0.0  0.0  0.0
    antmaze-large-diverse     0.0±0.0    10.0±10.0  0.0±0.0    17.0±11.87 0.2  0.0  0.0
    """,
    {"rvs+w": 4, "rvs+c": 1, "rvs+cwbc": 4},  # as printed; by its numbers, 5, 1 and 5
)

CORL_ANT_MAZE = _table(
    "CORL",
    """
                              td3bc cql  iql  rebrac
    antmaze-umaze             70.8  92.8 77.0 97.8
    antmaze-umaze-diverse     44.8  37.3 54.3 83.5
    antmaze-medium-play       0.3   65.8 65.8 89.5
    antmaze-medium-diverse    0.3   67.3 73.8 83.5
    antmaze-large-play        0.0   20.8 42.0 52.3
    antmaze-large-diverse     0.0   20.5 30.3 64.0
    """,
)
_PAPERS_CQL = "cql (RvS's paper)"  # which Table 6 quotes, far below CORL's
MAZES = PublishedTable(
    "Table 6, CORL",
    {
        **{name: of for name, of in ANT_MAZE.scores.items() if name != "cql"},
        **CORL_ANT_MAZE.scores,
        _PAPERS_CQL: ANT_MAZE.scores["cql"],
    },
    ANT_MAZE.wins,
    sources=dict.fromkeys(CORL_ANT_MAZE.scores, "CORL"),
)
