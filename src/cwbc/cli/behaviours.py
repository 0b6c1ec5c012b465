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
from cwbc.behaviours import REPLAY, snapshots, training
from cwbc.behaviours.learners import OnlineLearner
from cwbc.behaviours.pqn import PQN
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
    LearnerOptions = options_of((SAC, PQN), "LearnerOptions")


@dataclasses.dataclass(frozen=True)
class TrainBehaviours:
    """Train behaviour policies online (SAC, or PQN for discrete actions), from untrained to expert."""

    task: Annotated[Positional[str], arg(metavar="TASK", help_behavior_hint="")]
    """Gymnasium id of an environment, such as HalfCheetah-v4, CartPole-v1 or ALE/Breakout-v5."""
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
        out = Path(self.out or f"behaviours/{re.sub('[/:?&=]', '-', self.task)}")
        settings = self._settings({} if self.overwrite else checkpointed(out).get("settings", {}))
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
        name = re.sub(r"-v\d+$", "", re.split("[/:]", self.task.partition("?")[0])[-1]).lower()
        quality = REPLAY if isinstance(settings, PQN) else "medium-replay"
        words = ["cwbc", "data", "make", f"{name}/{quality}-v0", "--behaviours", str(out)]
        if ":" in self.task:  # the user, not a file, names modules to import
            words += ["--env", self.task]
        session.say(f"`{shlex.join(words)}` generates a dataset")

    def _settings(self, before: dict[str, Any]) -> OnlineLearner:
        """The learner of the environment; one that resumes with other --steps has the sizes of before."""
        options = given(self.learner)
        with contextlib.closing(envs.make(self.task, 1)) as simulator:
            kind: type[SAC | PQN] = PQN if simulator.discrete else SAC
            other = SAC if simulator.discrete else PQN
            names = {field.name for field in dataclasses.fields(kind)}
            if foreign := sorted(options.keys() - names):
                option, has = foreign[0].replace("_", "-"), "discrete" if simulator.discrete else "continuous"
                raise InputError(
                    f"--{option} is an option of {other.__name__}; {self.task} has {has} actions, which "
                    f"{kind.__name__} learns"
                )
            stored = {name: before[name] for name in kind.depends_on_steps if name in before}
            settings = kind.sized(simulator, self.steps, stored | options)
            settings.check(self.task, simulator)
        return settings
