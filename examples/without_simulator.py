"""Logs of a shop's orders and no simulator: from a CSV to a deployed policy with a recommended target.

Policies are trained on the logs of clerks, and their returns are estimated from the same logs. The shop
itself runs twice only: to write the logs, and at the end, to see what the estimate was worth.

    pip install '.[onnx]' onnxruntime
    python examples/without_simulator.py
"""

from __future__ import annotations

import csv
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

import cwbc
from cwbc.results.recommendation import recommend

COLUMNS = ["stock", "demand", "season"]  # what is known before an order: the demand is that of the day before


def run_shop(chance: random.Random, order: Callable[[list[float], float | None], float]) -> list[list[float]]:
    """Sixty days of a shop. Each day: what is known, the order, its profit."""
    stock, demand, profit, days = chance.uniform(0, 30), 20.0, None, []
    for day in range(60):
        known = [stock, demand, math.sin(2 * math.pi * day / 7)]
        ordered = min(max(order(known, profit), 0.0), 60.0)
        demand = max(0.0, round(chance.gauss(20 + 8 * known[2], 4.5)))
        sold = min(stock + ordered, demand)
        stock = min(stock + ordered - sold, 150.0)
        profit = 2 * sold - ordered - 0.15 * stock - (demand - sold) - 2 * (ordered > 0.5)
        days.append([*known, ordered, profit])
    return days


def write_logs(path: Path, episodes: int = 300) -> None:
    """Logs of clerks who each order up to a level of their own, some of them carelessly."""
    chance = random.Random(0)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["episode", "step", *(f"observation_{name}" for name in COLUMNS), "action", "reward"])
        for episode in range(episodes):
            level, noise, care = chance.uniform(0, 70), chance.uniform(0, 12), chance.uniform(0, 12)

            def clerk(known: list[float], profit: float | None, of: Any = (level, noise, care)) -> float:
                return float(of[0] + of[2] * known[2] - known[0] + chance.gauss(0, of[1]))

            for step, day in enumerate(run_shop(chance, clerk)):
                table.writerow([episode, step, *(f"{number:.3f}" for number in day)])


def main(steps: int = 3000, seeds: int = 3, episodes: int = 20) -> None:
    """Write logs, train, estimate, deploy; then run the shop with the policy."""
    folder = Path("runs/without_simulator")
    write_logs(Path("orders.csv"))
    scale = cwbc.Scale("small", steps=steps, seeds=seeds, episodes=episodes)
    results = cwbc.run(cwbc.grid("orders.csv", ["rvs", "rvs+cwbc"], scale), folder)
    recommended = recommend({outcome.cell.label: outcome.method for outcome in results.outcomes})
    assert recommended is not None
    print(recommended.sentence(), *recommended.caveats, sep="\n- ")
    (best,) = (each for each in results.outcomes if each.cell.label == recommended.method)

    # Deployment: one file, with the target inside; beside it, a runtime is all that acting needs.
    (file,) = cwbc.Policy.load(best.directory).export(folder / "orders.onnx", overwrite=True).files
    session = onnxruntime.InferenceSession(file)
    target = float(session.get_modelmeta().custom_metadata_map["target"])
    state = np.zeros((1, session.get_inputs()[2].shape[1]))

    def order(known: list[float], profit: float | None) -> float:
        if profit is None:  # an episode begins
            state[:], state[:, 0] = 0, target
        observation, reward = np.array([known], np.float32), np.array([profit or 0.0])
        inputs = {"observation": observation, "reward": reward, "state": state}
        action, state[:] = session.run(["action", "next_state"], inputs)
        return float(action.item())

    chance = random.Random(1)
    earned = [sum(day[-1] for day in run_shop(chance, order)) for _ in range(100)]
    print(f"in the shop: {np.mean(earned):.0f} ± {np.std(earned) / 10:.0f}, with {file}")


if __name__ == "__main__":
    main()
