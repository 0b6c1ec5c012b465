"""A method of your own: trajectories weighted by a softmax of their returns, instead of by bins.

A method is a learner and a way to sample trajectories, each a frozen value. Loss, sampling, training loop,
policy and evaluation do not change.

    python examples/new_method.py
"""

from __future__ import annotations

import dataclasses

import numpy as np

import cwbc


@dataclasses.dataclass(frozen=True)
class Softmax:
    """Sample trajectories in proportion to exp(standardized return / temperature)."""

    temperature: float = 0.5

    def probabilities(self, data: cwbc.Trajectories) -> np.ndarray:
        """How likely each episode is sampled. [episode]"""
        scores = (data.returns - data.best) / (data.returns.std() or 1.0) / self.temperature
        weights = np.exp(scores)
        return np.asarray(weights / weights.sum())


def main(dataset: str = "cwbc/hopper/medium-replay-v0", steps: int = 3000) -> None:
    """Compare it with the paper's weighting at the dataset's best return."""
    data = cwbc.load(dataset)
    base = cwbc.method("rvs+cwbc", "small")
    own = dataclasses.replace(base, name="rvs+softmax+c", weighting=Softmax())
    for method in (base, own):
        policies = cwbc.train(data, method, seeds=3, preset="small", steps=steps)
        sweep = cwbc.evaluate(policies, targets=[data.best, 2 * data.best], episodes=5)
        at_best, beyond = sweep.returns.mean(axis=(0, 2))
        print(f"{method.name:14} at the best return {at_best:7.1f}, at twice that {beyond:7.1f}")


if __name__ == "__main__":
    main()
