"""`python -m benchmarks`: measure, print the table, store it as JSON, and report what got worse."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks import comparison, rows, tables
from benchmarks.rows import Report, Row
from cwbc.system.errors import InputError, unknown

Subject = Callable[[], Iterator[Row]]

CPU = (
    "start", "limits", "step", "critics", "regularizer", "simulation", "sweep", "making", "loading",
    "importing", "images", "games", "deployment", "growth-step",
    "growth-files",
)  # fmt: skip
GPU = ("limits", "training", "critics", "streaming", "sweep", "growth")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 1 where something got worse, 2 where the input is wrong."""
    options = _options(arguments)
    try:
        return _run(options)
    except InputError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--gpu", action="store_true", help="measure on an NVIDIA GPU instead of the CPU")
    parser.add_argument(
        "--only",
        nargs="+",
        metavar="NAME",
        help=f"only these subjects; on a CPU {', '.join(CPU)}; on a GPU {', '.join(GPU)}",
    )
    parser.add_argument(
        "--json",
        type=Path,
        metavar="PATH",
        help="default: runs/benchmarks/cpu.json, or cpu-NAME.json of a part",
    )
    parser.add_argument(
        "--against", type=Path, metavar="PATH", help="a stored JSON to compare the ratios with"
    )
    parser.add_argument(
        "--tolerance", type=float, default=1.25, help="times as bad that are let pass (%(default)s)"
    )
    return parser.parse_args(arguments)


def _run(options: argparse.Namespace) -> int:
    if not 1 <= options.tolerance < math.inf:
        raise InputError(f"--tolerance must be at least 1; got {options.tolerance:g}")
    names = _chosen(GPU if options.gpu else CPU, options.only)
    stored = None if options.against is None else rows.read(options.against)
    parts = ["gpu" if options.gpu else "cpu", *(options.only or ())]  # a part does not replace the whole
    place = options.json or Path("runs/benchmarks") / f"{'-'.join(parts)}.json"
    subjects = _gpu_subjects() if options.gpu else _cpu_subjects()
    report = _begun()
    if stored is not None:
        comparison.check_device(stored, report.device)
    report = _measured(report, {name: subjects[name] for name in names}, place)
    print(tables.report_table(report))
    _draw(place, report)
    print(f"JSON: {place}")
    if stored is None:
        return 0
    changes = comparison.compare(stored, report)
    worse = comparison.worsened(changes, options.tolerance)
    beside = (
        f"{len(changes)} ratios compared with {options.against} ({stored.processor}, {stored.cores} cores)"
    )
    if not worse:
        print(f"{beside}: none is more than {options.tolerance:g} times as bad")
        return 0
    print(f"{beside}:\n{tables.change_table(worse)}")
    return 1


def _cpu_subjects() -> dict[str, Subject]:
    from cwbc.core.device import use_device

    use_device("cpu")
    from benchmarks import (
        data,
        deployment,
        evaluation,
        growth,
        growth_from_files,
        images,
        limits,
        start,
        training,
    )

    return {
        "start": start.cpu_start,
        "limits": limits.cpu_limits,
        "step": training.cpu_step,
        "critics": training.cpu_critics,
        "regularizer": training.cpu_regularizer,
        "simulation": evaluation.cpu_simulation,
        "sweep": evaluation.cpu_sweep,
        "making": data.cpu_making,
        "loading": data.cpu_loading,
        "importing": data.cpu_importing,
        "images": images.cpu_images,
        "games": evaluation.cpu_games,
        "deployment": deployment.cpu_deployment,
        "growth-step": growth.cpu_step_time,
        "growth-files": growth_from_files.cpu_loading_and_memory,
    }


def _gpu_subjects() -> dict[str, Subject]:
    from cwbc.core.device import use_device

    use_device("gpu")
    # Not data: what it needs is not everywhere that a GPU is.
    from benchmarks import evaluation, growth, limits, training

    return {
        "limits": limits.gpu_limits,
        "training": training.gpu_ten_seeds,
        "critics": training.gpu_critics,
        "streaming": training.gpu_streaming,
        "sweep": evaluation.gpu_sweeps,
        "growth": growth.gpu_step_time_and_memory,
    }


def _chosen(subjects: Sequence[str], names: Sequence[str] | None) -> list[str]:
    for name in names or ():
        if name not in subjects:
            raise unknown("subject", name, subjects)
    return [name for name in subjects if not names or name in names]


def _begun() -> Report:
    """A report about this machine, without rows."""
    import jax
    import mujoco
    import numpy

    device = jax.devices()[0]
    return Report(
        device="cpu" if device.platform == "cpu" else device.device_kind,
        processor=_processor(),
        cores=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        versions={"python": platform.python_version()}
        | {module.__name__: module.__version__ for module in (jax, mujoco, numpy)},
        rows=(),
    )


def _measured(report: Report, subjects: dict[str, Subject], place: Path) -> Report:
    """With the rows of every subject; each row is stored at once, as a run may be interrupted."""
    began = time.monotonic()
    for name, subject in subjects.items():
        for row in subject():
            elapsed = time.monotonic() - began
            print(f"after {elapsed:.0f} s: {name}: {row.label}", file=sys.stderr, flush=True)
            report = dataclasses.replace(report, rows=(*report.rows, row))
            rows.write(place, report)
    return report


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _draw(place: Path, report: Report) -> None:
    if not any(row.steps for row in report.rows):
        return
    path = place.with_suffix(".png")
    try:
        from benchmarks import picture
    except ImportError as error:
        print(f"no picture ({error}); elsewhere, `python -m benchmarks.picture {place}` draws it")
        return
    picture.draw(path, report)
    print(f"picture: {path}")


if __name__ == "__main__":
    sys.exit(main())
