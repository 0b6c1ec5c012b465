"""`cwbc data`: datasets are shown, checked, generated, downloaded, imported, exported and removed."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from cwbc import envs
from cwbc.cli.options import Directory, Environment, Flag, Flat, Json, Whole, given, options_of
from cwbc.cli.session import Session
from cwbc.core.regularizers import Conservative
from cwbc.core.weighting import ByReturn
from cwbc.data import SOURCES, checks, compatibility, generated, is_reserved, minari, read, store, stored_name
from cwbc.data.checks import Recording
from cwbc.data.dqn_replay import ReplayOptions
from cwbc.data.formats import hdf5
from cwbc.data.formats.columns import BY_NAME, ColumnOptions
from cwbc.data.issues import DataError, Issue
from cwbc.system.console import PlainConsole, output
from cwbc.system.errors import WRONG_PATH, InputError, UnavailableError, require, unknown
from cwbc.system.files import replace_atomically
from cwbc.system.formatting import counted
from cwbc.system.progress import gauge

Name = Annotated[Positional[str], arg(metavar="NAME", help_behavior_hint="")]
PathName = Annotated[Positional[str], arg(metavar="PATH", help_behavior_hint="")]

if TYPE_CHECKING:
    from cwbc.core.trajectories import Trajectories
    from cwbc.data.sources import ReadOptions
    from cwbc.reports.png import Illustration

    Columns = Any
    Replay = Any
    WeightingOptions = Any
    RegularizerOptions = Any
else:
    Columns = options_of((ColumnOptions,), "Columns", text="COLUMN")
    Replay = options_of((ReplayOptions,), "Replay", text="N,N-N,...")
    WeightingOptions = options_of((ByReturn,), "WeightingOptions")
    RegularizerOptions = options_of((Conservative,), "RegularizerOptions", without=("coefficient",))


@dataclasses.dataclass(frozen=True)
class TableOptions:
    """The options of reading a table, or DQN-replay files."""

    format: Annotated[Literal["dqn-replay"] | None, arg(help_behavior_hint="")] = None
    """Read a folder of Google's DQN-replay files (default: the format that the files have)."""
    columns: Annotated[Columns, Flat] = dataclasses.field(default_factory=Columns)
    replay: Annotated[Replay, Flat] = dataclasses.field(default_factory=Replay)
    env: Environment = None
    """Gymnasium id of the environment of the data (default: the one that the data implies)."""
    time_limit: Whole = None
    """H, the most steps that an episode can have (default: the environment's, or the longest episode)."""
    action_count: Whole = None
    """Number of discrete actions (default: the highest one seen, and one more)."""
    clip_rewards: Flag = False
    """Clip rewards to [-1, 1], those of the data and those that a policy receives while it acts."""
    max_gigabytes: Annotated[float | None, arg(help_behavior_hint="")] = None
    """Memory that the file may expand to (default: 1, or 256 times its size)."""

    @property
    def options(self) -> ReadOptions:
        """The options of the format."""
        columns = ColumnOptions(**vars(self.columns))
        if self.format is None and not given(self.replay):
            return columns
        if columns != BY_NAME:
            raise InputError(
                "column options are for tables; the columns of DQN-replay files have their roles"
            )
        return ReplayOptions(**vars(self.replay))


