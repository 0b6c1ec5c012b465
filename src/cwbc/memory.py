"""Whether a training or an evaluation fits into memory, estimated before anything is allocated or written."""

from __future__ import annotations

import math

import jax

from cwbc.design import Design
from cwbc.device import on_cpu, total_memory
from cwbc.errors import InputError, require
from cwbc.methods import Training
from cwbc.sampling import DRAWN_TOGETHER

_FLOAT = 4  # bytes
_MOST_EPISODES = 1_000_000  # at once, of all seeds and targets: each is an environment of its own


def check_training(design: Design, settings: Training, seeds: int) -> None:
    """Refuse a training whose parameters, optimizer and batch alone take more memory than there is."""
    # Timesteps have 32 bits; a file may tell any limit.
    require(design.horizon < 2**31, "the time limit of the data", design.horizon, f"at most {2**31 - 1:,}")
    parameters = jax.eval_shape(design.initialize, jax.random.key(0))
    weights = _FLOAT * sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parameters))
    at_once = 1 if on_cpu() else seeds  # on a CPU, seeds take turns
    state = 3 * seeds * weights + at_once * weights  # with two moments, and a gradient
    batch = at_once * _batch(design, settings)
    if state + batch > (there := total_memory()):
        raise InputError(
            f"{design.method.name} would take at least {_size(state + batch)} of memory ({_size(state)} for "
            f"parameters and optimizer of {seeds} seeds, {_size(batch)} for a batch), and there are "
            f"{_size(there)}; a smaller width, context or batch size, fewer layers or fewer seeds take less"
        )


def _batch(design: Design, settings: Training) -> int:
    """Bytes of the steps that are drawn together, and of what a step of training keeps for the gradient."""
    network = design.method.network
    windows, steps = settings.batch_size, settings.context
    row = design.observation_size + design.actions.size + 2
    drawn = min(DRAWN_TOGETHER, settings.steps) * windows * steps * row * _FLOAT
    kept = steps * network.layers * network.width
    if network.looks_back:
        tokens = 3 * steps
        # Of a layer: queries, keys, values, what is attended, and four times the width in between.
        kept = 8 * tokens * network.layers * network.width + getattr(network, "heads", 1) * tokens**2
    return drawn + windows * kept * (2 if settings.precision == "bfloat16" else _FLOAT)


def check_evaluation(design: Design, seeds: int, targets: int, episodes: int) -> None:
    """Refuse more episodes at once than a machine can hold."""
    count = seeds * targets * episodes
    told = f"{seeds:,} seeds x {targets:,} targets x {episodes:,} episodes"
    require(count <= _MOST_EPISODES, told, f"{count:,}", f"at most {_MOST_EPISODES:,} in all")
    history = count * design.memory * (design.observation_size + design.actions.size + 2) * _FLOAT
    if history > (there := total_memory()):
        raise InputError(
            f"{told} would take at least {_size(history)} of memory, and there are {_size(there)}; fewer "
            "targets or episodes take less"
        )


def _size(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e12 else f"{size / 1e9:,.0f} GB"
