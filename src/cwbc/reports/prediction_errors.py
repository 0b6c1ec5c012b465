"""Prediction errors on held-out episodes: a chart over the steps of training, and a table by return."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from cwbc.core.measured_errors import BANDS, HELD_OUT, TRAINING, MeasuredErrors, of_band
from cwbc.reports.chart import Axis, Chart, Curve, Panel
from cwbc.reports.dataset_charts import MOST_POINTS, Histories
from cwbc.reports.method_styles import COLOURS, looks_of
from cwbc.reports.tables import ReportTable, TableCell, TableColumn, TableRow
from cwbc.results.intervals import Array

_UNIT = (
    "Solid on held-out episodes, dashed on those trained on. Mean squared differences of actions from −1 "
    "to 1; of discrete actions, the fraction of wrong ones."
)
_TRAINED_ON = "episodes trained on"


def errors_chart(histories: Histories, names: Sequence[str] = ()) -> Chart | None:
    """Errors by step, with their range over seeds; None where no run has held any episodes out."""
    known = _known(histories)
    if not known:
        return None
    looks, curves = dict[str, int](), list[Curve]()
    for name, look in looks_of(list(known), names).items():
        trained = f"{name}, {_TRAINED_ON}"
        looks |= {name: look, trained: look + len(COLOURS)}  # of the same colour, and dashed
        curves += [_curve(name, known[name], HELD_OUT), _curve(trained, known[name], TRAINING)]
    values = np.concatenate([ends for curve in curves for ends in (curve.value, curve.low, curve.high)])
    across = Axis("step", limits=(0, 1.01 * max(curve.x[-1] for curve in curves)), written="{:,.0f}".format)
    is_positive = bool(np.nanmin(values, initial=math.inf) > 0)
    title = "prediction error" + ", logarithmic scale" * is_positive
    up = Axis(title, is_positive, written=_written).around(values, 0.04)
    several = any(of.held_out.shape[1] > 1 for of in known.values())
    spread = "Means over seeds; bands reach from the min to the max over seeds." if several else "One seed."
    return Chart("Prediction error", across, [Panel(up, curves)], looks, f"{spread} {_UNIT}", file="heldout")


def errors_table(histories: Histories, names: Sequence[str] = ()) -> ReportTable | None:
    """Errors at the end of training, by thirds of the held-out episodes; None where none were held out."""
    known = _known(histories)
    columns = {TRAINING: TableColumn(_TRAINED_ON), HELD_OUT: TableColumn("held-out episodes")}
    columns |= {of_band(band): TableColumn(f"{band} returns", "held-out") for band in BANDS}
    shown = [name for name in columns if any(name in of.errors for of in known.values())]
    rows = [
        TableRow(name, [TableCell(of.final.get(each, math.nan)) for each in shown], name, written=_written)
        for name, of in known.items()
    ]
    if not rows:
        return None
    looks = looks_of(list(known), names)
    found = [columns[name] for name in shown]
    return ReportTable("method", found, rows, looks, title="Prediction error at the end of training")


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
    steps = of.steps[[part[-1] for part in parts]].astype(np.float64)
    return Curve(name, steps, values.mean(axis=1), low, high)


def _written(error: float) -> str:
    return f"{error:.3g}"
