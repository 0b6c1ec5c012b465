"""`cwbc behaviours`: behaviour policies, which generate datasets."""

from __future__ import annotations

import contextlib
import dataclasses
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import Positional, arg

from cwbc import envs
from cwbc.behaviours import snapshots, training
from cwbc.behaviours.sac import SAC
from cwbc.behaviours.training import BehaviourTraining, checkpointed, resume_step
from cwbc.cli.options import Count, Device, Directory, Flag, Flat, given, options_of
from cwbc.cli.session import Session
from cwbc.cli.snapshots import overview
from cwbc.core.device import use_device
from cwbc.system.console import PlainConsole
from cwbc.system.errors import InputError, require
from cwbc.system.formatting import amount, counted
from cwbc.system.progress import progress

if TYPE_CHECKING:
    LearnerOptions = Any
else:
    LearnerOptions = options_of((SAC,), "LearnerOptions")


@dataclasses.dataclass(frozen=True)
class TrainBehaviours:
    """Train behaviour policies online (SAC), with snapshots from untrained to expert."""

    task: Annotated[Positional[str], arg(metavar="TASK", help_behavior_hint="")]
    """Gymnasium id of an environment with continuous actions, such as HalfCheetah-v4 or Pendulum-v1."""
    seeds: Count = 1
    """Number of learners, trained side by side (default: 1)."""
    steps: Count = 1_000_000
    """Steps of the environment for each learner (default: 1,000,000)."""
    episodes: Count = 10
    """Episodes that evaluate a snapshot, with and without noise in its actions (default: 10)."""
    out: Directory = None
    """Directory of the behaviour policies (default: behaviours/TASK)."""
    device: Device = None
    overwrite: Flag = False
    """Start over where the directory holds behaviour policies that were trained with other settings."""
    learner: Annotated[LearnerOptions, Flat] = dataclasses.field(default_factory=LearnerOptions)

    def run(self, session: Session) -> None:
        """Train behaviour policies, or resume a training that was interrupted."""
        for name, most in (("seeds", 1000), ("steps", 2**31 - 1), ("episodes", 10_000)):
            value = getattr(self, name)
            require(value >= 1, f"--{name}", value, "at least 1")
            require(value <= most, f"--{name}", value, f"at most {most:,}")
        envs.allow(self.task)
        device = use_device(self.device)
        out = Path(self.out or f"behaviours/{re.sub('[/:]', '-', self.task)}")
        before = {} if self.overwrite else checkpointed(out)
        options = given(self.learner)
        # A tenth of a short training; for one that resumes with other --steps, the stored value.
        tenth = max(self.steps // 10, options.get("copies", SAC.copies))
        warmup = before.get("settings", {}).get("warmup") or min(SAC.warmup, tenth)
        settings = SAC(**{"warmup": warmup} | options)
        if settings.warmup >= self.steps:
            raise InputError(
                f"--warmup {settings.warmup} leaves none of the {self.steps} steps to learn from"
            )
        task = BehaviourTraining(self.task, settings, tuple(range(self.seeds)), self.episodes)
        learners = counted(self.seeds, "learner")
        session.say(f"{self.task}: {learners}, {self.steps:,} steps, on the {device.upper()}")
        done = resume_step(out, task, self.steps, self.overwrite)
        if done:
            session.say("already trained" if done >= self.steps else f"resuming from step {done:,}")

        def record(new: list[snapshots.Snapshot]) -> None:
            returns = ", ".join(amount(snapshot.stochastic.mean) for snapshot in new)
            session.say(f"after {new[0].steps:,} steps: return {returns}")

        shown = progress(session.console, f"training {self.task}", self.steps, "steps", done)
        # Nothing is shown of a training that is finished.
        shows = shown if done < self.steps else contextlib.nullcontext(lambda step: None)
        with session.saving(), shows as update:
            training.train(
                task, self.steps, out, session.command_line, update, record, session.is_stopping,
                self.overwrite,
            )  # fmt: skip
        best = snapshots.read(out)
        PlainConsole().print(overview([best]))
        session.say(f"behaviours: {out}")
        if not best.learned:
            session.say("none is better than the untrained policy: more steps may help")
            return
        name = re.sub(r"-v\d+$", "", re.split("[/:]", self.task)[-1]).lower()
        words = ["cwbc", "data", "make", f"{name}/medium-replay-v0", "--behaviours", str(out)]
        if ":" in self.task:  # the user, not a file, names modules to import
            words += ["--env", self.task]
        session.say(f"`{shlex.join(words)}` generates a dataset")
