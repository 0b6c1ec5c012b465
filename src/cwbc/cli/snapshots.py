"""`cwbc behaviours show`: snapshots of behaviour policies and their returns; nothing here needs jax."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

from rich.table import Column, Table
from tyro.conf import Positional, arg

from cwbc.behaviours import ANT, GAMES, TASKS, is_shipped, snapshots
from cwbc.behaviours.snapshots import Series
from cwbc.cli.session import Session
from cwbc.system.console import PlainConsole
from cwbc.system.errors import unknown
from cwbc.system.formatting import amount


@dataclasses.dataclass(frozen=True)
class ShowBehaviours:
    """Show snapshots and their returns: those that come with cwbc, or your own."""

    place: Annotated[Positional[str | None], arg(metavar="[TASK|DIR]", help_behavior_hint="")] = None
    """hopper, walker2d, halfcheetah, or the directory of a training (default: list those of the package)."""

    def run(self, session: Session) -> None:
        console = PlainConsole()
        shipped = {task: snapshots.shipped(task) for task in (*TASKS, ANT, *GAMES) if is_shipped(task)}
        if self.place is None:
            console.print(overview([*shipped.values()]))
            return
        shipped |= {series.environment: series for series in shipped.values()}  # as the overview calls them
        if self.place not in shipped and not Path(self.place).is_dir():
            raise unknown("behaviours", self.place, shipped)
        found = shipped.get(self.place) or snapshots.read(Path(self.place))
        titles = ("steps", "return", "±", "without noise", "±")
        table = Table(*(Column(title, justify="right") for title in titles), "", box=None, pad_edge=False)
        for snapshot in found.snapshots:
            named = {"medium": found.medium, "expert": found.expert}
            marks = [word for word, marked in named.items() if marked.steps == snapshot.steps]
            ways = (snapshot.stochastic, snapshot.deterministic)
            numbers = [amount(number) for way in ways for number in (way.mean, way.std)]
            table.add_row(f"{snapshot.steps:,}", *numbers, ", ".join(marks))
        console.print(table)
        about = f"{found.environment}, {found.episodes} episodes each; seed {found.seed} of `{found.command}`"
        console.print(f"{about} on {found.device}", highlight=False, markup=False)


def overview(all_series: list[Series]) -> Table:
    """Snapshots of several trainings: untrained, medium and expert."""
    titles = ("snapshots", "untrained", "medium", "expert", "expert without noise")
    numbers = (Column(title, justify="right") for title in titles)
    table = Table("environment", *numbers, box=None, pad_edge=False)
    for one in all_series:
        noisy = [snapshot.stochastic for snapshot in (one.snapshots[0], one.medium, one.expert)]
        returns = [amount(statistics.mean) for statistics in (*noisy, one.expert.deterministic)]
        table.add_row(one.environment, str(len(one.snapshots)), *returns)
    return table
