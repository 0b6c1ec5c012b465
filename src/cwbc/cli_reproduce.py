"""What users type for `cwbc reproduce`. The work is in reproduce_commands.py."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from cwbc.option_types import Device, Directory, Flag, Precision, Trackers, Whole

ItemName = Annotated[Positional[str | None], arg(metavar="[ITEM]", help_behavior_hint="")]
DataKind = Annotated[Literal["ours", "d4rl"], arg(metavar="ours|d4rl", help_behavior_hint="")]
Names = Annotated[str | None, arg(metavar="NAME,...", help_behavior_hint="")]
Engine = Annotated[Literal["local", "ray"], arg(metavar="local|ray", help_behavior_hint="")]
Address = Annotated[str | None, arg(metavar="ADDRESS", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class Reproduce:
    """One table or figure of the paper, claim by claim; without ITEM a list of them."""

    item: ItemName = None
    """Which one, such as table1."""
    quick: Flag = False
    """A small version: fewer datasets, seeds, steps and asked returns; minutes on two CPU cores."""
    data: DataKind = "ours"
    """Our datasets, made here, or D4RL's, once downloaded (default: ours)."""
    datasets: Names = None
    """Only these of the item's datasets, such as walker2d-medium,hopper-medium-replay."""
    methods: Names = None
    """Only these of the item's methods, as its table calls them, such as rvs,rvs+cwbc or alpha=1."""
    seeds: Whole = None
    """Number of seeds (default: 10; quick: 2)."""
    steps: Whole = None
    """Training steps (default: the paper's 100,000; quick: 2,000)."""
    precision: Precision = None
    """Of the hidden matrix products (default: bfloat16 on a GPU, float32 on a CPU)."""
    out: Directory = None
    """Directory of the report (default: runs/reproduce/ITEM, with -quick, -part-... as asked)."""
    cells: Directory = None
    """Directory of the trainings, which items share (default: runs/cells)."""
    track: Trackers = None
    """Show every cell in tensorboard, wandb or both as well, once all are finished (default: in neither)."""
    engine: Engine = "local"
    """Who trains: this process, or a Ray cluster (extra ray)."""
    address: Address = None
    """Address of the Ray cluster (default: $RAY_ADDRESS, or the one on this machine)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
