"""What `cwbc data` does; nothing here needs jax."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, assert_never

from rich.console import Console
from rich.table import Table

from cwbc import checks, cli_data, fitting, option_types, simulators
from cwbc.datasets import d4rl, hdf5, read, store
from cwbc.datasets.columns import ColumnOptions
from cwbc.datasets.download import discard, download
from cwbc.datasets.minari import places
from cwbc.datasets.tables import Recording
from cwbc.errors import InputError, UnavailableError, require, unknown
from cwbc.findings import Finding, Rejected
from cwbc.progress import Gauge, gauge


def run(action: cli_data.Action) -> int:
    """Do what was asked for; the exit status."""
    match action:
        case cli_data.List():
            list_datasets(action)
        case cli_data.Show():
            show(action)
        case cli_data.Check():
            return check(action)
        case cli_data.Download():
            get(action)
        case cli_data.Import():
            import_dataset(action)
        case cli_data.Export():
            export(action)
        case _:
            assert_never(action)
    return 0


def list_datasets(action: cli_data.List) -> None:
    """Every dataset, here or obtainable."""
    here = list(store.entries())
    kept = {entry.name for entry in here}
    published = [each for each in d4rl.CATALOGUE if each.name not in kept]
    local = places.local_names()
    if action.json:
        listed: dict[str, Any] = {"store": str(store.root())}
        listed["here"] = [dataclasses.asdict(entry) | {"whole": entry.looks_whole()} for entry in here]
        listed["minari"] = local
        listed["obtainable"] = [dataclasses.asdict(each) | {"url": each.url()} for each in published]
        _print(json.dumps(listed, indent=2))
        return
    _print_table(
        ("dataset", "episodes", "steps", "size", "environment"),
        [
            (e.name, f"{e.episodes:,}", f"{e.steps:,}", _size(e.bytes), e.environment or "-")
            if e.looks_whole()
            else (e.name, "damaged", "", "", f"get it again from {e.source}")
            for e in here
        ],
    )
    if local:
        _print_table(("in Minari's own folder",), [(name,) for name in local])
    _print_table(
        ("to be had with `cwbc data download`", "steps", "size"),
        [
            (
                each.name,
                f"{'' if each.exact else 'about '}{each.transitions:,}",
                "" if each.bytes is None else _size(each.bytes),
            )
            for each in published
        ],
    )
    _say(f"the store is {store.root()}; `cwbc data import` adds your own")


def show(action: cli_data.Show) -> None:
    """What a dataset holds, and what weighting and regularizer would make of it."""
    from cwbc.advice import advice
    from cwbc.description import Description
    from cwbc.regularizers import Conservative
    from cwbc.reporting.description import plot, show
    from cwbc.weighting import ByReturn

    weighting = ByReturn(**option_types.given(action.weighting))
    regularizer = Conservative(**option_types.given(action.raising))
    recording = read(action.name, action.env)
    data = checks.demand(recording.data, recording.origin)
    description = Description.of(data, weighting, regularizer)
    if action.plot is not None:
        plot(description, Path(action.plot))
        _say(f"picture: {action.plot}")
    if action.json:
        told = description.to_json() | {"advice": advice(description, action.name)}
        _print(json.dumps(told, indent=2))
    else:
        show(description, Console(), action.name)


def check(action: cli_data.Check) -> int:
    """Everything that is wrong or doubtful in a dataset; 2 when it cannot be used."""
    require(action.places >= 1, "--places", action.places, "at least 1")
    try:
        with gauge(Console(stderr=True), f"reading {action.path}", "values") as update:
            recording = _read(action.path, action.table, update)
        findings = [*recording.findings, *_examined(recording)]
        ignored = recording.origin.ignored
    except Rejected as error:
        recording, findings, ignored = None, list(error.findings), ()
    except InputError as error:
        recording, ignored = None, ()
        findings = [Finding("error", str(error), "nothing else could be checked")]
    wrong = any(finding.severity == "error" for finding in findings)
    if action.json:
        told = {"usable": not wrong, "ignored_columns": list(ignored)}
        _print(json.dumps(told | {"findings": [f.to_json(action.places) for f in findings]}, indent=2))
        return 2 if wrong else 0
    for finding in findings:
        _print(f"{finding.severity}: {finding.sentence(action.places)}")
    if recording is not None:
        _tell_ignored(ignored)
        data = recording.data
        _print(f"{action.path}: {data.episodes:,} episodes, {data.steps:,} steps; {_verdict(findings)}")
    return 2 if wrong else 0


def get(action: cli_data.Download) -> None:
    """A dataset from the network into the store."""
    published = d4rl.find(action.name)
    if published is None:
        if action.url is not None or "/" not in action.name:
            raise unknown("dataset", action.name, [each.d4rl_name for each in d4rl.CATALOGUE])
        from cwbc.datasets.minari import remote

        remote.download(action.name)
        _say(f"{action.name}: here; `cwbc data show {action.name}` shows it")
        return
    store.check_name(published.name, action.overwrite)
    url, part = action.url or published.url(), store.part(published.name)
    with gauge(Console(stderr=True), published.d4rl_name, "bytes") as update:
        download(url, part, update)
    try:
        data = d4rl.read(published, part)
        checks.demand(data)
    except InputError as error:
        discard(part)  # whole, and not what it should be: going on with it would help nobody
        raise InputError(f"{url}: {error}") from error
    data = dataclasses.replace(data, time_limit=simulators.time_limit(published.environment))
    if published.goes_on_at_goal:
        discard(part)
        entry = store.add(data, url, action.overwrite)
    else:
        entry = store.adopt(data, part, url, action.overwrite)
        discard(part)
    _tell_kept(entry)


def import_dataset(action: cli_data.Import) -> None:
    """A checked copy of somebody's own logs, kept under a name."""
    if action.name is not None:
        store.check_name(action.name, action.overwrite)
    with gauge(Console(stderr=True), f"reading {action.path}", "values") as update:
        recording = _read(action.path, action.table, update)
    data = dataclasses.replace(recording.data, name=action.name or recording.data.name)
    store.check_name(data.name, action.overwrite)
    if data.environment is not None:
        try:
            data = fitting.fitted(data, data.environment)
        except UnavailableError as error:
            _say(f"the data is kept without a look at its environment: {error}")
    findings = [*recording.findings, *_examined(recording)]
    if errors := [finding for finding in findings if finding.severity == "error"]:
        raise Rejected(action.path, errors)
    for finding in findings:
        _say(f"warning: {finding.sentence()}")
    _tell_ignored(recording.origin.ignored)
    if data.unfinished_steps:
        _say(f"kept out: the last {data.unfinished_steps:,} steps, an episode without an end")
    source = str(Path(action.path).resolve()) if Path(action.path).exists() else action.path
    _tell_kept(store.add(data, source, action.overwrite))


