"""What users type: the options, their help, and how mistakes are told. The work is in commands.py."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import shlex
import signal
import sys
from collections.abc import Iterator
from typing import Annotated, Literal, NoReturn, Union

import tyro
from tyro.conf import Positional, arg

import cwbc
from cwbc.cli_behaviours import Behaviours
from cwbc.cli_data import Action, Data, List, Make
from cwbc.cli_reproduce import Reproduce
from cwbc.errors import WRONG_PATH, DivergenceError, InputError
from cwbc.files import remove_folders_aside
from cwbc.option_names import check_names
from cwbc.option_types import (
    Dataset,
    Device,
    Directory,
    Environment,
    Flag,
    Flat,
    Precision,
    RaiseOptions,
    Real,
    Trackers,
    WeightingOptions,
    Whole,
)
from cwbc.option_values import READ

Numbers = Annotated[str | None, arg(metavar="X,X,...", help_behavior_hint="")]
DataPlace = Annotated[Literal["device", "host"] | None, arg(metavar="device|host", help_behavior_hint="")]
ConditionScaleName = Annotated[
    Literal["paper", "standardized", "bounded"] | None,
    arg(metavar="paper|standardized|bounded", help_behavior_hint=""),
]
PresetName = Annotated[Literal["paper", "small"] | None, arg(metavar="paper|small", help_behavior_hint="")]
MethodNames = Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD ...", help_behavior_hint="")]
# Several are read as well, so that it can be said that train takes one.
MethodName = Annotated[Positional[tuple[str, ...]], arg(metavar="METHOD", help_behavior_hint="(required)")]
Run = Annotated[Positional[str], arg(metavar="RUN", help_behavior_hint="")]
Runs = Annotated[Positional[tuple[str, ...]], arg(metavar="RUN ...", help_behavior_hint="")]

Limits = Annotated[
    tuple[str, ...],
    tyro.conf.UseAppendAction,
    arg(metavar="[METHOD:]METRIC=X,...", help_behavior_hint="(can be repeated)"),
]


@dataclasses.dataclass(frozen=True)
class Hyperparameters:
    """Each replaces one value of the preset; what they mean is the paper's."""

    batch_size: Whole = None
    """Windows in a batch (paper: 64)."""
    context: Whole = None
    """K, the steps of a window (paper: 20)."""
    precision: Precision = None
    """Of the hidden matrix products in training (default: bfloat16 on a GPU, float32 on a CPU)."""
    width: Whole = None
    """Hidden dimension (paper: 1024 for RvS, 128 for DT)."""
    layers: Whole = None
    """Hidden layers (paper: 2 for RvS, 3 for DT)."""
    heads: Whole = None
    """Attention heads of DT (paper: 1)."""
    dropout: Real = None
    """Dropout rate (paper: 0 for RvS, 0.1 for DT)."""
    learning_rate: Real = None
    """AdamW's learning rate (paper: 1e-3 for RvS, 1e-4 for DT)."""
    weight_decay: Real = None
    """AdamW's weight decay (paper: 1e-4)."""
    warmup_steps: Whole = None
    """Steps of linear warm-up, at most a tenth of the training (paper: 10,000)."""
    clip_norm: Real = None
    """Largest gradient norm (paper: none for RvS, 0.25 for DT)."""
    condition_scale: ConditionScaleName = None
    """Scale of the condition: paper as it is, standardized, or bounded to +-3 as well (default: bounded)."""
    return_scale: Real = None
    """Divisor of DT's returns-to-go (paper: 1000 for locomotion; default: their standard deviation)."""
    weighting: Annotated[WeightingOptions, Flat] = dataclasses.field(default_factory=WeightingOptions)
    top_fraction: Real = None
    """Part of the episodes that +f keeps (paper: 0.1)."""
    raising: Annotated[RaiseOptions, Flat] = dataclasses.field(default_factory=RaiseOptions)
    coefficient: Real = None
    """alpha, weight of the conservative loss (paper: 1)."""


