"""The whole story in minutes: log a learner on its way to running, clone it, ask for more than it ever did.

A linear policy for HalfCheetah learns by random search; what it goes through is the dataset, like D4RL's
medium-replay sets. Then `cwbc compare` does the rest.
"""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from cwbc import simulators
from cwbc.cli import main
from cwbc.progress import progress

DATASET = Path("runs/demo/halfcheetah-random-search.hdf5")
ENVIRONMENT = "HalfCheetah-v5"
ITERATIONS, DIRECTIONS, BEST = 50, 16, 8  # of the search
STEP, NOISE = 0.03, 0.05
EXPLORATION = 0.1  # added to the logged actions
LOGGED = 4  # episodes of each iteration's policy

Array = NDArray[np.float32]


def episodes(
    simulator: simulators.Simulator,
    policies: NDArray[np.float64],  # [policy, action, observation]
    noise: float,
    generator: np.random.Generator,
) -> tuple[Array, Array, Array]:
    """One episode of each linear policy: its observations, actions and rewards, as [step, policy, ...]."""
    rows = np.arange(len(policies))
    observation = simulator.reset(rows, generator.integers(2**31, size=len(rows)).tolist())
    log: tuple[list[Array], list[Array], list[Array]] = ([], [], [])
    for _ in range(simulator.horizon):
        action = np.einsum("pao,po->pa", policies, observation)
        action = np.clip(action + noise * generator.normal(size=action.shape), -1, 1).astype(np.float32)
        outcome = simulator.step(rows, action)
        for values, value in zip(log, (observation, action, outcome.rewards), strict=True):
            values.append(value.astype(np.float32))
        observation = outcome.observations
    return np.stack(log[0]), np.stack(log[1]), np.stack(log[2])


def search(console: Console) -> tuple[Array, Array, Array]:
    """Augmented random search; the logged episodes of every iteration, one after the other."""
    generator = np.random.default_rng(0)
    searching = simulators.make(ENVIRONMENT, 2 * DIRECTIONS)
    logging = simulators.make(ENVIRONMENT, LOGGED)
    policy = np.zeros((searching.action_size, searching.observation_size))
    logs = []
    with progress(console, "a learner on HalfCheetah", ITERATIONS, "iterations") as update:
        for iteration in range(ITERATIONS):
            logs.append(episodes(logging, np.repeat(policy[None], LOGGED, axis=0), EXPLORATION, generator))
            directions = generator.normal(size=(DIRECTIONS, *policy.shape))
            tried = np.concatenate([policy + NOISE * directions, policy - NOISE * directions])
            plus, minus = episodes(searching, tried, 0.0, generator)[2].sum(axis=0).reshape(2, -1)
            best = np.argsort(np.maximum(plus, minus))[-BEST:]
            spread = np.concatenate([plus[best], minus[best]]).std()
            policy += STEP / (BEST * spread) * np.einsum("d,dao->ao", (plus - minus)[best], directions[best])
            update(iteration + 1)
    in_order = [np.concatenate([np.swapaxes(log[k], 0, 1) for log in logs]) for k in range(3)]
    return tuple(array.reshape(-1, *array.shape[2:]) for array in in_order)  # type: ignore[return-value]


def make_dataset() -> None:
    observations, actions, rewards = search(Console(stderr=True))
    DATASET.parent.mkdir(parents=True, exist_ok=True)
    aside = DATASET.with_suffix(".part")
    with h5py.File(aside, "w") as file:
        file.attrs["env"] = ENVIRONMENT
        file["observations"], file["actions"], file["rewards"] = observations, actions, rewards
        file["terminals"] = np.zeros(len(rewards), bool)
        file["timeouts"] = np.arange(1, len(rewards) + 1) % 1000 == 0
    aside.replace(DATASET)


if __name__ == "__main__":
    if not DATASET.exists():
        make_dataset()
    main(
        [
            "compare",
            str(DATASET),
            "rvs",
            "rvs+cwbc",
            "--preset=small",
            "--device=cpu",
            "--out=runs/demo/report",
        ]
    )
