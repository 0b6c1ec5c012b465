"""What users type after `cwbc data`; the work is in data_list.py and data_commands.py."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal, Union

from tyro.conf import Positional, arg

from cwbc.option_types import Environment, Flag, Flat, RaiseOptions, Real, WeightingOptions, Whole

Name = Annotated[Positional[str], arg(metavar="NAME", help_behavior_hint="")]
Path = Annotated[Positional[str], arg(metavar="PATH", help_behavior_hint="")]
Text = Annotated[str | None, arg(metavar="COLUMN", help_behavior_hint="")]
Texts = Annotated[str | None, arg(metavar="COLUMN,COLUMN,...", help_behavior_hint="")]
Word = Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")]
Address = Annotated[str | None, arg(metavar="URL", help_behavior_hint="")]
Size = Annotated[str | None, arg(metavar="N|full", help_behavior_hint="")]
Folder = Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")]
File = Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")]
Target = Annotated[str | None, arg(metavar="ID|FILE", aliases=["--out"], help_behavior_hint="")]
ActionKind = Annotated[
    Literal["continuous", "discrete"] | None, arg(metavar="continuous|discrete", help_behavior_hint="")
]


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """Which columns of a table mean what; what is not given is found by name."""

    episode: Text = None
    """Names the episode of each row (found: episode, episode_id, trajectory, ...)."""
    step: Text = None
    """Orders the rows of an episode (found: step, timestep, t; without one, they are in order)."""
    observations: Texts = None
    """The observation, with * for any letters (found: observation or observation_*, obs, state)."""
    actions: Texts = None
    """The action (found: action or action_*); one column of whole numbers is a discrete action."""
    reward: Text = None
    """What the step earned (found: reward)."""
    terminated: Text = None
    """True where the environment ended the episode (found: terminated, terminal)."""
    truncated: Text = None
    """True where a time limit cut it off (found: truncated, timeout)."""
    done: Text = None
    """True on each last step, whatever the reason (found: done)."""
    action_kind: ActionKind = None
    """Whether actions are real numbers or numbers of choices (default: by their type)."""
    env: Environment = None
    """Gymnasium id of the environment that the data is from (default: what the data tells)."""
    time_limit: Whole = None
    """H, the most steps that an episode can have (default: the environment's, or the longest episode)."""
    action_count: Whole = None
    """Number of discrete actions (default: the highest one seen, and one more)."""
    max_gigabytes: Real = None
    """What the file may unfold to in memory (default: 1, or 256 times its size)."""


@dataclasses.dataclass(frozen=True)
class List:
    """Show every dataset: those here with their sizes, and those that can be had."""

    json: Flag = False
    """Print JSON, for programs."""


@dataclasses.dataclass(frozen=True)
class Show:
    """Show what a dataset holds, and what weighting and regularizer would make of it."""

    name: Name
    """A name (`cwbc data list`), a Minari id, or the path of a file or folder."""
    weighting: Annotated[WeightingOptions, Flat] = dataclasses.field(default_factory=WeightingOptions)
    raising: Annotated[RaiseOptions, Flat] = dataclasses.field(default_factory=RaiseOptions)
    env: Environment = None
    """Gymnasium id of the environment (default: what the dataset tells)."""
    plot: File = None
    """Write a picture of the returns before and after weighting: .png, .svg or .pdf."""
    json: Flag = False
    """Print JSON, for programs."""


@dataclasses.dataclass(frozen=True)
class Check:
    """Print all that is wrong or doubtful in a dataset, with episode, row and column."""

    path: Path
    """The path of a file or folder, or a name."""
    table: Annotated[TableOptions, Flat] = TableOptions()
    places: Annotated[int, arg(metavar="N", help_behavior_hint="")] = 3
    """Places shown of each problem; all of them are counted (default: 3)."""
    json: Flag = False
    """Print JSON, for programs."""


@dataclasses.dataclass(frozen=True)
class Make:
    """Make a dataset on the spot, as D4RL's were: cwbc/halfcheetah/medium-replay-v0 and the like."""

    name: Name
    """A name that `cwbc data list` shows; of your own behaviours, one such as pendulum/medium-replay-v0."""
    size: Size = None
    """Steps, or full: D4RL's 1 M, 2 M for medium-expert, 202,000 to 402,000 for replays (default: 200000)."""
    behaviours: Folder = None
    """A directory that `cwbc behaviours train` made (default: the behaviours that come with cwbc)."""
    env: Environment = None
    """Their environment, needed where it is module:ID of your own."""
    overwrite: Flag = False
    """Replace the one that is here."""


@dataclasses.dataclass(frozen=True)
class Download:
    """Get a dataset of D4RL (hopper-medium-replay-v2) or of Minari (mujoco/hopper/medium-v0)."""

    name: Name
    """A name that `cwbc data list` shows, or a Minari id."""
    url: Address = None
    """Another address of the same file (a mirror of all: the environment variable CWBC_D4RL_MIRROR)."""
    overwrite: Flag = False
    """Replace the one that is here."""


@dataclasses.dataclass(frozen=True)
class Import:
    """Check your own logs (HDF5, NPZ, Parquet, CSV: one row per step) and keep them under a name."""

    path: Path
    """The path of a file, a folder of Parquet files or a Minari dataset."""
    name: Word = None
    """The name to keep it under (default: the file's)."""
    table: Annotated[TableOptions, Flat] = TableOptions()
    overwrite: Flag = False
    """Replace a dataset of the same name."""


@dataclasses.dataclass(frozen=True)
class Export:
    """Write a dataset for other tools: as a Minari dataset, or as an HDF5 file in D4RL's layout."""

    name: Name
    """A name (`cwbc data list`), a Minari id, or the path of a file or folder."""
    format: Annotated[Literal["minari", "hdf5"], arg(metavar="minari|hdf5", help_behavior_hint="")]
    """What to write."""
    to: Target = None
    """The Minari id or the file to write (default: NAME-v0 or NAME.hdf5)."""
    overwrite: Flag = False
    """Replace what is there."""


@dataclasses.dataclass(frozen=True)
class Remove:
    """Remove a dataset from the store; files that are not the store's own stay where they are."""

    name: Name
    """A name that `cwbc data list` shows as here."""


Work = Show | Check | Make | Download | Import | Export | Remove
# Not List | Work: to tell such a union apart, tyro imports a type checker, which takes its time.
Action = Union[List, Work]  # noqa: UP007


@dataclasses.dataclass(frozen=True)
class Data:
    """Datasets: list, show, check, make, download, import, export, remove."""

    action: Annotated[Action, Flat]