@dataclasses.dataclass(frozen=True)
class TrainingOptions:
    """How much to train, and where."""

    seeds: Whole = None
    """Number of seeds (default: 10 with the paper preset, 3 with the small one)."""
    steps: Whole = None
    """Training steps (default: the preset's); more than before train a finished run on."""
    preset: PresetName = None
    """Sizes: the paper's, or minutes on two CPU cores (default: paper with a GPU, small without)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
    data_on: DataPlace = None
    """Where the data lies; from the host it is streamed (default: the device, where it has room)."""
    env: Environment = None
    """Gymnasium id of the environment, or module:ID of your own (default: what the dataset tells)."""
    out: Directory = None
    """Directory of the results (default: runs/DATASET; for train, METHOD below it)."""
    track: Trackers = None
    """Show the run in tensorboard, wandb or both as well (default: in neither)."""
    overwrite: Flag = False
    """Begin anew where the directory holds a run with other settings."""


@dataclasses.dataclass(frozen=True)
class SweepOptions:
    """What to ask for."""

    targets: Numbers = None
    """Asked returns, comma-separated (default: the paper's sweep for the task, and the dataset's best)."""
    episodes: Whole = None
    """Episodes per seed and target (default: 10)."""


@dataclasses.dataclass(frozen=True)
class Compare:
    """Train each method with all seeds, evaluate it over target returns, and write a report."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    methods: MethodNames
    """A base (bc rvs dt dt-concat) with parts (+w +c +f), or with +cwbc; such as rvs rvs+cwbc."""
    training: Annotated[TrainingOptions, Flat] = TrainingOptions()
    sweep: Annotated[SweepOptions, Flat] = SweepOptions()
    hyperparameters: Annotated[Hyperparameters, Flat] = Hyperparameters()


@dataclasses.dataclass(frozen=True)
class Train:
    """Train a method with all seeds; resumes by itself when the directory holds a checkpoint."""

    dataset: Dataset
    """A name (`cwbc data list`), a Minari id, or the path of a file (HDF5, NPZ, Parquet, CSV) or folder."""
    method: MethodName
    """A base (bc rvs dt dt-concat) with parts (+w +c +f), or with +cwbc."""
    training: Annotated[TrainingOptions, Flat] = TrainingOptions()
    hyperparameters: Annotated[Hyperparameters, Flat] = Hyperparameters()


