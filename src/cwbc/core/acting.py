"""One step of acting for many episodes at once, as a pure function of their histories."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from cwbc.core.layers import Parameters
from cwbc.core.policy_spec import PolicySpec


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class History:
    """The last steps of several episodes; entries after the current step are not read."""

    observations: Any  # [episode, memory, ...], as the network reads them
    actions: Any  # [episode, memory, size], encoded
    returns_to_go: Any  # [episode, memory], standardized
    timesteps: Any  # [episode, memory]
    frames: Any  # [episode, frame, height, width, channel] of images, the last of each episode
    keys: Any = None  # [episode, 2] uint32, with which actions are sampled; None: they are greedy

    @classmethod
    def empty(cls, spec: PolicySpec, episodes: int) -> History:
        """The history of episodes before their first step."""
        shape, space = (episodes, spec.memory), spec.observations
        frames = (episodes, space.stack, *space.shape)
        # By NumPy, which compiles no program for their shapes.
        return cls(
            observations=np.zeros((*shape, *space.encoded_shape), space.dtype),
            actions=np.zeros((*shape, spec.actions.size), np.float32),
            returns_to_go=np.zeros(shape, np.float32),
            timesteps=np.zeros(shape, np.int32),
            frames=np.zeros(frames, space.dtype) if space.is_stacked else None,
            keys=np.zeros((episodes, 2), np.uint32) if spec.sampled else None,
        )

    def keys_at(self, step: jax.Array) -> jax.Array:
        """A random key of each episode for one step of it. [episode]"""
        return jax.vmap(jax.random.fold_in)(jax.random.wrap_key_data(self.keys), self.timesteps[:, step])


def act(
    spec: PolicySpec,
    parameters: Parameters,
    history: History,
    timestep: jax.Array,  # []
    observations: jax.Array,  # [episode, ...]: vectors normalized, images as they are
    returns_to_go: jax.Array,  # [episode], standardized
) -> tuple[History, jax.Array]:
    """The history after one step of several episodes at the same timestep, and their actions."""
    memory = spec.memory
    # A memory of one step does not depend on the timestep.
    step = jnp.minimum(timestep, memory - 1) if memory > 1 else jnp.zeros((), jnp.int32)
    full = timestep >= memory

    def appended(entries: jax.Array, entry: Any) -> jax.Array:
        if memory > 1:
            entries = jnp.where(full, jnp.roll(entries, -1, axis=1), entries)
        return entries.at[:, step].set(entry)

    frames = history.frames
    if frames is not None:
        # Before the first step of an episode, its first frame is repeated, as where windows are sampled.
        later = jnp.concatenate([frames[:, 1:], observations[:, None]], axis=1)
        frames = jnp.where(timestep == 0, observations[:, None], later)
        observations = spec.observations.sampled(frames, ())
    history = History(
        observations=appended(history.observations, observations),
        actions=appended(history.actions, jnp.zeros(history.actions.shape[2])),
        returns_to_go=appended(history.returns_to_go, returns_to_go),
        timesteps=appended(history.timesteps, timestep),
        frames=frames,
        keys=history.keys,
    )
    actions = spec.method.learner.act(spec, parameters, history, step)
    encoded = history.actions.at[:, step].set(spec.actions.encode(actions))
    return dataclasses.replace(history, actions=encoded), actions


def act_each(
    spec: PolicySpec,
    parameters: Parameters,
    history: History,
    timesteps: jax.Array,  # [episode]
    observations: jax.Array,  # [episode, ...]: vectors normalized, images as they are
    returns_to_go: jax.Array,  # [episode], standardized
) -> tuple[History, jax.Array]:
    """The history after one step of several episodes, each at its own timestep, and their actions."""

    def one(history: History, timestep: jax.Array, *now: jax.Array) -> tuple[History, jax.Array]:
        alone, own = jax.tree.map(lambda x: x[None], (history, now))
        return jax.tree.map(lambda x: x[0], act(spec, parameters, alone, timestep, *own))

    return jax.vmap(one)(history, timesteps, observations, returns_to_go)
