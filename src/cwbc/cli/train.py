"""`cwbc train`: one method on one dataset, with all seeds."""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc.cli.options import Dataset, Flat
from cwbc.cli.planning import Plan, TrainingOptions, show_resuming
from cwbc.cli.session import Session
from cwbc.core.policy_spec import PolicySpec
from cwbc.data import compatibility, read
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.data.store import contained
from cwbc.data.unpacked import wants_disk
from cwbc.grids.preparation import dataset_notes
from cwbc.runs.run_directory import RunDirectory
from cwbc.runs.tracking import Tracking
from cwbc.runs.training import train
from cwbc.system.errors import InputError
from cwbc.system.progress import progress


@dataclasses.dataclass(frozen=True)
class Train:
    """Train a method with all seeds; resumes by itself when the directory holds a checkpoint."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    # Several are read as well, so that the error can say that train takes one.
    method: Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD", help_behavior_hint="(required)")]
    """A base (bc rvs dt dt-concat) with parts (+w +c +f +q), or +cwbc; or td3bc, iql, cql, rebrac,
    discrete-cql."""
    training: Annotated[TrainingOptions, Flat] = dataclasses.field(default_factory=TrainingOptions)

    def run(self, session: Session) -> None:
        if len(self.method) > 1:
            raise InputError(
                f"train takes one METHOD; got {' '.join(self.method)}. compare takes several, or train "
                "each with a command of its own"
            )
        plan = Plan.make(self.method, self.training)
        with session.reading(self.dataset) as update:
            recording = compatibility.fitted(
                read(
                    self.dataset,
                    self.training.env,
                    progress=update,
                    on_disk=wants_disk(self.training.data_on),
                )
            )
            data = recording.trusted()
        ((method, _),) = plan.methods
        directory = Path(self.training.out or f"runs/{contained(data.name)}/{method.name}")
        plan = plan.on(data, [directory])
        plan.show(recording, session)
        ((method, training),) = plan.methods
        plan.check(DatasetSummary.of(data), {directory: PolicySpec.fit(method, data, training)})
        done = show_resuming(method.name, directory, training.steps, session)
        if done < training.steps:
            notes = plan.notes(session) | dataset_notes(self.dataset, recording)
            with (
                session.saving(),
                contextlib.closing(Tracking(plan.trackers, session.warn)) as tracking,
                progress(session.console, f"training {method.name}", training.steps, "steps", done) as steps,
            ):
                train(
                    data, method, training, plan.seeds, directory, notes, tracking,
                    progress=steps, should_stop=session.is_stopping, data_on=plan.data_on(data),
                )  # fmt: skip
        run = RunDirectory(directory)
        for text in run.training_warnings():
            session.warn(f"{method.name}, {text}")
        session.say(f"trained: {directory}")
        session.say(run.how_to_evaluate())
