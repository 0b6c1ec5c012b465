"""What `cwbc data` does with a dataset; nothing here needs jax."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import assert_never

from cwbc import checks, cli_data, fitting, option_types, simulators
from cwbc.datasets import d4rl, hdf5, made, read, removal, store
from cwbc.datasets.columns import ColumnOptions
from cwbc.datasets.download import discard, download, file_hash
from cwbc.datasets.minari import places
from cwbc.errors import WRONG_PATH, InputError, require, unknown
from cwbc.files import replace_atomically
from cwbc.findings import Finding, Rejected
from cwbc.plain_text import PlainConsole, output, say
from cwbc.progress import gauge
from cwbc.recordings import Recording
from cwbc.trajectories import Trajectories
from cwbc.wording import amount, counted


def run(action: cli_data.Work) -> int:
    """Do what was asked for; the exit status."""
    match action:
        case cli_data.Show():
            show(action)
        case cli_data.Check():
            return check(action)
        case cli_data.Make():
            make(action)
        case cli_data.Download():
            get(action)
        case cli_data.Import():
            import_dataset(action)
        case cli_data.Export():
            export(action)
        case cli_data.Remove():
            remove(action)
        case _:
            assert_never(action)
    return 0


def show(action: cli_data.Show) -> None:
    """What a dataset holds, and what weighting and regularizer would make of it."""
    from cwbc.advice import advice
    from cwbc.description import Description
    from cwbc.regularizers import Conservative
    from cwbc.reporting import description as shown
    from cwbc.weighting import ByReturn

    weighting = ByReturn(**option_types.given(action.weighting))
    regularizer = Conservative(**option_types.given(action.raising))
    with gauge(PlainConsole(stderr=True), *made.doing(action.name)) as update:
        data = read(action.name, action.env, progress=update).trusted()
    description = Description.of(data, weighting, regularizer)
    if action.plot is not None:
        from cwbc.reporting.description_figures import plot

        with _writing(action.plot, "--plot"):
            plot(description, Path(action.plot))
        say(f"picture: {action.plot}")
    if action.json:
        told = description.to_json() | {"advice": advice(description, action.name)}
        output(json.dumps(told, indent=2))
    else:
        shown.show(description, PlainConsole(), action.name)


def check(action: cli_data.Check) -> int:
    """Everything that is wrong or doubtful in a dataset; 2 when it cannot be used."""
    require(action.places >= 1, "--places", action.places, "at least 1")
    recording = None
    try:
        recording = _read(action.path, action.table)
        findings = [*recording.errors(), *recording.warnings()]
    except Rejected as error:
        findings = list(error.findings)
    except InputError as error:
        findings = [Finding("error", str(error), "")]
    wrong = any(finding.severity == "error" for finding in findings)
    if action.json:
        ignored = recording.origin.ignored if recording else ()
        told = {"usable": not wrong, "ignored_columns": list(ignored)}
        output(json.dumps(told | {"findings": [f.to_json(action.places) for f in findings]}, indent=2))
        return 2 if wrong else 0
    for finding in findings:
        output(f"{finding.severity}: {finding.sentence(action.places)}")
    if recording is None:
        output(f"{action.path}: {_verdict(findings)}; nothing else could be checked")
    else:
        _tell_columns(recording)
        counts = f"{counted(recording.data.episodes, 'episode')}, {counted(recording.data.steps, 'step')}"
        output(f"{action.path}: {counts}; {_verdict(findings)}")
    return 2 if wrong else 0


def make(action: cli_data.Make) -> None:
    """A dataset from behaviours into the store."""
    folder = None if action.behaviours is None else Path(action.behaviours)
    order = made.Order.of(action.name, action.size or made.DEFAULT_SIZE, folder)
    if action.env not in (None, order.series.environment):
        raise InputError(f"these behaviours act in {order.series.environment}, not in {action.env}")
    simulators.allow(action.env)
    if not action.overwrite and (kept := order.kept()) is not None:
        say(f"{order.name} is here already")
        _tell_kept(kept)
        return
    with gauge(PlainConsole(stderr=True), f"making {order.name}", "steps") as update:
        entry = order.make(action.overwrite, update)
    _tell_kept(entry)


def get(action: cli_data.Download) -> None:
    """A dataset from the network into the store."""
    published = d4rl.find(action.name)
    if published is None:
        get_from_minari(action)
        return
    url = action.url or published.url()
    with store.place(published.name, action.overwrite) as folder:
        part = folder / store.PART
        # A copy may be compressed otherwise, but not be another file altogether.
        most = {} if published.bytes is None else {"most": 2 * published.bytes}
        with gauge(PlainConsole(stderr=True), published.d4rl_name, "bytes") as update:
            download(url, part, update, **most)
        try:
            data = d4rl.read(published, part).trusted()
            came, first = file_hash(part), store.readable(published.name)
            _check_same(published, first, came, data)
        except InputError as error:
            discard(part)  # whole, and not what it should be: going on with it would help nobody
            raise InputError(f"{url}: {str(error).replace(str(part), 'the file')}") from error
        data = dataclasses.replace(data, time_limit=simulators.time_limit(published.environment))
        if published.goes_on_at_goal:
            hdf5.write(part, data)
        entry = store.adopt(data, part, url, (first and first.download_hash) or came)
        discard(part)
    _tell_kept(entry)
    compared = "this is what was downloaded first" if first else "later downloads are compared with this one"
    told = "D4RL publishes no hashes: dimensions and number of steps are right"
    say(f"{told}; {compared} (SHA-256 {came[:16]})")


def _check_same(published: d4rl.Published, first: store.Entry | None, came: str, data: Trajectories) -> None:
    """Refuse a file with other data than the one that was downloaded first under the same name."""
    if first is not None and came != first.download_hash and data.content_hash != first.content_hash:
        raise InputError(
            f"this is not the {published.d4rl_name} that was downloaded first, on {first.created[:10]} from "
            f"{first.source}: its data differs (SHA-256 {came[:16]}). The first one is kept; if the new one "
            f"is right, `cwbc data remove {published.name}` makes room for it"
        )


def get_from_minari(action: cli_data.Download) -> None:
    """A dataset of Minari's into Minari's own place, and a copy of it into the store."""
    from cwbc.datasets.minari import reading, remote

    if action.url is not None or "/" not in action.name:
        raise unknown("dataset", action.name, [each.d4rl_name for each in d4rl.CATALOGUE])
    store.check_name(action.name, action.overwrite)
    remote.download(action.name, action.overwrite)
    folder = places.local(action.name)
    assert folder is not None
    recording = reading.read(folder, action.name)
    _tell_kept(store.add(recording.trusted(), f"Minari's {action.name}", action.overwrite))


def import_dataset(action: cli_data.Import) -> None:
    """A checked copy of somebody's own logs, kept under a name."""
    if action.name is not None:
        store.check_name(action.name, action.overwrite)
    recording = _read(action.path, action.table)
    data = dataclasses.replace(recording.data, name=action.name or recording.data.name)
    if action.name is None and not store.is_name(data.name):
        raise InputError(f"{data.name!r} cannot be the name of a dataset; choose one with --name")
    store.check_name(data.name, action.overwrite)
    if d4rl.find(data.name) is not None or data.name in made.CATALOGUE:
        raise InputError(f"{data.name} is the name of another dataset; choose another --name")
    recording.trusted()
    for finding in recording.warnings():
        say(f"warning: {finding.sentence()}")
    _tell_columns(recording)
    source = str(Path(action.path).resolve()) if Path(action.path).exists() else action.path
    _tell_kept(store.add(data, source, action.overwrite))


