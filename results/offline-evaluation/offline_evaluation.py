"""Offline estimates of returns beside simulated ones: `python offline_evaluation.py FOLDER [DATASET ...]`.

FOLDER gets returns.csv, one row per dataset, method, seed and target, and replays.csv, one row per dataset
and held-out episode; what is there is skipped. Then the tables are printed, of all datasets in the files.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from scipy import stats

import cwbc
from cwbc.core.simulation import offline as learned
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.estimates import Estimates
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.intervals import interval
from cwbc.results.recommendation import recommend
from cwbc.results.replays import Replays
from cwbc.results.sweeps import Sweep
from cwbc.runs.evaluating import evaluate_offline
from cwbc.runs.offline import offline_data

ROBOTS = [f"cwbc/{robot}/{quality}-v0" for quality in ("medium-replay", "medium", "medium-expert")
          for robot in ("hopper", "halfcheetah", "walker2d")]  # fmt: skip
METHODS, SEEDS, STEPS, EPISODES = ("bc", "rvs", "rvs+cwbc"), 3, 4_000, 10
COLUMNS = ("dataset", "method", "seed", "target", "simulated", "model", "fitted", "support")
REPLAYED = ("dataset", "logged_return", "replayed_return")


class Shop(gymnasium.Env[np.ndarray, Any]):
    """Sixty days of orders; profit in plain money."""

    observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = spaces.Box(0, 60, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[np.ndarray, dict]:
        super().reset(seed=seed)
        self._day, self._stock, self._demand = 0, float(self.np_random.integers(30)), 20.0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        order = float(np.clip(action, 0, 60).item())
        self._demand = float(self.np_random.poisson(20 + 8 * self._season()))
        sold = min(self._stock + order, self._demand)
        self._stock = min(self._stock + order - sold, 150)
        profit = 2 * sold - order - 0.15 * self._stock - (self._demand - sold) - 2 * (order > 0.5)
        self._day += 1
        return self._seen(), profit, False, self._day == 60, {}

    def _season(self) -> float:
        return float(np.sin(2 * np.pi * self._day / 7))

    def _seen(self) -> np.ndarray:
        return np.array([self._stock, self._demand, self._season()], np.float32)


def shop_data() -> cwbc.Trajectories:
    """300 episodes of clerks who each order up to a level of their own, some of them wildly."""
    random = np.random.default_rng(0)

    def clerk() -> Any:
        level, noise, care = random.uniform(0, 70), random.uniform(0, 12), random.uniform(0, 12)
        return lambda seen: np.clip([level + care * seen[2] - seen[0] + random.normal(0, noise)], 0, 60)

    return logged("shop", Shop(), clerk, 300, random, 60)


def cartpole_data() -> cwbc.Trajectories:
    """300 episodes of controllers with random weights, each with its own fraction of random actions."""
    random = np.random.default_rng(0)

    def controller() -> Any:
        weights, noise = random.uniform([-0.3, -0.3, 0, 0], [0.5, 0.5, 1.5, 1.5]), random.uniform(0, 0.6)
        return lambda seen: int(random.integers(2) if random.uniform() < noise else weights @ seen > 0)

    return logged("cartpole", gymnasium.make("CartPole-v1").unwrapped, controller, 300, random, 200)


def logged(
    name: str, environment: Any, behaviour: Any, episodes: int, random: Any, limit: int
) -> cwbc.Trajectories:
    rows = []
    for _ in range(episodes):
        act = behaviour()
        seen, _ = environment.reset(seed=int(random.integers(2**31)))
        for step in range(limit):
            action = act(seen)
            after, reward, terminated, *_ = environment.step(action)
            rows.append((seen, action, reward, terminated, step == limit - 1))
            seen = after
            if terminated:
                break
    observations, actions, rewards, terminated, truncated = (np.array(x) for x in zip(*rows, strict=True))
    over = terminated.astype(bool)
    return cwbc.from_arrays(name, observations, actions, rewards, over, truncated & ~over, time_limit=limit)


def cartpole() -> Any:
    return gymnasium.wrappers.TimeLimit(gymnasium.make("CartPole-v1").unwrapped, 200)


OWN = {
    "shop": (shop_data, lambda: gymnasium.wrappers.TimeLimit(Shop(), 60)),
    "cartpole": (cartpole_data, cartpole),
}


def compare(folder: Path, name: str) -> None:
    """Add the rows of a dataset."""
    returns, replays = folder / "returns.csv", folder / "replays.csv"
    known = {(row["dataset"], row["method"]) for row in read(returns)}
    is_replayed = name in {row["dataset"] for row in read(replays)}
    left = [method for method in METHODS if (name, method) not in known]
    if is_replayed and not left:
        return
    make, environment = OWN.get(name, (None, None))
    data = cwbc.load(name) if make is None else make()
    offline = offline_data(data)
    if not is_replayed:
        assert offline.replays is not None
        pairs = zip(offline.replays.logged, offline.replays.replayed, strict=True)
        append(replays, REPLAYED, [(name, f"{logged:.6g}", f"{found:.6g}") for logged, found in pairs])
    targets = np.linspace(data.lowest, 2 * data.best - data.lowest, 9).tolist()
    for method in left:
        policies = cwbc.train(data, method, preset="small", seeds=SEEDS, steps=STEPS)
        true = cwbc.evaluate(policies, environment, targets, episodes=EPISODES)
        sweep, estimates = evaluate_offline(policies, offline, targets, EPISODES)
        numbers = (true.means, sweep.means, estimates.fitted, estimates.support)
        rows = [
            (name, method, seed, target, *(f"{x[row, place]:.6g}" for x in numbers))
            for row, seed in enumerate(true.seeds.tolist())
            for place, target in enumerate(true.targets.tolist())
        ]
        append(returns, COLUMNS, rows)


def append(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    with path.open("a", newline="") as file:
        csv.writer(file).writerows([*([columns] if file.tell() == 0 else []), *rows])


def read(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.open())) if path.exists() else []


def show(path: Path) -> None:
    """Print the table: how estimates rank methods and targets, what choosing by them costs, their errors."""
    rows = read(path)
    print("| dataset | estimate | rank correlation | regret | mean abs. error | within the 95 % interval |")
    print("|---|---|---|---|---|---|")
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == name]
        points: dict[tuple[str, str], list[dict[str, str]]] = {}
        for row in mine:
            points.setdefault((row["method"], row["target"]), []).append(row)

        def means(column: str, points: Any = points) -> np.ndarray:
            return np.array([np.mean([float(row[column]) for row in of]) for of in points.values()])

        true = means("simulated")
        spread = true.max() - true.min()
        for column in ("model", "fitted"):
            found = means(column)
            inside = []
            for at, of in zip(true, points.values(), strict=True):
                _, low, high = interval(np.array([[float(row[column])] for row in of]))
                inside.append(low[0] <= at <= high[0])
            rank = stats.spearmanr(found, true).statistic
            regret = (true.max() - true[found.argmax()]) / spread
            error = np.abs(found - true).mean() / spread
            numbers = (
                f"{rank:.2f} | {100 * regret:.0f} % | {100 * error:.0f} % | {100 * np.mean(inside):.0f} %"
            )
            print(f"| {name} | {column} | {numbers} |")


class Judged:
    """A dataset as an offline evaluation shows it, without a simulator; with the simulated returns beside."""

    def __init__(self, rows: Sequence[dict[str, str]], replays: Sequence[dict[str, str]]) -> None:
        targets = sorted({float(row["target"]) for row in rows if row["target"] != "nan"})
        # The targets are evenly spaced from the lowest return to the best + its range.
        lowest, best = targets[0], targets[len(targets) // 2]
        self.range = best - lowest
        name = rows[0]["dataset"]
        of_data = (name, learned(None), "", len(replays), 1, lowest, best, lowest, (lowest, best), (1,))
        logged, replayed = (np.array([float(row[c]) for row in replays]) for c in REPLAYED[1:])
        self.methods: dict[str, EvaluatedMethod] = {}
        self.simulated: dict[str, np.ndarray] = {}
        for method in dict.fromkeys(row["method"] for row in rows):
            mine = [row for row in rows if row["method"] == method]
            seeds = len({row["seed"] for row in mine})
            columns = {c: np.array([float(row[c]) for row in mine]).reshape(seeds, -1) for c in COLUMNS[2:]}
            shown = columns["target"][0]
            lengths = np.ones((*columns["model"].shape, 1), np.int64)
            sweep = Sweep(method, np.arange(seeds), shown, columns["model"][..., None], lengths)
            other = Estimates(
                sweep.seeds, shown, columns["fitted"], columns["support"], Replays(logged, replayed)
            )
            self.methods[method] = EvaluatedMethod.of(sweep, DatasetSummary(*of_data), estimates=other)
            self.simulated[method] = columns["simulated"].mean(axis=0)

    def contained(self, points: str) -> tuple[float, float]:
        """How often intervals contain the simulated return, and their mean width / the range of returns."""
        pairs = [
            (truth, point.achieved)
            for name, method in self.methods.items()
            for truth, point in zip(self.simulated[name], getattr(method, points), strict=True)
        ]
        widths = [(high - low) / self.range for _, (_, low, high) in pairs]
        return float(np.mean([low <= truth <= high for truth, (_, low, high) in pairs])), float(
            np.mean(widths)
        )


def show_reliance(returns: Path, replays: Path) -> None:
    """Print what the recommendation says, and what is true."""
    print("\n| dataset | recommended | estimate | simulated | relied on | intervals | of seeds alone |")
    print("|---|---|---|---|---|---|---|")
    rows, replayed = read(returns), read(replays)
    for name in dict.fromkeys(row["dataset"] for row in rows):
        mine, pairs = ([row for row in some if row["dataset"] == name] for some in (rows, replayed))
        if not pairs or {row["method"] for row in mine} < set(METHODS):
            continue
        judged = Judged(mine, pairs)
        found = recommend(judged.methods)
        assert found is not None
        method = judged.methods[found.method]
        truth = judged.simulated[found.method][method.points.index(found.point)]
        target, (value, low, high), _ = found.point
        where = f"{found.method} {target:,.0f} | {value:,.0f}, {low:,.0f} to {high:,.0f} | {truth:,.0f}"
        both = (judged.contained(points) for points in ("points", "seed_points"))
        often = " | ".join(f"{100 * inside:.0f} %, width {100 * width:.0f} %" for inside, width in both)
        print(f"| {name} | {where} | {'yes' if found.reliable else 'no'} | {often} |")
        for caveat in found.caveats:
            print(f"|   {caveat}")


if __name__ == "__main__":
    folder, *names = sys.argv[1:]
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    for dataset in names or [*OWN, *ROBOTS]:
        compare(root, dataset)
    show(root / "returns.csv")
    show_reliance(root / "returns.csv", root / "replays.csv")