@dataclasses.dataclass(frozen=True)
class Evaluate:
    """Evaluate a trained run over target returns."""

    run: Run
    """A run directory, or one that holds several."""
    sweep: Annotated[SweepOptions, Flat] = SweepOptions()
    env: Environment = None
    """Gymnasium id of the environment, or module:ID of your own (default: the run's)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
    track: Trackers = None
    """Show the results in tensorboard, wandb or both as well (default: in neither)."""
    overwrite: Flag = False
    """Replace results that were measured with other targets or episodes."""


@dataclasses.dataclass(frozen=True)
class Report:
    """Tables and pictures from finished runs, read from disk only."""

    runs: Runs
    """Run directories, or ones that hold several."""
    out: Directory = None
    """Directory of the report (default: the run's own, or `report` for several)."""
    fail_under: Limits = ()
    """Exit with 1 where the value of a method (not its interval) is below: ood_retention=0.9,at_expert=50.
    Each limit holds for all methods, or for one: rvs+cwbc:ood_retention=0.9.
    Of ood_retention, monotonicity, at_dataset_best, at_expert, at_twice_expert, best_point; where no expert
    is published, at_best_plus_range takes the place of at_expert and at_twice_expert."""
    fail_over: Limits = ()
    """The same where it is above, for what is better when lower: calibration_error=5."""


@dataclasses.dataclass(frozen=True)
class Demo:
    """The whole story in minutes, on any machine: make a dataset, compare rvs with rvs+cwbc on it."""

    seeds: Whole = None
    """Number of seeds (default: 3)."""
    steps: Whole = None
    """Training steps (default: 5,000)."""
    out: Directory = None
    """Directory of the results (default: runs/demo)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
    overwrite: Flag = False
    """Begin anew where the directory holds a run with other settings."""


Work = Compare | Train | Evaluate | Demo
Command = Annotated[
    Union[Compare, Train, Evaluate, Report, Reproduce, Demo, Data, Behaviours],  # noqa: UP007  # as in cli_data
    tyro.conf.ConsolidateSubcommandArgs,
    arg(help="what to do"),  # told here: tyro would look for it in the source of the whole of typing
]


def main(arguments: list[str] | None = None) -> None:
    """The `cwbc` command."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        print(f"cwbc {cwbc.__version__}")
        sys.exit(0)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # what cannot be shown somewhere is no reason to stop
            stream.reconfigure(errors="replace")
    try:
        check_names(Command, given)
    except InputError as error:
        sys.exit(_failed(2, str(error)))
    with _quiet_when_cut_off():
        command = tyro.cli(
            Command,
            args=given,
            prog="cwbc",
            registry=READ,
            description="Reliable return-conditioned behavioural cloning for offline reinforcement learning. "
            "`cwbc COMMAND --help` explains a command; `cwbc --version` tells the version.",
        )
    sys.exit(_run(command, shlex.join(["cwbc", *given])))


@contextlib.contextmanager
def _quiet_when_cut_off() -> Iterator[None]:
    """End without a word where `| head` has seen enough; not for long, since sockets need to be told."""
    if not hasattr(signal, "SIGPIPE"):
        yield
        return
    previous = signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGPIPE, previous)


def _run(command: Work | Report | Reproduce | Data | Behaviours, command_line: str) -> int:
    previous = signal.getsignal(signal.SIGINT)
    # The imports take a second or two, in which an exception from Ctrl-C would end in a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        if isinstance(command, Data):
            going_on = not isinstance(command.action, Make)
            signal.signal(signal.SIGINT, lambda number, frame: stop_now(command_line, going_on))
            return _run_data(command.action)
        if isinstance(command, Report):
            signal.signal(signal.SIGINT, lambda number, frame: stop_now(command_line))
            from cwbc import report_commands

            return report_commands.report(command)
        if isinstance(command, Behaviours):
            from cwbc import behaviour_commands

            behaviour_commands.run(command.action, command_line)
            return 0
        if command == Reproduce():
            from cwbc import reproduce_commands

            reproduce_commands.list_items()
            return 0
        from cwbc import commands

        with commands.stoppable(command_line) as session:
            if isinstance(command, Reproduce):
                return session.reproduce(command)
            session.run(command)
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
    return 0


def _run_data(action: Action) -> int:
    if isinstance(action, List):
        from cwbc import data_list

        data_list.list_datasets(action)
        return 0
    from cwbc import data_commands

    return data_commands.run(action)


def interrupted(command_line: str, going_on: bool = True) -> str:
    """What is said when a command was interrupted."""
    again = "this goes on with it" if going_on else "nothing was kept; this begins anew"
    return f"interrupted; {again}:\n{command_line}"


def stop_now(command_line: str, going_on: bool = True) -> NoReturn:
    """End the process as Ctrl-C does."""
    # Not an exception: raised inside a callback of the garbage collector, it would be lost.
    remove_folders_aside()
    # Past sys.stderr, which a progress bar takes for its own, and which refuses to be written to where a line
    # is being printed just now. A bar also hides the cursor.
    cursor = "\x1b[?25h" if os.isatty(2) else ""
    with contextlib.suppress(OSError):
        os.write(2, f"{cursor}\ncwbc: {interrupted(command_line, going_on)}\n".encode(errors="replace"))
    os._exit(128 + signal.SIGINT)


def _failed(status: int, text: str) -> int:
    from cwbc.plain_text import printable

    print(f"cwbc: {printable(text)}", file=sys.stderr)
    return status
