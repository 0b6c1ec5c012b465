"""Compare the three scales of the condition on the paper's nine datasets, at the paper's sizes; needs a GPU.

Smaller: --preset small --datasets cwbc/walker2d/medium-replay-v0 --seeds 3
"""

from __future__ import annotations

import argparse

import cwbc
from cwbc.core.conditioning import SCALES
from cwbc.data import generated

ROBOTS, QUALITIES = ("hopper", "walker2d", "halfcheetah"), ("medium-replay", "medium", "medium-expert")
DATASETS = [f"cwbc/{robot}/{quality}-v0" for quality in QUALITIES for robot in ROBOTS]


def main() -> None:
    """Train every cell, or read it where it is trained already, and write the report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--methods", nargs="+", default=["rvs", "rvs+cwbc"])
    parser.add_argument("--preset", choices=["paper", "small"], default="paper")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", default="runs/condition-scale")
    options = parser.parse_args()
    if options.preset == "paper":
        for name in set(options.datasets) & set(DATASETS):
            generated.DatasetSpec.of(name, generated.FULL).generate()
    variants = [
        cwbc.Variant(f"{method}, {scale}", method, {"condition_scale": scale})
        for method in options.methods
        for scale in SCALES
    ]
    scale = cwbc.Scale(options.preset, seeds=options.seeds, points=8)
    results = cwbc.run(cwbc.grid(options.datasets, variants, scale))
    print(cwbc.report(results, options.out, title="Scales of the condition"))


if __name__ == "__main__":
    main()
