"""Prediction errors on held-out episodes: a chart over the steps of training, and a table by return."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cwbc.core.measured_errors import BANDS, HELD_OUT, TRAINING, MeasuredErrors, of_band
from cwbc.reports.chart import Axis, Chart, Curve, Panel
from cwbc.reports.dataset_charts import MOST_POINTS, Histories
from cwbc.reports.method_styles import looks_of
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.intervals import Array

_UNIT = "Mean squared differences of actions from -1 to 1; of discrete actions, the fraction of wrong ones."
_HEADINGS = {HELD_OUT: "on held-out episodes", TRAINING: "on as many steps of episodes trained on"}


def errors_chart(histories: Histories, names: Sequence[str] = ()) -> Chart | None:
    """Errors by step, with their range over seeds; None where no run has held any episodes out."""
    known = _known(histories)
    if not known:
        return None
    curves = {which: [_curve(name, of, which) for name, of in known.items()] for which in _HEADINGS}
    ends = np.concatenate(
        [each for of in curves.values() for curve in of for each in (curve.value, curve.low, curve.high)]
    )
    last = max(int(of.steps[-1]) for of in known.values())
    across = Axis("step", limits=(0, 1.01 * last), written="{:,.0f}".format)
    up = Axis("prediction error", written=_written).around(ends, 0.04)
    panels = [Panel(up, of, _HEADINGS[which]) for which, of in curves.items()]
    several = any(of.held_out.shape[1] > 1 for of in known.values())
    spread = "Means over seeds; bands reach from the min to the max over seeds." if several else "One seed."
    looks = looks_of(list(known), names)
    return Chart("Prediction error", across, panels, looks, f"{spread} {_UNIT}", file="heldout")


def errors_table(histories: Histories, names: Sequence[str] = ()) -> ReportTable | None:
    """Errors at the end of training, by thirds of the held-out episodes; None where none were held out."""
    known = _known(histories)
    shown = {TRAINING: "episodes trained on", HELD_OUT: "held-out episodes"}
    shown |= {of_band(band): f"{band} returns" for band in BANDS}
    shown = {name: title for name, title in shown.items() if any(name in of.errors for of in known.values())}
    rows = [
        TableRow(name, [TableCell(of.final.get(each, math.nan)) for each in shown], name, written=_written)
        for name, of in known.items()
    ]
    if not rows:
        return None
    looks = looks_of(list(known), names)
    columns = [TableColumn(title) for title in shown.values()]
    return ReportTable("method", columns, rows, looks, title="Prediction error at the end of training")


def _known(histories: Histories) -> dict[str, MeasuredErrors]:
    return {name: history.errors for name, history in histories.items() if history.errors is not None}


def _curve(name: str, of: MeasuredErrors, which: str) -> Curve:
    """Means over neighbouring measurements, where there are many."""
    parts = np.array_split(np.arange(len(of.steps)), min(MOST_POINTS, len(of.steps)))
    values: Array = np.array([of.errors[which][part].mean(axis=0) for part in parts])  # [point, seed]
    values[~np.isfinite(values)] = np.nan
    low, high = values.min(axis=1), values.max(axis=1)
    if values.shape[1] == 1:
        low = high = np.full(len(parts), np.nan)
    return Curve(name, of.steps[[part[-1] for part in parts]], values.mean(axis=1), low, high)


def _written(error: float) -> str:
    return f"{error:.3g}"
