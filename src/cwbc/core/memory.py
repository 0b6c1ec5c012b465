"""Whether a training or an evaluation fits into memory, estimated before anything is allocated or written."""

from __future__ import annotations

import functools
import math

import jax
import numpy as np

from cwbc.core.device import on_cpu, total_memory
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.sampling import SAMPLED_TOGETHER
from cwbc.system.errors import InputError, require

_FLOAT = 4  # bytes
_MOST_EPISODES = 1_000_000  # at once, of all seeds and targets: each has its own copy of the environment


def check_training(spec: PolicySpec, training: Training, seeds: int) -> None:
    """Refuse a training whose state and batch alone take more memory than there is."""
    # Timesteps have 32 bits; a file may claim any limit.
    require(spec.horizon < 2**31, "the time limit of the data", spec.horizon, f"at most {2**31 - 1:,}")
    learner = spec.method.learner
    initial = jax.eval_shape(functools.partial(learner.initialize, spec), jax.random.key(0))
    of_seed, gradients = (
        sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
        for tree in (initial, initial.parameters)
    )
    at_once = 1 if on_cpu() else seeds  # on a CPU, seeds take turns
    state, batch = seeds * of_seed + at_once * gradients, at_once * _batch(spec, training)
    if state + batch > (there := total_memory()):
        raise InputError(
            f"{spec.method.name} would take at least {_size(state + batch)} of memory ({_size(state)} for "
            f"parameters and optimizer of {seeds} seeds, {_size(batch)} for a batch), and there are "
            f"{_size(there)}; a smaller width, context or batch size, fewer layers or fewer seeds take less"
        )


def _batch(spec: PolicySpec, training: Training) -> int:
    """Bytes of the steps that are sampled together, and of the activations that a gradient needs."""
    learner = spec.method.learner
    steps = min(SAMPLED_TOGETHER, training.steps) * training.batch_size * learner.window(training)
    activations = learner.activations(spec, training) * (2 if training.precision == "bfloat16" else _FLOAT)
    return steps * _step(spec) + activations


def _step(spec: PolicySpec) -> int:
    """Bytes of one step: observation, action, return-to-go and timestep."""
    space = spec.observations
    observation = math.prod(space.encoded_shape) * np.dtype(space.dtype).itemsize
    return observation + (spec.actions.size + 2) * _FLOAT


def check_evaluation(spec: PolicySpec, seeds: int, targets: int, episodes: int) -> None:
    """Refuse more episodes at once than fit into memory."""
    count = seeds * targets * episodes
    product = f"{seeds:,} seeds x {targets:,} targets x {episodes:,} episodes"
    require(count <= _MOST_EPISODES, product, f"{count:,}", f"at most {_MOST_EPISODES:,} in all")
    history = count * spec.memory * _step(spec)
    if history > (there := total_memory()):
        raise InputError(
            f"{product} would take at least {_size(history)} of memory, and there are {_size(there)}; fewer "
            "targets or episodes take less"
        )


def _size(size: float) -> str:
    return f"{size / 1e9:,.3g} GB" if size < 1e12 else f"{size / 1e9:,.0f} GB"