@dataclasses.dataclass(frozen=True)
class ShowDataset:
    """Show the statistics of a dataset, and the effect of weighting and regularizer."""

    name: Name
    """A name (`cwbc data list`), a Minari id, or the path of a file or folder."""
    weighting: Annotated[WeightingOptions, Flat] = dataclasses.field(default_factory=WeightingOptions)
    regularizer: Annotated[RegularizerOptions, Flat] = dataclasses.field(default_factory=RegularizerOptions)
    env: Environment = None
    """Gymnasium id of the environment (default: the one that the dataset implies)."""
    plot: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Write a chart of the returns before and after weighting: .png, .svg or .pdf; of a maze, paths too; of
    images, frames of the best episode."""
    json: Json = False

    def run(self, session: Session) -> None:
        from cwbc.data.advice import advice
        from cwbc.data.statistics import DatasetStatistics
        from cwbc.reports import description

        weighting = ByReturn(**given(self.weighting))
        regularizer = Conservative(**given(self.regularizer))
        with session.reading(self.name) as update:
            data = read(self.name, self.env, progress=update).trusted()
        statistics = DatasetStatistics.of(data, weighting, regularizer)
        if self.plot is not None:
            from cwbc.reports.report import need_plots

            need_plots()
            from cwbc.reports import png
            from cwbc.reports.dataset_charts import description_chart

            with _writing(self.plot, "--plot"):
                png.save(description_chart(statistics), Path(self.plot), _illustration_of(data, session))
            session.say(f"chart: {self.plot}")
        if self.json:
            facts = dataclasses.asdict(statistics) | {"advice": advice(statistics, self.name)}
            output(json.dumps(facts, indent=2))
        else:
            description.show(statistics, PlainConsole(), self.name)


@dataclasses.dataclass(frozen=True)
class CheckDataset:
    """Print the data issues (errors, warnings) of a dataset, with episode, row and column."""

    path: PathName
    """The path of a file or folder, or a name."""
    table: Annotated[TableOptions, Flat] = TableOptions()
    places: Annotated[int, arg(metavar="N", help_behavior_hint="")] = 3
    """Locations shown of each issue; all of them are counted (default: 3)."""
    json: Json = False

    def run(self, session: Session) -> int:
        """Print the data issues of a dataset; 2 when it cannot be used."""
        require(self.places >= 1, "--places", self.places, "at least 1")
        recording = None
        try:
            recording = _read(self.path, self.table, session)
            issues = [*recording.errors(), *recording.warnings()]
        except DataError as error:
            issues = list(error.issues)
        except InputError as error:
            issues = [Issue("error", str(error))]
        errors = sum(issue.severity == "error" for issue in issues)
        if self.json:
            ignored = list(recording.origin.ignored) if recording else []
            shown = [issue.to_json(self.places) for issue in issues]
            output(json.dumps({"usable": not errors, "ignored_columns": ignored, "issues": shown}, indent=2))
            return 2 if errors else 0
        for issue in issues:
            output(f"{issue.severity}: {issue.sentence(self.places)}")
        verdict = f"can be used, {counted(len(issues), 'warning')}" if issues else "no issues"
        if errors:
            verdict = f"cannot be used: {counted(errors, 'error')}"
        if recording is None:
            output(f"{self.path}: {verdict}; nothing else could be checked")
        else:
            _show_columns(recording, session)
            counts = f"{counted(recording.data.episodes, 'episode')}, {counted(recording.data.steps, 'step')}"
            output(f"{self.path}: {counts}; {verdict}")
        return 2 if errors else 0


@dataclasses.dataclass(frozen=True)
class MakeDataset:
    """Generate a dataset as D4RL's were: cwbc/halfcheetah/medium-replay-v0 and the like."""

    name: Name
    """A name that `cwbc data list` shows; of your own behaviours, one such as pendulum/medium-replay-v0."""
    size: Annotated[str | None, arg(metavar="N|small|full", help_behavior_hint="")] = None
    """Steps, or small (200000; games 25000), or full (D4RL's: 0.2 to 4 M; games 500000); default: small."""
    behaviours: Directory = None
    """A directory that `cwbc behaviours train` wrote (default: the behaviours that come with cwbc)."""
    env: Environment = None
    """Their environment, needed where it is module:ID of your own."""
    overwrite: Flag = False
    """Replace the one that is here."""

    resumes = False  # where it is interrupted, nothing is stored

    def run(self, session: Session) -> None:
        folder = None if self.behaviours is None else Path(self.behaviours)
        spec = generated.DatasetSpec.of(self.name, self.size or generated.SMALL, folder)
        if self.env not in (None, spec.recipe.environment):
            raise InputError(f"these behaviours act in {spec.recipe.environment}, not in {self.env}")
        envs.allow(self.env)
        entry = None if self.overwrite else spec.stored()
        if entry is not None:
            session.say(f"{spec.name} is here already")
        else:
            with gauge(session.console, f"generating {spec.name}", "steps") as update:
                entry = spec.generate(self.overwrite, update)
        _show_entry(entry, session)


