"""`cwbc demo`: the comparison of the README."""

from __future__ import annotations

import dataclasses

from cwbc.cli.compare import Compare
from cwbc.cli.options import Device, Directory, Flag, Whole
from cwbc.cli.planning import SweepOptions, TrainingOptions
from cwbc.cli.session import Session

DEMO_STEPS = 5_000  # half of the preset's: enough to see it
DEMO_DATASET, DEMO_METHODS = "cwbc/halfcheetah/medium-replay-v0", ("rvs", "rvs+cwbc")


@dataclasses.dataclass(frozen=True)
class Demo:
    """Compare rvs with rvs+cwbc on a generated dataset, in minutes on any machine."""

    seeds: Whole = None
    """Number of seeds (default: 3)."""
    steps: Whole = None
    """Training steps (default: 5,000)."""
    out: Directory = None
    """Directory of the results (default: runs/demo)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
    overwrite: Flag = False
    """Start over where the directory holds a run with other settings."""

    def run(self, session: Session) -> int:
        """Generate the dataset and compare the methods."""
        session.say(f"{DEMO_DATASET}: replay data of a HalfCheetah that learns to run, from random to medium")
        session.say("two policies clone it, conditioned on the return-to-go; the target then increases")
        changed = {"steps": self.steps or DEMO_STEPS, "out": self.out or "runs/demo"}
        training = TrainingOptions(preset="small", **vars(self) | changed)
        return Compare(DEMO_DATASET, DEMO_METHODS, training, SweepOptions(episodes=5)).run(session)
