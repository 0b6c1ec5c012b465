"""A run directory: a training that may be killed at any moment and resumes with the same command."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shlex
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from cwbc.core.diagnostics import training_warnings
from cwbc.core.measured_errors import HELD_OUT, TRAINING, MeasuredErrors
from cwbc.core.simulation import is_offline
from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.estimates import Estimates
from cwbc.results.paths import read_paths
from cwbc.results.replays import Replays
from cwbc.results.sweeps import Sweep, read_results
from cwbc.runs import locks
from cwbc.runs.configuration import differences, identity, in_words, read_config
from cwbc.runs.tracking import Tracking, tensorboard
from cwbc.system import tensor_files
from cwbc.system.errors import InputError
from cwbc.system.files import is_aside, read_json, write_atomically
from cwbc.system.tensor_files import CHECKPOINT
from cwbc.system.typed_json import decode

CONFIG = "config.json"
METRICS = "metrics.jsonl"
RESULTS = "results.csv"
ESTIMATES = "estimates.csv"  # of an offline evaluation, beside its results
PATHS = "paths.csv"  # of an evaluation in a maze, beside its results
REPLAYS = "replays.csv"  # of held-out episodes, beside the estimates
SUMMARY = "summary.json"
PAGE = "report.html"
VIDEO = "video.png"  # of its policies; reports embed it
CELLS = "cells.csv"  # of a report about a grid: where its runs are
_PICTURES = ("reliability.png", "paths.png", "training.png", "heldout.png", "returns.png")
REPORT = (*_PICTURES, "scores.md", "scores.csv", PAGE)
# Without its summary, no other file counts.
EVALUATION = (SUMMARY, RESULTS, ESTIMATES, REPLAYS, PATHS, VIDEO, *REPORT)
_SCALE = "method.condition.condition_scale"
_EARLIER = re.compile(r"after-\d+-steps")  # folders of earlier evaluations
_ROW = {"step": int, "seconds": float}  # of metrics; everything else is over seeds
_PROGRESS = {"seeds": tuple[int, ...], "step": int, "steps": int}  # in the description of a checkpoint


class _Recommended(TypedDict):
    """The part of a recommendation that policies need."""

    target: float | None
    supported_targets: list[float] | None


@dataclasses.dataclass(frozen=True)
class RunDirectory:
    """The files of one run."""

    path: Path

    def has(self, *names: str) -> bool:
        """Whether one of these files exists."""
        return any((self.path / name).exists() for name in names)

    def is_run(self) -> bool:
        """Whether this is a run: it has parameters or, where these were removed, results."""
        # os.path: a directory without read permission is no run, and no error.
        is_evaluated = os.path.exists(self.path / SUMMARY) and holds(self.path / CONFIG, "method")
        return os.path.exists(self.path / CHECKPOINT) or is_evaluated

    def config(self) -> dict[str, Any]:
        """The configuration, with the type of every field checked."""
        return read_config(self.path / CONFIG)

    def is_cloned(self) -> bool:
        """Whether its method is behavioural cloning, whose policies have a distribution of actions."""
        return "learner" not in self.config()["method"]

    def write_config(self, config: dict[str, Any]) -> None:
        """Replace the configuration."""
        write_atomically(self.path / CONFIG, json.dumps(config, indent=2) + "\n")

    def metrics(self) -> list[dict[str, Any]]:
        """The rows of the metrics, without incomplete or damaged ones."""
        path, rows = self.path / METRICS, []
        try:
            data = path.read_bytes() if path.is_file() else b""
        except OSError:  # metrics are not essential
            return []
        for line in data.splitlines():
            with contextlib.suppress(ValueError, RecursionError, AttributeError, InputError):
                row = json.loads(line).items()
                row = {name: decode(_ROW.get(name, list[float]), value, name) for name, value in row}
                rows += [row] if row.keys() >= _ROW.keys() else []
        return rows

    def training_seconds(self) -> float | None:
        """The training time over all sessions, a share of it for runs trained together; None if unknown."""
        rows = self.metrics()
        return rows[-1]["seconds"] if rows else None

    def training_warnings(self) -> list[str]:
        """The warnings about the training."""
        config = self.config()
        return training_warnings(self.metrics(), config["seeds"], config["method"])

    def steps_done(self) -> int:
        """The steps of the checkpoint; 0 without one."""
        return read_progress(self.path / CHECKPOINT)[1] if self.has(CHECKPOINT) else 0

    def trains_on(self, steps: int) -> bool:
        """Whether the run was started with fewer steps, so that its training continues to these."""
        return self.has(CONFIG) and self.config()["training"]["steps"] < steps

    def holds_work(self) -> bool:
        """Whether there is a checkpoint, or results."""
        return self.has(CHECKPOINT, SUMMARY, RESULTS)

    def lock(self) -> locks.Lock:
        """Lock the directory against other processes; the lock of a killed process is free."""
        self._check_place()
        return locks.acquire_at_once(self.path)

    def track(self, tracking: Tracking) -> None:
        """Start tracking, with the configuration and the metrics so far."""
        tracking.begin(self.path, self.config(), self.metrics())

    def check_same(self, config: dict[str, Any], overwrite: bool = False) -> None:
        """Refuse a directory with other files, and a run with other settings unless `overwrite`."""
        self._check_place()
        changes = self._changes(config)
        extends = changes.keys() == {"training.steps"} and self.trains_on(config["training"]["steps"])
        if changes and not extends and not overwrite and self.holds_work():
            different = self._in_words(changes, config)
            raise InputError(f"{self.path} holds a run with other settings: {different}")
        if self.has(SUMMARY, RESULTS) and not self.has(CHECKPOINT):
            raise InputError(
                f"{self.path} holds results without the parameters that they were evaluated with, so nothing "
                "can resume there; remove it to start over"
            )

    def _in_words(self, changes: dict[str, tuple[Any, Any]], config: dict[str, Any]) -> str:
        """The settings that differ, and what to do."""
        remedy = "give another directory (--out), or remove this one to start over (--overwrite)"
        if _SCALE in changes:  # the other settings of the condition follow from it
            was, now = (scale or "paper" for scale in changes[_SCALE])
            changes = {name: p for name, p in changes.items() if not name.startswith("method.condition.")}
            remedy += "" if changes else f"; --condition-scale {was} resumes it"
            changes["condition_scale"] = (was, now)
        environment = config["dataset"]["environment"]
        if environment and not self.config()["dataset"]["environment"]:
            # Its time limit may change which episodes are truncated, and so the data.
            command = shlex.join(["cwbc", "evaluate", str(self.path), "--env", environment])
            remedy += f"; `{command}` evaluates the trained run"
        return f"{in_words(changes, 4)}; {remedy}"

    def discard_other(self, config: dict[str, Any]) -> None:
        """Remove the files of a run with other settings, and no other files."""
        if not self._changes(config):
            return
        tensorboard.discard(self.path)
        for folder in self.path.iterdir():
            if _EARLIER.fullmatch(folder.name) and folder.is_dir() and not folder.is_symlink():
                for name in EVALUATION:
                    (folder / name).unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # it has other files
                    folder.rmdir()
        # The configuration is removed last: if interrupted, the directory can be discarded again.
        for name in (*EVALUATION, CHECKPOINT, METRICS, CONFIG):
            (self.path / name).unlink(missing_ok=True)

    def earlier_evaluation(self, step: int) -> Path:
        """The folder of an evaluation after `step` steps of a run that was trained further."""
        return self.path / f"after-{step}-steps"

    def sweep(self) -> Sweep:
        """The results of the evaluation."""
        found = read_results(self.path / RESULTS)
        if len(found) != 1:
            raise InputError(f"{self.path / RESULTS} holds {len(found)} methods; a run has one")
        paths = read_paths(self.path / PATHS)
        if not all(map(found[0].includes, paths)):
            raise InputError(
                f"{self.path / PATHS} is of another evaluation than {RESULTS} beside it; remove it"
            )
        return dataclasses.replace(found[0], paths=paths)

    def estimates(self) -> Estimates | None:
        """The estimates of an offline evaluation; None where the returns were simulated."""
        found = Estimates.read(self.path / ESTIMATES)
        return found and dataclasses.replace(found, replays=Replays.read(self.path / REPLAYS))

    def dataset(self) -> DatasetSummary:
        """The dataset of the results, with the environment of their evaluation."""
        path = self.path / SUMMARY
        if not path.exists():
            config = self.config()
            if self.steps_done() < config["training"]["steps"]:
                command = config["notes"].get("command", "the command that began it")
                raise InputError(f"{self.path} is not trained to its end yet; this resumes it:\n{command}")
            raise InputError(f"{self.path} is not evaluated yet; {self.how_to_evaluate()}")
        try:
            return DatasetSummary.from_json(decode(dict[str, Any], read_json(path), "summary").get("dataset"))
        except (InputError, FileNotFoundError) as error:  # the latter, if it is just replaced
            text = str(error)
            raise InputError(text if text.startswith(str(path)) else f"{path} is damaged: {text}") from error

    def video(self) -> bytes | None:
        """The video of its policies; None where there is none."""
        path = self.path / VIDEO
        return path.read_bytes() if path.is_file() else None

    def recommendation(self) -> dict[str, Any]:
        """The recommended target and those that are supported; empty where none was evaluated."""
        try:
            found = decode(_Recommended, read_json(self.path / SUMMARY)["recommendation"], "recommendation")
        except (OSError, InputError, KeyError, TypeError):  # of another version, or just replaced
            return {}
        if found["target"] is None or len(found["supported_targets"] or ()) != 2:
            return {}
        return {"recommended_target": found["target"], "supported_targets": found["supported_targets"]}

    def evaluated_in(self) -> str | None:
        """The environment of the evaluation; None where it is missing or damaged."""
        with contextlib.suppress(InputError):
            return self.dataset().environment if self.has(SUMMARY) else None
        return None

    def how_to_evaluate(self) -> str:
        """The command line that evaluates the run, and what there is where none can."""
        command, environment = ["cwbc", "evaluate", str(self.path)], self.config()["dataset"]["environment"]
        environment = environment or self.evaluated_in()
        if environment is not None and not is_offline(environment):
            # An environment in the run's files is used without --env only if it needs no import.
            command += ["--env", environment] if ":" in environment else []
        elif self.has_images():
            in_a_simulator = f"`{shlex.join([*command, '--env', 'ID'])}` evaluates it in a simulator"
            return f"{in_a_simulator}; {self.without_estimates()}"
        else:
            command += ["--offline"]
        return f"`{shlex.join(command)}` evaluates it"

    def has_images(self) -> bool:
        """Whether observations are images, whose returns nothing estimates without a simulator."""
        if not self.has(CHECKPOINT):
            return False
        place = f"{self.path / CHECKPOINT}, design"
        design = decode(
            dict[str, Any], tensor_files.read_description(self.path / CHECKPOINT).get("design"), place
        )
        return "channels" in decode(dict[str, Any], design.get("observations"), f"{place}.observations")

    def without_estimates(self) -> str:
        """What is known of a run on images without a simulator."""
        errors = MeasuredErrors.of(self.metrics(), len(self.config()["seeds"]))
        if errors is None:
            known = "none were held out (`cwbc train` with --holdout 0.1 measures it)"
        else:
            known = f"{errors.final[HELD_OUT]:.3g} ({errors.final[TRAINING]:.3g} on those trained on)"
        return f"without one, images have only a prediction error on held-out episodes: {known}"

    def evaluated_with(self) -> dict[str, str]:
        """The versions that evaluated the run; empty where they were not stored."""
        try:
            (versions,) = read_json(self.path / SUMMARY)["measured_with"].values()
            return dict(decode(dict[str, str], versions, "versions"))
        except (OSError, InputError, ValueError, KeyError, TypeError, AttributeError):
            return {}

    def is_evaluated(
        self, environment: str, targets: tuple[float, ...], episodes: int, actions: str | None = None
    ) -> bool:
        """Whether there are results with these settings; damaged results do not count."""
        try:
            return self.has(SUMMARY) and not self._otherwise(environment, targets, episodes, actions)
        except InputError:
            return False

    def check_results(
        self, environment: str, targets: tuple[float, ...], episodes: int, actions: str | None = None
    ) -> None:
        """Refuse to replace results that were evaluated with different settings.

        Args:
            actions: sampled or greedy; None allows both.
        """
        if not self.has(SUMMARY):
            return
        try:
            found = self._otherwise(environment, targets, episodes, actions)
        except InputError as error:  # damaged results may still be of use to the user
            raise InputError(f"{error}; --overwrite evaluates {self.path} again") from error
        if found:
            what = f"{self.path / RESULTS} was evaluated with different settings"
            raise InputError(f"{what}: {found}; --overwrite replaces it")

    def _otherwise(
        self, environment: str, targets: tuple[float, ...], episodes: int, actions: str | None
    ) -> str:
        """The settings in which the results differ from these; empty where they do not."""
        sweep, dataset = self.sweep(), self.dataset()
        evaluated = tuple(sweep.targets.tolist())
        was = {
            "seeds": sorted(sweep.seeds.tolist()),
            "environment": dataset.environment,
            "targets": evaluated,
            "episodes": sweep.episodes,
            "actions": "sampled" if dataset.sampled_actions else "greedy",
        }
        config = self.config()
        now = {"seeds": sorted(config["seeds"]), "environment": environment, "episodes": episodes}
        now["actions"] = actions or was["actions"]
        # Without targets are the results of methods that take none, and of those that may choose theirs.
        takes_target = sweep.takes_target or (targets and config["method"].get("learner") == "TargetChoice")
        return in_words(differences(was, {**now, "targets": targets if takes_target else evaluated}))

    def _changes(self, config: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
        """The settings in which the run, if there is one, differs from `config`: was and now, by name."""
        found = differences(identity(self.config()), identity(config)) if self.has(CONFIG) else {}
        if None in found.get("dataset.environment", ()):
            # Naming the environment does not make another run: its effects on training are compared.
            del found["dataset.environment"]
        return found

    def _check_place(self) -> None:
        if self.has(CONFIG) or not self.path.exists():
            return
        if not self.path.is_dir():
            raise InputError(f"{self.path} is a file, and a run needs a directory; give another (--out)")
        for path in self.path.iterdir():
            if not (is_aside(path) or path.name == locks.FOLDER or _EARLIER.fullmatch(path.name)):
                raise InputError(f"{self.path} is not empty and holds no run; give another directory (--out)")


def read_progress(checkpoint: Path) -> tuple[tuple[int, ...], int, int]:
    """The seeds of a checkpoint, its step and its last step, checked against the counts of its optimizer."""
    counts, description = tensor_files.read(
        checkpoint, lambda name: name.startswith("optimizer/") and name.endswith("/count")
    )
    place = f"{checkpoint}, description"
    seeds, step, steps = (
        decode(kind, description.get(name), f"{place}.{name}") for name, kind in _PROGRESS.items()
    )
    if not 0 <= step <= steps:
        raise InputError(f"{place}.step is {step}; expected 0 to {steps}")
    if not seeds or len(set(seeds)) < len(seeds) or min(seeds) < 0 or max(seeds) >= 2**32:
        raise InputError(f"{place}.seeds is no list of different seeds from 0 to 2^32 - 1")
    for name, count in counts.items():
        if count.shape != (len(seeds),) or (count != step).any():
            counted = np.unique(count).tolist()[:3]
            raise InputError(f"{checkpoint} is damaged: it says step {step}, but {name} counts {counted}")
    return seeds, step, steps


def holds(path: Path, *keys: str) -> bool:
    """Whether a JSON file has one of these keys."""
    try:
        return any(key in read_json(path) for key in keys)
    except (OSError, InputError, TypeError):
        return False
