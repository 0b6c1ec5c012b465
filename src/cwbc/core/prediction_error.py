"""How far a policy's actions are from logged ones, on held-out episodes and on those of training."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core.acting import History
from cwbc.core.device import on_cpu
from cwbc.core.holdout import Split
from cwbc.core.layers import Parameters
from cwbc.core.learners import Metrics
from cwbc.core.measured_errors import BANDS, HELD_OUT, TRAINING, of_band
from cwbc.core.methods import Training
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.spaces import Discrete
from cwbc.core.training_loop import step_operations
from cwbc.core.trajectories import Trajectories

_MOST, _MOST_LOOKING_BACK = 510, 126  # steps of held-out episodes, and as many of training
_COST = 0.02  # of training: measured less often where once per chunk would cost more
_GOLDEN = (math.sqrt(5) - 1) / 2


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class LoggedSteps:
    """Steps of logged episodes, with what a policy remembers at each."""

    histories: History  # [group, window, memory, ...]
    steps: jax.Array  # [group, window] the present one in the history
    actions: jax.Array  # [group, window, ...] as logged

    @classmethod
    def of(cls, spec: PolicySpec, data: Trajectories, episodes: NDArray[np.int64], count: int) -> LoggedSteps:
        """Steps spread evenly over some episodes."""
        # Multiples of the golden ratio: equal distances would meet the same timestep of all equal episodes.
        ends = np.cumsum(data.lengths[episodes])
        places = (np.arange(count) * _GOLDEN % 1 * ends[-1]).astype(np.int64)
        member = np.searchsorted(ends, places, side="right")
        chosen = episodes[member]
        now = places - (ends[member] - data.lengths[chosen])
        steps = np.minimum(now, spec.memory - 1)
        timesteps = (now - steps)[:, None] + np.arange(spec.memory)
        timesteps = np.minimum(timesteps, data.lengths[chosen][:, None] - 1)
        rows, space = data.starts[chosen][:, None] + timesteps, spec.observations
        firsts = data.observation_starts[chosen][:, None]
        is_past = np.arange(spec.memory) < steps[:, None]  # the present action is asked for
        encoded = spec.actions.encode(jnp.asarray(data.actions[rows]))
        returns_to_go = spec.method.learner.standardized(data.returns_to_go[rows], timesteps, spec.horizon)
        frames = data.observations[space.rows_read(firsts + timesteps, np.broadcast_to(firsts, rows.shape))]
        history = History(
            observations=space.sampled(jnp.asarray(frames), tuple(map(jnp.asarray, space.arrays))),
            actions=jnp.where(is_past[..., None], encoded, 0.0),
            returns_to_go=jnp.asarray(returns_to_go, jnp.float32),
            timesteps=jnp.asarray(timesteps, jnp.int32),
            frames=None,
        )
        present = data.actions[data.starts[chosen] + now]
        return cls(history, jnp.asarray(steps, jnp.int32), jnp.asarray(present))


@dataclasses.dataclass(frozen=True)
class PredictionError:
    """The errors of a training's policies on a fixed sample of steps, measured between chunks.

    For continuous actions it is the mean squared difference of encoded actions, for discrete ones the
    fraction of wrong actions. Returns-to-go are those of the logged episode.
    """

    spec: PolicySpec
    training: Training
    split: Split

    def __call__(self, parameters: Parameters, rows: slice, first_step: int, step: int) -> Metrics:
        """The errors of some seeds [row] after a chunk of training; none where it is not their time."""
        if first_step // self._period == step // self._period and step < self.training.steps:
            return {}
        program = _program(self.spec.form, self._bands)
        if not on_cpu():
            return program(jax.tree.map(lambda x: x[rows], parameters), self._sample)
        # In turn, as in training, so that a seed's errors are the same alone and among others.
        places = range(rows.start, rows.stop)
        each = [program(jax.tree.map(lambda x, at=at: x[at], parameters), self._sample) for at in places]
        return jax.tree.map(lambda *x: jnp.stack(x), *each)

    @functools.cached_property
    def _bands(self) -> tuple[str, ...]:
        assert self.split.held_out is not None
        return BANDS if self.split.held_out.episodes >= len(BANDS) else ("",)

    @functools.cached_property
    def _sample(self) -> LoggedSteps:
        """The steps of held-out episodes by band, then as many of training. [group, window]"""
        most = _MOST_LOOKING_BACK if self.spec.memory > 1 else _MOST
        count, held_out = most // len(self._bands), self.split.held_out
        assert held_out is not None
        groups = [
            LoggedSteps.of(self.spec, data, episodes, count)
            for data in (held_out, self.split.training)
            for episodes in np.array_split(np.argsort(data.returns, kind="stable"), len(self._bands))
        ]
        return jax.tree.map(lambda *x: jnp.stack(x), *groups)

    @functools.cached_property
    def _period(self) -> int:
        """At least so many steps of training lie between two measurements."""
        learner, one = self.spec.method.learner, jax.tree.map(lambda x: x[0], self._sample)
        state = jax.eval_shape(lambda: learner.initialize(self.spec, jax.random.key(0)))
        measuring = jax.jit(step_errors, static_argnums=0).lower(self.spec.form, state.parameters, one)
        operations = (measuring.cost_analysis() or {}).get("flops", 0.0) * 2 * len(self._bands)
        return max(1, math.ceil(operations / (_COST * step_operations(self.spec, self.training))))


def step_errors(spec: PolicySpec, parameters: Parameters, some: LoggedSteps) -> jax.Array:
    """The error of one policy at each step of one group. [window]"""
    learner = spec.method.learner

    def alone(history: History, step: jax.Array) -> jax.Array:
        return learner.act(spec, parameters, jax.tree.map(lambda x: x[None], history), step)[0]

    if spec.memory == 1:
        actions = learner.act(spec, parameters, some.histories, jnp.zeros((), jnp.int32))
    else:  # histories have different present steps, and a learner takes one for all
        actions = jax.vmap(alone)(some.histories, some.steps)
    if isinstance(spec.actions, Discrete):
        return (actions != some.actions).astype(jnp.float32)
    difference = spec.actions.encode(actions) - spec.actions.encode(some.actions)
    return jnp.mean(jnp.square(difference), axis=-1)


@functools.lru_cache(maxsize=32)
def _program(spec: PolicySpec, bands: tuple[str, ...]) -> Callable[[Any, LoggedSteps], Metrics]:
    """The errors by name; on an accelerator those of several seeds. [seed]"""

    def errors(parameters: Parameters, sample: LoggedSteps) -> Metrics:
        def of_group(group: LoggedSteps) -> jax.Array:
            return jnp.mean(step_errors(spec, parameters, group))

        means = jax.lax.map(of_group, sample)  # in turn: all at once would take much memory
        held_out, trained = means[: len(bands)], means[len(bands) :]
        by_band = {of_band(band): held_out[at] for at, band in enumerate(bands) if band}
        return {HELD_OUT: held_out.mean(), **by_band, TRAINING: trained.mean()}

    if on_cpu():
        return jax.jit(errors)
    if spec.memory == 1:
        return jax.jit(jax.vmap(errors, in_axes=(0, None)))
    return jax.jit(lambda several, sample: jax.lax.map(lambda one: errors(one, sample), several))
