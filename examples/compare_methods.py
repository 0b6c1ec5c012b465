"""Compare methods on a dataset from Python, and read the numbers as arrays.

python examples/compare_methods.py
"""

from __future__ import annotations

import cwbc


def main(dataset: str = "cwbc/hopper/medium-replay-v0", steps: int | None = None) -> None:
    """Train three methods with three seeds, print their curves, write a report."""
    scale = cwbc.Scale("small", steps=steps, seeds=3, episodes=5, points=7)
    results = cwbc.run(cwbc.grid(dataset, ["bc", "rvs", "rvs+cwbc"], scale), "runs/compare_methods")
    for outcome in results.outcomes:
        sweep = outcome.sweep  # returns[seed, target, episode]
        means = sweep.returns.mean(axis=(0, 2))
        for target, achieved in zip(sweep.targets, means, strict=True):
            print(f"{sweep.method:10} target {target:8.1f}  achieved {achieved:8.1f}")
    print(cwbc.report(results, "runs/compare_methods/report"))


if __name__ == "__main__":
    main()
