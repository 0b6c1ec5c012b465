"""`cwbc video`: how the episodes of a policy look, one per target return."""

from __future__ import annotations

import dataclasses
import math
import shlex
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc import envs
from cwbc.cli.options import Device, Environment, Flag, Numbers, SweepOptions, Whole
from cwbc.cli.session import Session
from cwbc.core.device import use_device
from cwbc.core.methods import method_from_json
from cwbc.core.policy_spec import ActionChoice
from cwbc.core.simulation import is_offline
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.reports.report import need_plots
from cwbc.runs.evaluating import film
from cwbc.runs.finished import find_runs
from cwbc.runs.policies import Policies
from cwbc.runs.run_directory import CONFIG, PAGE, VIDEO, RunDirectory
from cwbc.system.console import output
from cwbc.system.errors import InputError, require
from cwbc.system.files import write_atomically
from cwbc.system.formatting import amount, counted
from cwbc.system.progress import progress

_MOST = 6  # targets side by side


def three_targets(low: float, best: float) -> tuple[float, ...]:
    """A third of the range of the dataset's returns and two thirds, in round numbers, and the best."""
    if best == low:
        return (best,)
    digits = 1 - math.floor(math.log10(best - low))
    return *(round(low + (best - low) * part / 3, digits) for part in (1, 2)), best


@dataclasses.dataclass(frozen=True)
class Video:
    """Write a video of one episode per target return, side by side: an animated PNG."""

    directory: Annotated[Positional[str], arg(metavar="RUN", help_behavior_hint="")]
    """A run directory, or one that holds several."""
    targets: Numbers = None
    """Up to six target returns, comma-separated (default: a third of the range of the dataset's returns, two
    thirds and the best; none for +q, which chooses its own)."""
    seed: Whole = None
    """The seed whose policy acts (default: the run's first)."""
    actions: Annotated[ActionChoice | None, arg(help_behavior_hint="")] = None
    """How discrete actions are chosen (default: sampled for images, else greedy)."""
    env: Environment = None
    """Gymnasium id of the environment, or module:ID of your own (default: the run's)."""
    device: Device = None
    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """The file to write (default: video.png in the run directory, where reports embed it)."""
    overwrite: Flag = False
    """Replace a file that exists."""

    def run(self, session: Session) -> None:
        """Write a video of each run."""
        use_device(self.device)
        envs.allow(self.env)
        need_plots()
        root = Path(self.directory)
        runs = find_runs(root)
        if self.out is not None and len(runs) > 1:
            raise InputError(f"{root} holds {len(runs)} runs; --out takes the video of one")
        files = [run.path / VIDEO if self.out is None else Path(self.out) for run in runs]
        for path in files:
            if path.suffix != Path(VIDEO).suffix:
                raise InputError(f"--out {path} must end in {Path(VIDEO).suffix}")
            if path.exists() and not self.overwrite:
                raise InputError(f"{path} exists; --overwrite replaces it")
        for run, path, plan in [(*pair, self._plan(pair[0])) for pair in zip(runs, files, strict=True)]:
            self._write(run, path, *plan, session)
        if self.out is None and (root / PAGE).exists():
            session.say(f"`cwbc report {shlex.quote(str(root))}` writes its page again, with the video")

    def _plan(self, run: RunDirectory) -> tuple[str, tuple[float, ...]]:
        """The environment of a run and the targets of its video."""
        config = run.config()
        dataset = DatasetSummary.from_json(config["dataset"])
        environment = self.env or dataset.environment or run.evaluated_in()
        if environment is None or is_offline(environment):
            raise InputError(f"{run.path} names no environment to act in; a video needs one: give --env ID")
        sweep = SweepOptions(self.targets, episodes=1)
        targets, _ = sweep.plan(dataset.task, dataset.best)
        targets = three_targets(dataset.lowest, dataset.best) if self.targets is None else targets
        require(len(targets) <= _MOST, "--targets", len(targets), f"at most {_MOST} numbers")
        method = method_from_json(config["method"], f"{run.path / CONFIG}, method")
        return environment, sweep.of(method, targets)

    def _write(
        self, run: RunDirectory, path: Path, environment: str, targets: tuple[float, ...], session: Session
    ) -> None:
        from cwbc.reports.video import animated

        policies = Policies.load(run.path).acting(self.actions).only(self.seed)
        name = policies.spec.method.name
        with progress(session.console, f"filming {name}", policies.spec.horizon, "steps") as update:
            sweep, filmed = film(policies, environment, targets, progress=update)
        titles = [f"target {amount(each)}" if each == each else name for each in sweep.targets.tolist()]
        for title, achieved, length in zip(titles, sweep.returns.flat, sweep.lengths.flat, strict=True):
            session.say(f"{title}: achieved {amount(achieved)} in {counted(int(length), 'step')}")
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, animated(filmed.frames, titles))
        output(f"video: {path} ({len(filmed.frames)} frames, {path.stat().st_size / 1e6:.1f} MB)")
