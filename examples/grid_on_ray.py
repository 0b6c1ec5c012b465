"""A grid of datasets x methods x hyper-parameters on a Ray cluster; it survives the death of any node.

ray start --head
python examples/grid_on_ray.py
"""

from __future__ import annotations

from collections.abc import Sequence

import cwbc

DATASETS = ("cwbc/hopper/medium-replay-v0", "cwbc/walker2d/medium-replay-v0")


def main(datasets: Sequence[str] = DATASETS, address: str | None = None, steps: int | None = None) -> None:
    """Train and evaluate the grid, and write its report."""
    variants = ["rvs"] + [
        cwbc.Variant(f"alpha = {alpha}", "rvs+cwbc", {"coefficient": alpha}) for alpha in (0.1, 1.0)
    ]
    cells = cwbc.grid(datasets, variants, cwbc.Scale("small", steps=steps, seeds=3, episodes=5, points=7))
    results = cwbc.run(cells, "runs/cells", engine="ray", address=address)
    print(cwbc.report(results, "runs/alpha", title="The weight of the conservative loss"))


if __name__ == "__main__":
    main()
