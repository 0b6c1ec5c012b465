"""What `cwbc behaviours` does; only training needs jax."""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from cwbc import simulators
from cwbc.behaviours import TASKS, series, zoo
from cwbc.behaviours.series import Series, Snapshot
from cwbc.cli_behaviours import Show, Train
from cwbc.errors import InputError, require, unknown
from cwbc.option_types import given
from cwbc.plain_text import PlainConsole
from cwbc.wording import amount


def run(action: Train | Show, command_line: str) -> None:
    """Do what was asked for."""
    if isinstance(action, Show):
        show(action)
    else:
        train(action, command_line)


def show(action: Show) -> None:
    """Snapshots and what they earn."""
    console = PlainConsole()
    if action.place is None:
        console.print(_overview([zoo.series(task) for task in TASKS]))
        return
    # By either name: the overview has Hopper-v4.
    shipped = {name: task for task in TASKS for name in (task, zoo.series(task).environment)}
    if action.place in shipped:
        found = zoo.series(shipped[action.place])
    elif not Path(action.place).is_dir():
        raise unknown("behaviours", action.place, TASKS)
    else:
        found = series.read(Path(action.place))
    console.print(_snapshots(found))
    about = f"{found.environment}, {found.episodes} episodes each; seed {found.seed} of `{found.command}`"
    console.print(f"{about} on {found.device}", highlight=False, markup=False)


def train(action: Train, command_line: str) -> None:
    """Train behaviours, or go on where an earlier call was cut off."""
    from cwbc import commands
    from cwbc.behaviours import album, learning
    from cwbc.behaviours.sac import Settings
    from cwbc.device import use_device
    from cwbc.progress import progress
    from cwbc.training import Interrupted

    for name, most in (("seeds", 1000), ("steps", 2**31 - 1), ("episodes", 10_000)):
        value = getattr(action, name)
        require(value >= 1, f"--{name}", value, "at least 1")
        require(value <= most, f"--{name}", value, f"at most {most:,}")
    simulators.allow(action.task)
    device = use_device(action.device)
    out = Path(action.out or f"behaviours/{action.task.replace('/', '-').replace(':', '-')}")
    before = {} if action.overwrite else album.begun(out)
    options = given(action.learner)
    # A tenth of a short training; of one that goes on with other --steps, what it began with.
    tenth = max(action.steps // 10, options.get("copies", Settings.copies))
    warmup = before.get("settings", {}).get("warmup") or min(Settings.warmup, tenth)
    settings = Settings(**{"warmup": warmup} | options)
    if settings.warmup >= action.steps:
        raise InputError(f"--warmup {settings.warmup} leaves none of the {action.steps} steps to learn from")
    with commands.stoppable(command_line) as session:
        learners = f"{action.seeds} learner{'s' * (action.seeds > 1)}"
        session.say(f"{action.task}: {learners}, {action.steps:,} steps, on the {device.upper()}")

        def begin(step: int) -> None:
            if step:
                session.say("already trained" if step >= action.steps else f"going on from step {step:,}")

        session.training = True
        done = min(before.get("step", 0), action.steps)
        # Nothing is shown of a training that is finished.
        shown = progress(session.console, f"training {action.task}", action.steps, "steps", done)
        with shown if done < action.steps else contextlib.nullcontext(lambda step: None) as update:
            done = learning.train(
                action.task,
                settings,
                tuple(range(action.seeds)),
                action.steps,
                out,
                action.episodes,
                command_line,
                begin=begin,
                progress=update,
                report=_teller(session.say, action.seeds),
                should_stop=lambda: session.stopping,
                overwrite=action.overwrite,
            )
        if done < action.steps:
            raise Interrupted
        best = series.read(out)
        session.output.print(_overview([best]))
        session.say(f"behaviours: {out}")
        if not best.learned:
            session.say("none is better than the untrained one: more steps may help")
            return
        name = re.sub(r"-v\d+$", "", re.split("[/:]", action.task)[-1]).lower()
        words = ["cwbc", "data", "make", f"{name}/medium-replay-v0", "--behaviours", str(out)]
        if ":" in action.task:  # a file does not choose what is imported
            words += ["--env", action.task]
        session.say(f"`{shlex.join(words)}` makes a dataset of them")


def _teller(say: Callable[[str], None], seeds: int) -> Callable[[int, Snapshot], None]:
    """A function that says what a snapshot earned, once all seeds are measured."""
    returns: list[str] = []

    def tell(seed: int, snapshot: Snapshot) -> None:
        returns.append(amount(snapshot.stochastic.mean))
        if len(returns) == seeds:
            say(f"after {snapshot.steps:,} steps: return {', '.join(returns)}")
            returns.clear()

    return tell


def _overview(all_series: list[Series]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("environment", "snapshots", "untrained", "medium", "expert", "expert without noise"):
        table.add_column(title, justify="left" if title == "environment" else "right")
    for one in all_series:
        drawn = [snapshot.stochastic for snapshot in (one.snapshots[0], one.medium, one.expert)]
        returns = [amount(measured.mean) for measured in (*drawn, one.expert.deterministic)]
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
        numbers = [amount(number) for way in ways for number in (way.mean, way.deviation)]
        table.add_row(f"{snapshot.steps:,}", *numbers, ", ".join(marks))
    return table
