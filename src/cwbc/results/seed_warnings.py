"""Seeds that achieve far less than the others, which a mean over seeds would hide."""

from __future__ import annotations

import numpy as np

from cwbc.core.tasks import Task
from cwbc.results.sweeps import Sweep
from cwbc.system.formatting import amount

FAR = 20.0  # points of score below all others, and twice as far as these are apart
OFTEN = 0.25  # of the targets: less is noise


def seed_warnings(sweep: Sweep, task: Task) -> list[str]:
    """Seeds that achieve far less than the others at many targets, which a mean would hide."""
    returns = sweep.returns.mean(axis=2)  # [seed, target]
    scores, seeds, targets = task.normalize(returns), sweep.seeds.tolist(), sweep.targets
    if len(seeds) < 3 or not np.isfinite(scores).all():
        return []
    found = []
    for row, seed in enumerate(seeds):
        others = np.delete(scores, row, axis=0)
        spread = np.ptp(others, axis=0)
        gaps = others.min(axis=0) - scores[row] - 2 * np.maximum(spread, FAR / 2)  # [target]
        if (gaps > 0).mean() >= OFTEN:
            worst = int(np.argmax(gaps))
            at = "" if np.isnan(targets[worst]) else f" at target {amount(targets[worst])}"
            low, median = amount(returns[row, worst]), amount(float(np.median(returns[:, worst])))
            found.append(
                f"seed {seed} is far below the others{at}: it achieves {low}, the median seed {median}."
            )
    return found
