"""The configuration of a run (config.json): what repeats it, what identifies it, and how it was trained."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cwbc.core.holdout import split
from cwbc.core.trajectories import Trajectories
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.system.errors import InputError
from cwbc.system.files import read_json
from cwbc.system.typed_json import decode
from cwbc.system.versions import versions as installed_versions

if TYPE_CHECKING:
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec

_VERSIONED = ("cwbc", "jax", "jaxlib", "optax", "numpy", "mujoco", "gymnasium")


# The fields that are read again without the data; those with a question mark may be absent.
_FIELDS: dict[str, Any] = {
    "method.name": str,
    "method.weighting.kind?": str,
    "method.weighting.top_fraction?": float,
    "training.steps": int,
    "training.batch_size": int,
    "training.holdout?": float,
    "seeds": list[int],
    "horizon": int,
    "dataset": dict[str, Any],
    "drawn": list[float] | None,
    "notes": dict[str, str],
    "first_steps?": int,
    "later_sittings?": list[Any],
}
_SESSION = {"versions": dict[str, str], "hardware.device": str, "hardware.cores": int | None}


def planned_configuration(
    spec: PolicySpec, settings: Training, seeds: tuple[int, ...], dataset: DatasetSummary
) -> dict[str, Any]:
    """The part of a configuration that is known before a training, and before devices are initialized."""
    from cwbc.core.methods import to_json  # imports jax, which reading a finished run does not need

    return {
        "method": to_json(spec.method),
        "training": to_json(settings),
        "seeds": list(seeds),
        "horizon": spec.horizon,
        "dataset": dataset.to_json(),
    }


def configuration(
    data: Trajectories, spec: PolicySpec, settings: Training, seeds: tuple[int, ...], notes: Mapping[str, Any]
) -> dict[str, Any]:
    """Everything needed to repeat a training; `notes` are stored, but are not part of a run's identity."""
    import jax

    dataset, trained = DatasetSummary.of(data), split(data, settings.holdout).training
    probabilities = spec.method.weighting.probabilities(trained)
    sampled, _ = np.histogram(trained.returns, dataset.histogram_edges, weights=probabilities)
    return {
        **planned_configuration(spec, settings, seeds, dataset),
        "observation_names": list(data.observation_names),
        "drawn": sampled.tolist(),  # the fraction of sampled trajectories in each bin, for reports
        "notes": dict(notes),
        "versions": versions(),
        "hardware": {"device": jax.devices()[0].device_kind, "cores": os.cpu_count()},
    }


def versions() -> dict[str, str]:
    """The installed versions, on which results may depend."""
    return {**installed_versions(*_VERSIONED), "python": platform.python_version(), "source": _source()}


@functools.cache
def _source() -> str:
    """A hash of this package's code, which changes between two releases."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:12]


def read_config(path: Path) -> dict[str, Any]:
    """A configuration, with the type of every field checked."""
    try:
        config = read_json(path)
    except FileNotFoundError:
        raise InputError(f"{path.parent} is not a run directory: {path.name} is missing") from None
    if not isinstance(config, dict) or "method" not in config:
        raise InputError(f"{path} does not describe a run")
    _check(_FIELDS, config, f"{path}: config")
    for session in sessions(config):
        _check(_SESSION, session, f"{path}: config")
    for place, counts in (("seeds", config["seeds"]), ("training.steps", [config["training"]["steps"]])):
        if not counts or min(counts) < (place != "seeds"):
            raise InputError(f"{path}: config.{place} is {counts}")
    try:
        DatasetSummary.from_json(config["dataset"])
    except InputError as error:
        raise InputError(f"{path} is damaged: {error}") from error
    return config


def _check(fields: dict[str, Any], value: Any, place: str) -> None:
    for field, kind in fields.items():
        name, found, where, is_there = field.removesuffix("?"), value, place, True
        for part in name.split("."):
            parent, where = decode(dict[str, Any], found, where), f"{where}.{part}"
            found, is_there = parent.get(part), part in parent
        if is_there or field == name:
            decode(kind, found, where)


def first_steps(config: dict[str, Any]) -> int:
    """The steps of a run's first training; later commands may have extended it."""
    return int(config.get("first_steps", config["training"]["steps"]))


def sessions(config: dict[str, Any]) -> list[dict[str, Any]]:
    """The versions and hardware of all sessions in which a run was trained, without repetitions."""
    first = {name: config.get(name) for name in ("versions", "hardware")}
    return [first, *config.get("later_sittings", [])]


def identity(config: dict[str, Any]) -> dict[str, Any]:
    """The settings that identify a training, without its name and hardware."""
    dataset = config["dataset"]
    return {
        "method": {name: value for name, value in config["method"].items() if name != "name"},
        **{name: config[name] for name in ("training", "seeds", "horizon")},
        "dataset": {name: dataset[name] for name in ("content_hash", "environment")},
    }


def settings(config: dict[str, Any]) -> dict[str, Any]:
    """The options of a run's method and training, by the names that `cwbc.train` has for them."""

    def named(part: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, value in part.items():
            found |= named(value) if isinstance(value, dict) else {name: value}
        return found

    found = {**named(config["method"]), **named(config["training"]), "seeds": len(config["seeds"])}
    return {name: value for name, value in found.items() if name not in ("kind", "name", "learner")}


def in_words(changes: dict[str, tuple[Any, Any]], most: int | None = None) -> str:
    """Differences as text, each value in at most 60 characters."""
    return "; ".join(f"{name} was {a!r:.60}, now {b!r:.60}" for name, (a, b) in [*changes.items()][:most])


def differences(old: Any, new: Any, path: str = "") -> dict[str, tuple[Any, Any]]:
    """The differences of two JSON values: was and now, by path."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return {} if old == new else {path: (old, new)}
    found: dict[str, tuple[Any, Any]] = {}
    for key in {**old, **new}:
        found |= differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    return found