def export(action: cli_data.Export) -> None:
    """A dataset for other tools."""
    with gauge(PlainConsole(stderr=True), *made.doing(action.name)) as update:
        data = read(action.name, progress=update).trusted()
    if action.format == "minari":
        name = action.to or (data.name if re.search(r"-v\d+$", data.name) else f"{data.name}-v0")
        from cwbc.datasets.minari import exporting

        path = exporting.export(data, name, action.overwrite)
        say(f"Minari dataset {name}: {path}")
        return
    path = Path(action.to or f"{data.name.replace('/', '-')}.hdf5")
    if path.is_dir():
        raise InputError(f"{path} is a folder; --to names the file to write")
    if path.exists() and not action.overwrite:
        raise InputError(f"{path} exists; --overwrite replaces it")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder; --to names the file to write in one")
    aside = path.with_name(f".{path.name}.tmp")
    with _writing(path, "--to"):
        hdf5.write(aside, data)
        replace_atomically(aside, path)
    say(f"HDF5 file in D4RL's layout: {path}")


def remove(action: cli_data.Remove) -> None:
    """A dataset out of the store."""
    if store.find_manifest(action.name) is None:
        if places.local(action.name) is not None:
            folder = places.root_folder() / action.name
            raise InputError(f"{action.name} is in Minari's own folder, not in the store: {folder}")
        if Path(action.name).exists():
            raise InputError(
                f"{action.name} is a path; only datasets of the store are removed, by their names"
            )
    removed = removal.remove(action.name)
    say(f"removed {action.name}: {removed.bytes:,} bytes from {removed.folder}")
    if removed.others:
        say(f"not removed, since they are not the store's: {_some(removed.others)}")