@dataclasses.dataclass(frozen=True)
class DownloadDataset:
    """Get a dataset of D4RL (hopper-medium-replay-v2) or of Minari (mujoco/hopper/medium-v0)."""

    name: Name
    """A name that `cwbc data list` shows, or a Minari id."""
    url: Annotated[str | None, arg(metavar="URL", help_behavior_hint="")] = None
    """Another address of the same file (a mirror of all: the environment variable CWBC_D4RL_MIRROR)."""
    overwrite: Flag = False
    """Replace the one that is here."""

    def run(self, session: Session) -> None:
        remotes = [(source.remote, source) for source in SOURCES if source.remote is not None]
        found = next((remote for remote, _ in remotes if remote.knows(self.name)), None)
        if found is None:
            raise unknown("dataset", self.name, (name for _, source in remotes for name in source.names()))
        shown = gauge(session.console, self.name, found.unit) if found.unit else contextlib.nullcontext()
        with shown as update:
            entry, remark = found.download(self.name, self.url, self.overwrite, update)
        _show_entry(entry, session)
        if remark:
            session.say(remark)


@dataclasses.dataclass(frozen=True)
class ImportDataset:
    """Check your own logs (HDF5, NPZ, Parquet, CSV: one row per step) and store them under a name."""

    path: PathName
    """The path of a file, a folder of Parquet files, of DQN-replay files or a Minari dataset."""
    name: Annotated[str | None, arg(metavar="NAME", help_behavior_hint="")] = None
    """The name to store it under (default: the file's)."""
    table: Annotated[TableOptions, Flat] = TableOptions()
    overwrite: Flag = False
    """Replace a dataset of the same name."""

    def run(self, session: Session) -> None:
        if self.name is not None:
            store.check_name(self.name, self.overwrite)
        recording = _read(self.path, self.table, session)
        data = dataclasses.replace(recording.data, name=self.name or recording.data.name)
        store.check_name(data.name, self.overwrite)
        if is_reserved(data.name):
            raise InputError(f"{data.name} is the name of another dataset; choose another --name")
        recording.trusted()
        for issue in recording.warnings():
            session.warn(issue.sentence())
        _show_columns(recording, session)
        source = str(Path(self.path).resolve()) if Path(self.path).exists() else self.path
        _show_entry(store.add(data, source, self.overwrite), session)


@dataclasses.dataclass(frozen=True)
class ExportDataset:
    """Write a dataset for other tools: as a Minari dataset, or as an HDF5 file in D4RL's layout."""

    name: Name
    """A name (`cwbc data list`), a Minari id, or the path of a file or folder."""
    format: Annotated[Literal["minari", "hdf5"], arg(metavar="minari|hdf5", help_behavior_hint="")]
    """The format to write."""
    to: Annotated[str | None, arg(metavar="ID|FILE", aliases=["--out"], help_behavior_hint="")] = None
    """The Minari id or the file to write (default: NAME-v0 or NAME.hdf5)."""
    overwrite: Flag = False
    """Replace an existing dataset or file."""

    def run(self, session: Session) -> None:
        with session.reading(self.name) as update:
            data = read(self.name, progress=update).trusted()
        if self.format == "minari":
            name = self.to or (data.name if re.search(r"-v\d+$", data.name) else f"{data.name}-v0")
            path = minari.adapter().export(data, name, self.overwrite)
            session.say(f"Minari dataset {name}: {path}")
            return
        path = Path(self.to or f"{data.name.replace('/', '-')}.hdf5")
        if path.is_dir():
            raise InputError(f"{path} is a folder; --to names the file to write")
        if path.exists() and not self.overwrite:
            raise InputError(f"{path} exists; --overwrite replaces it")
        if not path.parent.is_dir():
            raise InputError(f"{path.parent} is no folder; --to names the file to write in one")
        aside = path.with_name(f".{path.name}.tmp")
        with _writing(path, "--to"):
            hdf5.write(aside, data)
            replace_atomically(aside, path)
        session.say(f"HDF5 file in D4RL's layout: {path}")


