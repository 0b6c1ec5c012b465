"""The paper's tables and figures: what is trained for each, and whether its claims hold."""

from __future__ import annotations

from collections.abc import Mapping

from cwbc.paper.atari import TABLE_5
from cwbc.paper.figure_claims import FIGURE_2, FIGURE_3, FIGURE_5, FIGURE_6
from cwbc.paper.hyperparameters import FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_10
from cwbc.paper.item import Item
from cwbc.paper.maze_claims import TABLE_6
from cwbc.paper.table_claims import TABLE_1, TABLE_7, TABLE_8
from cwbc.paper.trajectory_sampling import APPENDIX, FIGURE_4

_FIGURES = (FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6, FIGURE_7, FIGURE_8, FIGURE_9, FIGURE_10)
ITEMS: Mapping[str, Item] = {
    item.name: item for item in (TABLE_1, *_FIGURES, TABLE_5, TABLE_6, TABLE_7, TABLE_8, APPENDIX)
}
