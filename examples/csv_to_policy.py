"""From a CSV of logged episodes to a policy in one file.

The CSV has one row per step: episode, step, observation_*, action, reward, terminated. Without an argument,
logs of a room with a thermostat are simulated first.

    python examples/csv_to_policy.py [LOGS.csv]
"""

from __future__ import annotations

import csv
import random
import sys
from pathlib import Path

import cwbc


def simulate_logs(path: Path, episodes: int = 200, steps: int = 24) -> None:
    """Log a day of heating per episode: too much costs energy, too little costs comfort."""
    generator = random.Random(0)
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            ["episode", "step", "observation_room", "observation_outside", "action", "reward", "terminated"]
        )
        for episode in range(episodes):
            room, skill = 17.0, generator.random()
            for step in range(steps):
                outside = 5 + 4 * generator.random()
                wanted = max(0.0, 20 - room) * 0.5
                heating = min(max(skill * wanted + (1 - skill) * generator.uniform(0, 3), 0.0), 3.0)
                row = [f"{room:.2f}", f"{outside:.2f}", f"{heating:.3f}"]
                room += heating - 0.1 * (room - outside)
                reward = -abs(room - 20) - 0.2 * heating
                table.writerow([episode, step, *row, f"{reward:.3f}", False])


def main(path: Path | None = None, steps: int = 2000) -> None:
    """Train on the logs and act once."""
    if path is None:
        path = Path("heating.csv")
        simulate_logs(path)
    data = cwbc.load(path)
    print(f"{data.episodes} episodes, returns {data.lowest:.1f} to {data.best:.1f}")
    policies = cwbc.train(data, "rvs+cwbc", seeds=3, preset="small", steps=steps)
    policies.policy(seed=0).save("policy.safetensors")

    policy = cwbc.Policy.load("policy.safetensors")
    policy.begin(target=data.best)
    action = policy.act(data.observations[0])
    print(f"first action: {action}")  # then policy.act(observation, reward), step after step


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