@dataclasses.dataclass(frozen=True)
class RemoveDataset:
    """Remove a dataset from the store; files that are not the store's own stay where they are."""

    name: Name
    """A name that `cwbc data list` shows as here."""

    def run(self, session: Session) -> None:
        stored = stored_name(self.name)
        if stored is None:
            if minari.has(self.name):
                folder = minari.root() / self.name
                raise InputError(f"{self.name} is in Minari's own folder, not in the store: {folder}")
            if Path(self.name).exists():
                which = "only datasets of the store are removed, by their names"
                raise InputError(f"{self.name} is a path; {which}")
        name = stored or self.name
        size, others = store.remove(name)
        session.say(f"removed {self.name}: {size:,} bytes from {store.root() / name}")
        if others:
            session.say(f"not removed, since they are not the store's: {_some(tuple(others))}")


def _illustration_of(data: Trajectories, session: Session) -> Illustration | None:
    """How to draw frames of a dataset, or its maze, where it has one and the packages for that are here."""
    if data.has_images:
        from cwbc.reports.filmstrip import filmstrip

        return filmstrip(data)
    if not (data.environment or "").startswith(envs.OWN):
        return None
    try:
        envs.need_simulators()
        from cwbc.reports.maze_picture import maze_picture

        return maze_picture(data)
    except UnavailableError as error:
        session.say(f"the maze is not drawn: {error}")
        return None


@contextlib.contextmanager
def _writing(path: str | Path, option: str) -> Iterator[None]:
    """Report a file that cannot be written by its own name, and the option that names another."""
    try:
        yield
    except OSError as error:
        if not error.errno:
            raise
        if not isinstance(error, WRONG_PATH):
            raise OSError(error.errno, error.strerror, str(path)) from error
        reason = os.strerror(error.errno)
        raise InputError(f"{path} cannot be written ({reason}); give another {option}") from error


def _read(path: str, table: TableOptions, session: Session) -> Recording:
    limit, count, possible = table.time_limit, table.action_count, f"from 1 to {checks.MOST_ACTIONS:,}"
    require(limit is None or 1 <= limit < 2**31, "--time-limit", limit, f"from 1 to {2**31 - 1:,}")
    require(count is None or 1 <= count <= checks.MOST_ACTIONS, "--action-count", count, possible)
    options = table.options
    with session.reading(path) as update:
        recording = read(path, table.env, options, limit, count, update, table.max_gigabytes)
    if table.clip_rewards:
        recording = dataclasses.replace(recording, data=recording.data.with_clipped_rewards())
    return compatibility.fitted(recording)


def _show_columns(recording: Recording, session: Session) -> None:
    """Show which columns were used for what, and which were not used."""
    data, origin = recording.data, recording.origin
    choices = f", {data.action_size:,} discrete actions" if data.discrete else ""
    if data.observation_names:
        session.say(f"observations from {_some(data.observation_names)}")
    if data.action_names:
        session.say(f"actions from {_some(data.action_names)}{choices}")
    if origin.step_name not in (None, "step"):
        session.say(f"steps in the order of {origin.step_name}")
    if data.clipped_rewards:
        session.say("rewards are clipped to [-1, 1], and target returns are sums of clipped rewards")
    if origin.ignored:
        session.say(f"not used: {_some(origin.ignored)}")


def _some(names: tuple[str, ...], most: int = 12) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name.strip() or repr(name) for name in names[:most]) + rest


def _show_entry(entry: store.Entry, session: Session) -> None:
    session.show(entry)
    session.say(f"`cwbc data show {entry.name}` shows it")
