"""The `cwbc` command: finds the command that was typed, parses its options, and reports mistakes."""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import importlib
import io
import os
import shlex
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import cwbc
from cwbc.system.errors import WRONG_PATH, DivergenceError, InputError
from cwbc.system.files import remove_folders_aside

ABOUT = "Reliable return-conditioned behavioural cloning for offline reinforcement learning."


@dataclasses.dataclass(frozen=True)
class Command:
    """The location of a command: a dataclass of its options, with a method `run`."""

    module: str  # below cwbc.cli
    name: str
    summary: str
    resumes: bool = True  # where it was interrupted

    def load(self) -> Any:
        return getattr(importlib.import_module(f"cwbc.cli.{self.module}"), self.name)


# Only the module of the command that was typed is imported.
COMMANDS: Mapping[str, Command] = {
    "compare": Command(
        "compare", "Compare", "train each method, evaluate it over target returns, write a report"
    ),
    "train": Command("train", "Train", "train only; resumes by itself"),
    "evaluate": Command("evaluate", "Evaluate", "evaluate a trained run over target returns"),
    "report": Command("report", "ReportRuns", "tables and charts from finished runs, read from disk only"),
    "reproduce": Command(
        "reproduce", "Reproduce", "one table or figure of the paper; without ITEM, a list of them"
    ),
    "demo": Command(
        "demo", "Demo", "compare rvs with rvs+cwbc on a generated dataset, in minutes on any machine"
    ),
    "data list": Command("data_list", "ListDatasets", "every dataset that is stored here or available"),
    "data show": Command(
        "data", "ShowDataset", "dataset statistics, the effect of weighting and regularizer, advice"
    ),
    "data check": Command(
        "data", "CheckDataset", "all errors and warnings in a dataset, with episode, row and column"
    ),
    "data make": Command(
        "data", "MakeDataset", "generate a dataset like D4RL's, without a download", resumes=False
    ),
    "data download": Command("data", "DownloadDataset", "download a dataset of D4RL or Minari"),
    "data import": Command("data", "ImportDataset", "check your own logs and store them under a name"),
    "data export": Command("data", "ExportDataset", "write a dataset as a Minari dataset or an HDF5 file"),
    "data remove": Command("data", "RemoveDataset", "remove a dataset from the store"),
    "behaviours train": Command("behaviours", "TrainBehaviours", "train behaviour policies (SAC)"),
    "behaviours show": Command(
        "snapshots", "ShowBehaviours", "snapshots of behaviour policies and their returns"
    ),
}


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command that was typed, and exit."""
    given = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # replace characters that cannot be printed
            stream.reconfigure(errors="replace")
    if given == ["--version"]:
        print(f"cwbc {cwbc.__version__}")
        sys.exit(0)
    try:
        name, rest = _named(given)
        entry = COMMANDS.get(name)
        if entry is None:  # the help of a group of commands
            print(_overview(name))
            sys.exit(0)
        command = _parsed(name, entry, rest)
    except InputError as error:
        sys.exit(_failed(2, str(error)))
    sys.exit(_run(command, entry, shlex.join(["cwbc", *given])))


def _named(given: list[str]) -> tuple[str, list[str]]:
    """The command that the first words name, and the rest; a group of commands where help is wanted."""
    group = ""
    for number, word in enumerate(given):
        if word in ("-h", "--help"):
            return group.strip(), []
        if word.startswith("-"):
            raise InputError(
                f"{word}: options stand after a command; `cwbc {group}--help` lists the commands"
            )
        known = _below(group)
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            hint = f"did you mean {group}{near[0]}?" if near else f"known: {', '.join(known)}"
            raise InputError(f"unknown command {group + word!r}; {hint}")
        if group + word in COMMANDS:
            return group + word, given[number + 1 :]
        group += f"{word} "
    return group.strip(), []


def _below(group: str) -> list[str]:
    """The words that can follow those of a group."""
    names = [name.removeprefix(group) for name in COMMANDS if name.startswith(group)]
    return list(dict.fromkeys(name.split()[0] for name in names))


def _overview(group: str) -> str:
    prefix = f"{group} " if group else ""
    shown = {name: entry.summary for name, entry in COMMANDS.items() if name.startswith(prefix)}
    width = max(map(len, shown))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in shown.items()]
    usage = f"usage: cwbc {prefix}COMMAND ..."
    details = f"`cwbc {prefix}COMMAND --help` explains a command; `cwbc --version` prints the version."
    return "\n".join([usage, "", ABOUT, "", "commands:", *lines, "", details])


def _parsed(name: str, entry: Command, rest: list[str]) -> Any:
    import tyro

    from cwbc.cli.options import READ, check_options

    command = entry.load()
    check_options(command, rest, f"cwbc {name}")
    with _quiet_on_closed_pipe():
        return tyro.cli(command, args=rest, prog=f"cwbc {name}", registry=READ)


@contextlib.contextmanager
def _quiet_on_closed_pipe() -> Iterator[None]:
    """End silently when `| head` closes the pipe; only briefly, since sockets need the error."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    previous = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, previous)


def _run(command: Any, entry: Command, command_line: str) -> int:
    previous = signal.getsignal(signal.SIGINT)
    # Until a command handles Ctrl-C itself; an exception would end some imports in a traceback.
    signal.signal(signal.SIGINT, lambda number, frame: stop_now(command_line, entry.resumes))
    try:
        return int(command.run(command_line) or 0)
    except InputError as error:
        return _failed(2, str(error))
    except OSError as error:
        text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        return _failed(2 if isinstance(error, WRONG_PATH) else 1, text)
    except DivergenceError as error:
        return _failed(1, str(error))
    except KeyboardInterrupt:
        return _failed(128 + signal.SIGINT, interrupted(command_line))
    finally:
        signal.signal(signal.SIGINT, previous)


def interrupted(command_line: str, resumes: bool = True) -> str:
    """The message of an interrupted command."""
    again = "this resumes it" if resumes else "nothing was stored; this starts over"
    return f"interrupted; {again}:\n{command_line}"


def stop_now(command_line: str, resumes: bool = True) -> NoReturn:
    """End the process as Ctrl-C does."""
    # Not an exception: inside a callback of the garbage collector, it would be lost.
    remove_folders_aside()
    # Past sys.stderr, which a progress bar takes for its own, and which refuses to be written to while a line
    # is being printed. A bar also hides the cursor.
    cursor = "\x1b[?25h" if os.isatty(2) else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{cursor}\ncwbc: {interrupted(command_line, resumes)}\n".encode(errors="replace"))
    os._exit(128 + signal.SIGINT)


def _failed(status: int, text: str) -> int:
    from cwbc.system.console import printable

    print(f"cwbc: {printable(text)}", file=sys.stderr)
    return status
