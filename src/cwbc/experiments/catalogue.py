"""Every item that can be reproduced, in the paper's order."""

from __future__ import annotations

from collections.abc import Mapping

from cwbc.evidence.item import Item
from cwbc.experiments import (
    bias_variance,
    coefficient,
    components,
    dt_concat,
    filtered_bc,
    hard_filtering,
    kappa,
    max_return,
    percentile,
    reliability,
    smoothing,
    table1,
    transformed,
)

ITEMS: Mapping[str, Item] = {
    module.ITEM.name: module.ITEM
    for module in (
        table1,
        reliability,
        dt_concat,
        transformed,
        components,
        max_return,
        kappa,
        smoothing,
        percentile,
        coefficient,
        hard_filtering,
        filtered_bc,
        bias_variance,
    )
}
