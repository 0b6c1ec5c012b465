"""The `cwbc` command: finds the command that was typed, parses its options, and reports mistakes."""

from __future__ import annotations

import contextlib
import difflib
import functools
import importlib
import io
import os
import shlex
import signal
import sys
from collections.abc import Mapping
from typing import Any, NoReturn

import cwbc
from cwbc.system.errors import WRONG_PATH, DifferenceError, DivergenceError, InputError
from cwbc.system.files import remove_folders_aside

ABOUT = "Reliable return-conditioned behavioural cloning for offline reinforcement learning."


# A command is a dataclass of its options with a method `run`, in a module of its own or with others: only the
# module of the command that was typed is imported.
COMMANDS: Mapping[str, tuple[str, str]] = {
    "compare": ("compare.Compare", "train each method, evaluate it over target returns, write a report"),
    "train": ("train.Train", "train only; resumes by itself"),
    "evaluate": ("evaluate.Evaluate", "evaluate a trained run over target returns"),
    "report": ("report.ReportRuns", "tables and charts from finished runs, read from disk only"),
    "recommend": ("recommend.Recommend", "which method and target return to deploy, and what to expect"),
    "export": ("export.ExportPolicy", "a policy for other runtimes: ONNX, or NumPy alone"),
    "video": ("video.Video", "one episode per target return, side by side, as an animated PNG"),
    "reproduce": ("reproduce.Reproduce", "one table or figure of the paper; without ITEM, a list of them"),
    "demo": ("compare.Demo", "compare rvs with rvs+cwbc on a generated dataset, in minutes on any machine"),
    "data list": ("data_list.ListDatasets", "every dataset that is stored here or available"),
    "data show": ("data.ShowDataset", "dataset statistics, the effect of weighting and regularizer, advice"),
    "data check": ("data.CheckDataset", "all errors and warnings in a dataset, with episode, row and column"),
    "data make": ("data.MakeDataset", "generate a dataset like D4RL's, without a download"),
    "data download": ("data.DownloadDataset", "download a dataset of D4RL or Minari"),
    "data import": ("data.ImportDataset", "check your own logs and store them under a name"),
    "data export": ("data.ExportDataset", "write a dataset as a Minari dataset or an HDF5 file"),
    "data remove": ("data.RemoveDataset", "remove a dataset from the store"),
    "behaviours train": ("behaviours.TrainBehaviours", "train behaviour policies (SAC)"),
    "behaviours show": ("snapshots.ShowBehaviours", "snapshots of behaviour policies and their returns"),
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
        if name not in COMMANDS:  # the help of a group of commands
            print(_overview(name))
            sys.exit(0)
        command = _parsed(name, rest)
    except InputError as error:
        sys.exit(_failed(2, str(error)))
    sys.exit(_run(command, shlex.join(["cwbc", *given])))


def _named(given: list[str]) -> tuple[str, list[str]]:
    """The command that the first words name, and the rest; a group of commands where help is wanted."""
    group = ""
    for number, word in enumerate(given):
        if word in ("-h", "--help"):
            break
        if word.startswith("-"):
            where = f"`cwbc {group}--help` lists the commands"
            raise InputError(f"{word}: options stand after a command; {where}")
        # The words that can follow those of the group.
        known = [name.removeprefix(group).split()[0] for name in COMMANDS if name.startswith(group)]
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            hint = f"did you mean {group}{near[0]}?" if near else f"known: {', '.join(dict.fromkeys(known))}"
            raise InputError(f"unknown command {group + word!r}; {hint}")
        if group + word in COMMANDS:
            return group + word, given[number + 1 :]
        group += f"{word} "
    return group.strip(), []


def _overview(group: str) -> str:
    prefix = f"{group} " if group else ""
    shown = {name: summary for name, (_, summary) in COMMANDS.items() if name.startswith(prefix)}
    width = max(map(len, shown))
    lines = [f"  {name:<{width}}  {summary}" for name, summary in shown.items()]
    usage = f"usage: cwbc {prefix}COMMAND ..."
    details = f"`cwbc {prefix}COMMAND --help` explains a command; `cwbc --version` prints the version."
    return "\n".join([usage, "", ABOUT, "", "commands:", *lines, "", details])


def load(name: str) -> Any:
    """The class of a command."""
    module, of = COMMANDS[name][0].split(".")
    return getattr(importlib.import_module(f"cwbc.cli.{module}"), of)


def _parsed(name: str, rest: list[str]) -> Any:
    import tyro

    from cwbc.cli.options import READ, check_options

    command = load(name)
    check_options(command, rest, f"cwbc {name}")
    # End silently when `| head` closes the pipe of the help; only briefly, since sockets need the error.
    pipe = getattr(signal, "SIGPIPE", None)  # Windows has none
    previous = signal.signal(pipe, signal.SIG_DFL) if pipe else None
    try:
        return tyro.cli(command, args=rest, prog=f"cwbc {name}", registry=READ)
    finally:
        if pipe:
            signal.signal(pipe, previous)


def _run(command: Any, command_line: str) -> int:
    from cwbc.cli.session import Session
    from cwbc.system.interrupts import stoppable

    session = Session(command_line)
    # While nothing is to be saved, Ctrl-C stops at once: an exception would end some imports in a traceback.
    stop = functools.partial(stop_now, command_line, getattr(command, "resumes", True))
    with stoppable(session.say, stop, lambda: session.saves) as session.is_stopping:
        try:
            return int(command.run(session) or 0)
        except InputError as error:
            return _failed(2, str(error))
        except OSError as error:
            text = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            return _failed(2 if isinstance(error, WRONG_PATH) else 1, text)
        except (DivergenceError, DifferenceError) as error:
            return _failed(1, str(error))
        except KeyboardInterrupt:
            return _failed(128 + signal.SIGINT, interrupted(command_line))


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
