"""`cwbc recommend`: which policy to deploy with which target return, read from finished runs alone."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from cwbc.cli.options import Json
from cwbc.cli.report import one_dataset
from cwbc.cli.session import Session
from cwbc.results.evaluated import evaluated
from cwbc.results.recommendation import recommend
from cwbc.results.sentences import estimated_in_words
from cwbc.runs.finished import find_runs, read_sweeps
from cwbc.runs.run_directory import RunDirectory
from cwbc.system.console import PlainConsole, output
from cwbc.system.errors import InputError


@dataclasses.dataclass(frozen=True)
class Recommend:
    """Which method and target return to deploy, what to expect, and how sure that is."""

    runs: Annotated[Positional[tuple[str, ...]], arg(metavar="RUN ...", help_behavior_hint="")]
    """Evaluated run directories, or ones that hold several."""
    json: Json = False

    def run(self, session: Session) -> None:
        """Print the recommendation."""
        if not self.runs:
            raise InputError("give at least one run directory")
        found = list(dict.fromkeys(run for name in self.runs for run in find_runs(Path(name))))
        dataset, sweeps = one_dataset(found), read_sweeps(found)
        of_run: dict[str, RunDirectory] = {
            sweep.method: run for sweep, run in zip(sweeps, found, strict=True)
        }
        methods = evaluated(
            sweeps,
            dataset,
            {name: run.training_warnings() for name, run in of_run.items()},
            estimates={name: run.estimates() for name, run in of_run.items()},
        )
        recommended = recommend(methods)
        if recommended is None:
            raise InputError(f"{self.runs[0]}: no return could be evaluated, so nothing is recommended")
        directory = of_run[recommended.method].path
        if self.json:
            output(json.dumps({**recommended.to_json(), "run": str(directory)}, indent=2))
            return
        console = PlainConsole()
        lines = [recommended.sentence(), *(f"- {each}" for each in recommended.caveats)]
        lines += [*estimated_in_words(methods), f"policy: cwbc.Policy.load({str(directory)!r})"]
        for line in lines:
            console.print(line, highlight=False, markup=False)
