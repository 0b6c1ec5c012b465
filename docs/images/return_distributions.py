"""The returns of the fifteen datasets that cwbc makes, as a picture and a table, beside those of D4RL's."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

import cwbc
from cwbc.reports.chart import padded
from cwbc.reports.method_styles import COLOURS
from cwbc.reports.png import INK, clean
from cwbc.system.formatting import amount

BARS, OURS, THEIRS = "#9AA5B1", COLOURS[0], COLOURS[1]
BINS, FLOOR = 30, 0.6  # a bar of one episode can be seen on a log scale
HEADING: dict[str, Any] = {"fontsize": 12, "fontweight": "bold", "color": INK}


class Returns(NamedTuple):
    """The returns of a dataset's episodes in five numbers."""

    episodes: str  # * where an unfinished last episode is counted
    mean: float
    deviation: float
    lowest: float
    highest: float

    @classmethod
    def of(cls, returns: NDArray[np.float64]) -> Returns:
        """Those of every episode."""
        return cls(f"{len(returns):,}", returns.mean(), returns.std(), returns.min(), returns.max())

    @property
    def ends(self) -> tuple[float, float]:
        """How far to the left and to the right its marker goes."""
        low, high = self.mean - self.deviation, self.mean + self.deviation
        return min(self.lowest, low), max(self.highest, high)

    def cells(self) -> list[str]:
        """As in a table."""
        spread = f"{amount(self.mean)} ± {amount(self.deviation)}"
        return [self.episodes, spread, f"{amount(self.lowest)} to {amount(self.highest)}"]


# D4RL's v2 files. Returns over complete episodes, as logs in the public repositories YuweiYin/UBC_CPSC_533V
# and SiliHuang-ai/IDT have them; episodes from TensorFlow Datasets' catalogue, d4rl_mujoco_*.
D4RL = {
    "hopper": {
        "random": Returns("45,240*", 18.40, 17.45, 2.93, 292.55),
        "medium": Returns("2,187*", 1422.06, 378.95, 315.87, 3222.36),
        "medium-replay": Returns("2,041", 467.30, 511.03, -1.44, 3192.93),
        "medium-expert": Returns("3,214*", 2089.88, 1039.96, 315.87, 3759.08),
        "expert": Returns("1,028*", 3511.36, 328.59, 1645.28, 3759.08),
    },
    "walker2d": {
        "random": Returns("48,908*", 1.87, 5.81, -17.01, 75.03),
        "medium": Returns("1,191*", 2852.09, 1095.44, -6.61, 4226.94),
        "medium-replay": Returns("1,093", 682.70, 895.96, -50.20, 4132.00),
        "medium-expert": Returns("2,191*", 3796.57, 1312.28, -6.61, 5011.69),
        "expert": Returns("1,001*", 4920.51, 136.39, 763.42, 5011.69),
    },
    "halfcheetah": {
        "random": Returns("1,000", -288.80, 80.43, -525.96, -85.36),
        "medium": Returns("1,000", 4770.33, 355.75, -310.23, 5309.38),
        "medium-replay": Returns("202", 3093.29, 1680.69, -638.49, 4985.14),
        "medium-expert": Returns("2,000", 7713.38, 2970.24, -310.23, 11252.04),
        "expert": Returns("1,000", 10656.43, 441.68, 2045.83, 11252.04),
    },
}


def main() -> None:
    """Make the datasets, or read those that were made before; print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("picture", type=Path, help="the file to write, such as returns.png")
    picture: Path = parser.parse_args().picture
    returns = {
        robot: {quality: cwbc.load(f"cwbc/{robot}/{quality}-v0").returns for quality in row}
        for robot, row in D4RL.items()
    }
    _print(["dataset", *("episodes", "mean ± std", "range"), *("D4RL's episodes", "mean ± std", "range")])
    _print(["---", *["---:"] * 6])
    for robot, row in returns.items():
        for quality, own in row.items():
            _print([f"{robot}/{quality}", *Returns.of(own).cells(), *D4RL[robot][quality].cells()])
    draw(returns).savefig(picture, metadata={"Software": None})


def draw(returns: dict[str, dict[str, NDArray[np.float64]]]) -> Figure:
    """A histogram for each dataset: robots below each other, qualities side by side."""
    layout = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.08)
    figure = Figure(figsize=(11.5, 7.4), dpi=160, layout=layout, facecolor="white")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(returns), len(D4RL["hopper"]))
    for axes_row, (robot, row) in zip(grid, returns.items(), strict=True):
        for axes, (quality, own) in zip(axes_row, row.items(), strict=True):
            # Random actions have a scale of their own: on that of the others they would be one bar.
            peers = [name for name in row if (name == "random") == (quality == "random")]
            ends = [end for name in peers for end in (*Returns.of(row[name]).ends, *D4RL[robot][name].ends)]
            _panel(axes, own, D4RL[robot][quality], padded(np.array(ends), 0.02))
        axes_row[0].set_ylabel(robot, **HEADING)
    for axes, quality in zip(grid[0], D4RL["hopper"], strict=True):
        axes.set_title(quality, pad=40, **HEADING)
    for axes in grid[-1]:
        axes.set_xlabel("return", color=INK)
    figure.align_ylabels()
    _legend(figure)
    return figure


def _panel(axes: Axes, own: NDArray[np.float64], published: Returns, limits: tuple[float, float]) -> None:
    axes.stairs(*np.histogram(own, BINS, limits), baseline=FLOOR, fill=True, color=BARS, zorder=2)
    axes.set(xlim=limits, yscale="log", ylim=(FLOOR, None))
    clean(axes)
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.minorticks_off()
    summary = Returns.of(own)
    _marker(axes, summary, OURS, 1.05)
    _marker(axes, published, THEIRS, 1.12)
    text: dict[str, Any] = {"transform": axes.transAxes, "fontsize": 9.5, "va": "bottom"}
    axes.text(0, 1.17, amount(summary.mean), color=OURS, **text)
    axes.text(1, 1.17, f"D4RL {amount(published.mean)}", color=THEIRS, ha="right", **text)


def _marker(axes: Axes, returns: Returns, colour: str, height: float) -> None:
    """The range as a thin line, a deviation around the mean as a thick one, the mean as a dot."""
    style: dict[str, Any] = {"color": colour, "transform": axes.get_xaxis_transform(), "clip_on": False}
    around = returns.mean - returns.deviation, returns.mean + returns.deviation
    axes.plot((returns.lowest, returns.highest), (height, height), linewidth=1, **style)
    axes.plot(around, (height, height), linewidth=4, alpha=0.5, solid_capstyle="butt", **style)
    axes.plot(returns.mean, height, marker="o", markersize=6, markeredgecolor="white", **style)


def _legend(figure: Figure) -> None:
    handles: list[Artist] = [Patch(color=BARS, label="cwbc: episodes, on a log scale")]
    for whose, colour in (("cwbc", OURS), ("D4RL", THEIRS)):
        label = f"{whose}: mean, ± deviation, lowest to highest"
        handles.append(Line2D([], [], color=colour, marker="o", markeredgecolor="white", label=label))
    figure.legend(
        handles=handles, loc="outside lower center", ncols=3, frameon=False, fontsize=10, labelcolor=INK
    )


def _print(cells: list[str]) -> None:
    print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
