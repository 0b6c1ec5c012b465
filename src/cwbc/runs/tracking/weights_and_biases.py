"""Weights & Biases, where one run holds the curves of all seeds of a method, and the summary of its sweep."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from cwbc.data.dataset_summary import DatasetSummary
from cwbc.results.evaluated import EvaluatedMethod
from cwbc.results.sweeps import Sweep
from cwbc.system.errors import need_extra

PROJECT = "cwbc"  # unless WANDB_PROJECT names another
_OTHERS = ("seeds", "episodes", "takes_target", "training_warnings", "curve")  # than numbers


class WandbRun:
    """A method's run, grouped by dataset; steps from an earlier session are not logged again."""

    def __init__(self, directory: Path, config: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        self._wandb = need_extra("wandb", "wandb", "Weights & Biases runs")
        self._seeds = config["seeds"]
        self._run = self._wandb.init(
            project=os.environ.get("WANDB_PROJECT", PROJECT),
            group=config["dataset"]["name"],
            name=config.get("label", config["method"]["name"]),  # of a grid's cell
            id=identifier(directory, config),
            config=config,
            allow_val_change=True,  # a later session may add its versions
            resume="allow",
            reinit="create_new",  # a run of the caller's own is not affected
            # Without a network, neither the start nor the end may delay the next method for long.
            settings=self._wandb.Settings(console="off", init_timeout=30, finish_timeout=60),
        )
        for row in rows:
            self.record(row)

    def record(self, row: dict[str, Any]) -> None:
        """Add the losses at a step, each seed's and the mean."""
        if row["step"] < self._run.step:  # already logged
            return
        values = {"seconds": row["seconds"]}
        for name in row.keys() - {"step", "seconds"}:
            values |= {f"{name}/seed-{seed}": loss for seed, loss in zip(self._seeds, row[name], strict=True)}
            values[f"{name}/mean"] = float(np.mean(row[name]))
        self._run.log(values, step=row["step"], commit=True)

    def show(self, sweep: Sweep, dataset: DatasetSummary) -> None:
        """Put the scores into the run's summary, and plot the curve over target returns."""
        summary = EvaluatedMethod.of(sweep, dataset).to_json()
        points = {name: point for name, point in summary.items() if name not in _OTHERS}
        self._run.summary.update({name: point for name, point in points.items() if point is not None})
        if not sweep.takes_target:
            return
        curve = summary["curve"]
        table = self._wandb.Table(list(curve[0]), [list(point.values()) for point in curve])
        title = "normalized score vs. target return"
        self._run.log({"sweep": self._wandb.plot.line(table, "target", "normalized", title=title)})

    def close(self) -> None:
        """End this session."""
        self._run.finish()


def identifier(directory: Path, config: dict[str, Any]) -> str:
    """The id of a run: the same in every session, and different for the same settings elsewhere."""
    begun = {name: value for name, value in config.items() if name != "later_sittings"}
    text = json.dumps([str(directory.resolve()), begun], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