def export(action: cli_data.Export) -> None:
    """A dataset for other tools."""
    recording = read(action.name)
    data = checks.demand(recording.data, recording.origin)
    if action.format == "minari":
        name = action.to or f"{data.name}-v0"
        from cwbc.datasets.minari import exporting

        path = exporting.export(data, name, action.overwrite)
        _say(f"Minari dataset {name}: {path}")
        return
    path = Path(action.to or f"{data.name.replace('/', '-')}.hdf5")
    if path.exists() and not action.overwrite:
        raise InputError(f"{path} exists; --overwrite replaces it")
    aside = path.with_name(f".{path.name}.tmp")
    try:
        hdf5.write(aside, data)
        aside.replace(path)
    finally:
        aside.unlink(missing_ok=True)
    _say(f"HDF5 file in D4RL's layout: {path}")


def _read(path: str, table: cli_data.TableOptions, progress: Gauge) -> Recording:
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
    for name, value in (("--time-limit", table.time_limit), ("--action-count", table.action_count)):
        require(value is None or value >= 1, name, value, "at least 1")
    return read(path, table.env, options, table.time_limit, table.action_count, progress)


def _several(names: str | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(name.strip() for name in names.split(","))


def _examined(recording: Recording) -> list[Finding]:
    data, origin = recording.data, recording.origin
    if found := list(checks.errors(data, origin)):
        return found
    return list(checks.warnings(data, origin))


def _verdict(findings: list[Finding]) -> str:
    errors = sum(finding.severity == "error" for finding in findings)
    warnings = len(findings) - errors
    if errors:
        return f"cannot be used: {errors} error{'s' * (errors > 1)}"
    return f"can be used, {warnings} warning{'s' * (warnings > 1)}" if warnings else "nothing wrong was found"


def _tell_ignored(columns: tuple[str, ...]) -> None:
    if columns:
        _say(f"not used: the column{'s' * (len(columns) > 1)} {', '.join(columns)}")


def _tell_kept(entry: store.Entry) -> None:
    environment = entry.environment or "unknown"
    _say(
        f"{entry.name}: {entry.episodes:,} episodes, {entry.steps:,} steps, returns {entry.lowest:,.6g} to "
        f"{entry.best:,.6g}, environment {environment}"
    )
    _say(f"`cwbc data show {entry.name}` shows it")


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count < 1e9 else f"{count / 1e9:,.2f} GB"


def _print_table(titles: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    table = Table(box=None, pad_edge=False)
    for title in titles:
        number = title in ("episodes", "steps", "size")
        table.add_column(title, justify="right" if number else "left", no_wrap=title != "environment")
    for row in rows:
        table.add_row(*row)
    Console().print(table)
    Console().print()


def _print(text: str) -> None:
    Console().print(text, highlight=False, soft_wrap=True, markup=False)


def _say(text: str) -> None:
    console = Console(stderr=True)
    console.print(text, highlight=False, soft_wrap=not console.is_terminal, markup=False)