@contextlib.contextmanager
def _writing(path: str | Path, option: str) -> Iterator[None]:
    """Tell of a file that cannot be written by its own name, and by the option that names another."""
    try:
        yield
    except OSError as error:
        if not error.errno:
            raise
        if not isinstance(error, WRONG_PATH):
            raise OSError(error.errno, error.strerror, str(path)) from error
        reason = os.strerror(error.errno)
        raise InputError(f"{path} cannot be written ({reason}); give another {option}") from error


def _read(path: str, table: cli_data.TableOptions) -> Recording:
    options = ColumnOptions(
        episode=table.episode,
        step=table.step,
        observations=_several(table.observations),
        actions=_several(table.actions),
        reward=table.reward,
        terminated=table.terminated,
        truncated=table.truncated,
        done=table.done,
        action_kind=table.action_kind,
    )
    limit, count, possible = table.time_limit, table.action_count, f"from 1 to {checks.MOST_ACTIONS:,}"
    require(limit is None or 1 <= limit < 2**31, "--time-limit", limit, f"from 1 to {2**31 - 1:,}")
    require(count is None or 1 <= count <= checks.MOST_ACTIONS, "--action-count", count, possible)
    with gauge(PlainConsole(stderr=True), *made.doing(path)) as update:
        recording = read(path, table.env, options, limit, count, update, table.max_gigabytes)
    return fitting.fitted(recording)


def _several(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.strip() for name in names.split(","))


def _verdict(findings: list[Finding]) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    if errors:
        return f"cannot be used: {counted(errors, 'error')}"
    return f"can be used, {counted(warnings, 'warning')}" if warnings else "nothing wrong was found"


def _tell_columns(recording: Recording) -> None:
    """Which columns were taken for what, and which for nothing."""
    data, ignored = recording.data, recording.origin.ignored
    for what, names in (("observations", data.observation_names), ("actions", data.action_names)):
        if names:
            choices = f", {data.action_size:,} choices" * (what == "actions" and data.discrete)
            say(f"{what} from {_some(names)}{choices}")
    if (step := recording.origin.step_name) not in (None, "step"):
        say(f"steps in the order of {step}")
    if ignored:
        say(f"not used: {_some(ignored)}")


def _some(names: tuple[str, ...], most: int = 12) -> str:
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name.strip() or repr(name) for name in names[:most]) + rest


def _tell_kept(entry: store.Entry) -> None:
    environment = entry.environment or "unknown"
    say(
        f"{entry.name}: {counted(entry.episodes, 'episode')}, {counted(entry.steps, 'step')}, returns "
        f"{amount(entry.lowest)} to {amount(entry.best)}, environment {environment}"
    )
    say(f"`cwbc data show {entry.name}` shows it")
