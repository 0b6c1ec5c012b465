"""`cwbc behaviours show`: snapshots of behaviour policies and their returns; nothing here needs jax."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from rich.table import Table
from tyro.conf import Positional, arg

from cwbc.behaviours import TASKS, snapshots
from cwbc.behaviours.snapshots import Series
from cwbc.system.console import PlainConsole
from cwbc.system.errors import unknown
from cwbc.system.formatting import amount

Place = Annotated[Positional[str | None], arg(metavar="[TASK|DIR]", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class ShowBehaviours:
    """Show snapshots and their returns: those that come with cwbc, or your own."""

    place: Place = None
    """hopper, walker2d, halfcheetah, or the directory of a training (default: list the three)."""

    def run(self, command_line: str) -> None:
        """Show the snapshots."""
        console = PlainConsole()
        if self.place is None:
            console.print(overview([snapshots.shipped(task) for task in TASKS]))
            return
        # By either name: the overview has Hopper-v4.
        shipped = {name: task for task in TASKS for name in (task, snapshots.shipped(task).environment)}
        if self.place in shipped:
            found = snapshots.shipped(shipped[self.place])
        elif not Path(self.place).is_dir():
            raise unknown("behaviours", self.place, TASKS)
        else:
            found = snapshots.read(Path(self.place))
        console.print(_snapshots(found))
        about = f"{found.environment}, {found.episodes} episodes each; seed {found.seed} of `{found.command}`"
        console.print(f"{about} on {found.device}", highlight=False, markup=False)


def overview(all_series: list[Series]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("environment", "snapshots", "untrained", "medium", "expert", "expert without noise"):
        table.add_column(title, justify="left" if title == "environment" else "right")
    for one in all_series:
        noisy = [snapshot.stochastic for snapshot in (one.snapshots[0], one.medium, one.expert)]
        returns = [amount(statistics.mean) for statistics in (*noisy, one.expert.deterministic)]
        table.add_row(one.environment, str(len(one.snapshots)), *returns)
    return table


def _snapshots(one: Series) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("steps", "return", "±", "without noise", "±", ""):
        table.add_column(title, justify="right" if title else "left")
    for snapshot in one.snapshots:
        marks = [
            word
            for word, marked in (("medium", one.medium), ("expert", one.expert))
            if marked.steps == snapshot.steps
        ]
        ways = (snapshot.stochastic, snapshot.deterministic)
        numbers = [amount(number) for way in ways for number in (way.mean, way.std)]
        table.add_row(f"{snapshot.steps:,}", *numbers, ", ".join(marks))
    return table
