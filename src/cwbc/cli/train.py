"""`cwbc train`: one method on one dataset, without an evaluation."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc.cli.options import Dataset, Flat
from cwbc.cli.planning import Plan, TrainingOptions, resume_lines
from cwbc.cli.session import Session, stoppable
from cwbc.core.training import Interrupted
from cwbc.data import activity, compatibility, read
from cwbc.data.store import contained
from cwbc.runs.run_directory import RunDirectory
from cwbc.runs.tracking import Tracking
from cwbc.runs.training import train
from cwbc.system.errors import InputError
from cwbc.system.progress import gauge, progress

# Several are read as well, so that the error can say that train takes one.
MethodName = Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD", help_behavior_hint="(required)")]


@dataclasses.dataclass(frozen=True)
class Train:
    """Train a method with all seeds; resumes by itself when the directory holds a checkpoint."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    method: MethodName
    """A base (bc rvs dt dt-concat) with parts (+w +c +f), or with +cwbc."""
    training: Annotated[TrainingOptions, Flat] = dataclasses.field(default_factory=TrainingOptions)

    def run(self, command_line: str) -> None:
        """Train the method."""
        if len(self.method) > 1:
            raise InputError(
                f"train takes one METHOD; got {' '.join(self.method)}. compare takes several, or train "
                "each with a command of its own"
            )
        with stoppable(command_line) as session:
            _train(self, session)


def _train(command: Train, session: Session) -> None:
    plan = Plan.make(command.method, command.training)
    with gauge(session.console, *activity(command.dataset)) as update:
        recording = compatibility.fitted(read(command.dataset, command.training.env, progress=update))
        data = recording.trusted()
    for line in plan.lines(recording):
        session.say(line)
    method, training = plan.methods[0]
    directory = Path(command.training.out or f"runs/{contained(data.name)}/{method.name}")
    notes = plan.notes(command.dataset, recording, session.command_line)
    plan.check(data, [directory], notes)
    run = RunDirectory(directory)
    done = run.steps_done()
    for line in resume_lines(method.name, directory, training.steps):
        session.say(line)
    if done < training.steps:
        session.training = True
        title = f"training {method.name}"
        with (
            contextlib.closing(Tracking(plan.trackers, session.warn)) as tracking,
            progress(session.console, title, training.steps, "steps", done) as update_steps,
        ):
            train(
                data, method, training, plan.seeds, directory, notes, tracking,
                progress=update_steps, should_stop=session.is_stopping, data_on=plan.data_on(data),
            )  # fmt: skip
        session.training = False
        if session.is_stopping():  # during the last chunk: everything is saved
            raise Interrupted
    for text in run.training_warnings():
        session.warn(f"{method.name}, {text}")
    session.say(f"trained: {directory}")
    session.say(f"`{run.evaluate_command()}` evaluates it")
