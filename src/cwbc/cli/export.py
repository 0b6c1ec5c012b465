"""`cwbc export`: a policy for other runtimes."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from tyro.conf import Positional, arg

from cwbc.cli.options import Flag, Whole
from cwbc.cli.session import Session
from cwbc.core.device import use_device
from cwbc.runs.export import FORMATS, SUFFIXES, Export
from cwbc.runs.finished import find_runs
from cwbc.runs.policies import Policies, Policy
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.console import output
from cwbc.system.errors import InputError, unknown

if TYPE_CHECKING:
    from cwbc.runs.export import Format


@dataclasses.dataclass(frozen=True)
class ExportPolicy:
    """Write a policy for other runtimes, with normalization, condition, context and target inside."""

    run_or_policy: Annotated[Positional[str], arg(metavar="RUN", help_behavior_hint="")]
    """A run directory, or the file of a saved policy."""
    format: Annotated[str, arg(metavar="onnx|numpy", help_behavior_hint="(required)")]
    """One ONNX file, or weights with a module that needs NumPy alone."""
    seed: Whole = None
    """The seed whose policy is written (default: the run's first)."""
    out: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """The file to write (default: policy.onnx or policy.npz in the run directory)."""
    target: Annotated[float | None, arg(metavar="X", help_behavior_hint="")] = None
    """Target return to begin with, written to the file (default: the recommended one of the evaluation)."""
    overwrite: Flag = False
    """Replace a file that exists."""

    def run(self, session: Session) -> None:
        """Write the file and print how far its actions are from the policy's."""
        chosen = self._format()
        use_device("cpu")
        source = Path(self.run_or_policy)
        policy = self._policy(source, session)
        folder = source if source.is_dir() else source.parent
        path = Path(self.out) if self.out is not None else folder / f"policy{SUFFIXES[chosen]}"
        if path.suffix != SUFFIXES[chosen]:
            raise InputError(f"--out {path} must end in {SUFFIXES[chosen]} for --format {chosen}")
        if policy.spec.sampled:
            session.say("the file takes the most likely actions, where cwbc samples them")
        exported = policy.export(path, chosen, self.target, self.overwrite)
        output(_in_words(policy, exported))
        for file in exported.files:
            output(str(file))

    def _format(self) -> Format:
        for each in FORMATS:
            if each == self.format:
                return each
        raise unknown("format", self.format, FORMATS)

    def _policy(self, source: Path, session: Session) -> Policy:
        if not source.exists():
            raise InputError(f"no run or policy at {source}: no such directory or file")
        if not source.is_dir():
            return Policy.load(source, self.seed)
        runs = find_runs(source)
        if runs != [RunDirectory(source)]:
            names = ", ".join(sorted(str(run.path) for run in runs))
            raise InputError(f"{source} holds {names or 'no run'}; export one run")
        policies = Policies.load(source)
        if self.seed is None and len(policies.seeds) > 1:
            seeds = ", ".join(map(str, policies.seeds))
            session.say(
                f"the policy of seed {policies.seeds[0]}, the first of {seeds}; --seed chooses another"
            )
        return policies.policy(self.seed)


def _in_words(policy: Policy, exported: Export) -> str:
    runtimes = " and ".join(exported.runtimes)
    difference = f"{exported.difference:.1g}" if exported.difference else "0"
    return f"{policy.spec.method.name}: in {runtimes}, actions differ by at most {difference} of their range"
