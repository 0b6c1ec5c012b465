"""Soft actor-critic (Haarnoja et al. 2018): pure functions of one learner, then all seeds side by side."""

from __future__ import annotations

import bisect
import dataclasses
import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cwbc.behaviours.collector import Collector
from cwbc.behaviours.policies import LOG_STDS, BehaviourPolicy, LearnedActor
from cwbc.core.layers import Parameters, dense, layer_norm, linear, norm, squashed
from cwbc.core.learners import Metrics
from cwbc.core.simulation import Simulator
from cwbc.system import tensor_files
from cwbc.system.errors import InputError, require

# Transitions are counted in 32 bits; more of the others fit into no memory.
_MOST = {"copies": 10_000, "updates": 10_000, "batch": 2**20, "capacity": 2**31 - 1}
_MOST |= {"actor_width": 8192, "critic_width": 8192}
# Often while a learner changes fast: 40 between ten thousand steps and a million.
_SNAPSHOTS = [round(1000 * 1.12**number) for number in range(120)]


@dataclasses.dataclass(frozen=True)
class SAC:
    """The hyper-parameters of a learner; steps are those of one seed, over all copies of its environment.

    Args:
        copies: copies of the environment that each seed steps together.
        updates: gradient steps after each step of all copies.
        batch: transitions in a gradient step.
        capacity: transitions that the replay holds.
        warmup: steps with uniform actions before the first update, at most a tenth of --steps.
        actor_width: hidden dimension of the actor, which snapshots store.
        critic_width: hidden dimension of the two critics.
        actor_rate: Adam's learning rate for the actor.
        critic_rate: Adam's learning rate for critics and temperature.
        discount: gamma, the discount.
        target_rate: tau, how far the target critics follow at each update.
    """

    copies: int = 16
    updates: int = 16
    batch: int = 512
    capacity: int = 1_000_000
    warmup: int = 10_000
    actor_width: int = 64
    critic_width: int = 256
    actor_rate: float = 3e-4
    critic_rate: float = 1e-3
    discount: float = 0.99
    target_rate: float = 0.005

    stack: ClassVar[int] = 1
    keeps_replay: ClassVar[bool] = True
    depends_on_steps: ClassVar[tuple[str, ...]] = ("warmup",)

    @classmethod
    def sized(cls, simulator: Simulator, steps: int, options: Mapping[str, Any]) -> Self:
        """A short training has a warm-up of a tenth of its steps."""
        tenth = max(steps // 10, options.get("copies", cls.copies))
        settings = cls(**{"warmup": min(cls.warmup, tenth)} | dict(options))
        if settings.warmup >= steps:
            raise InputError(f"--warmup {settings.warmup} leaves none of the {steps} steps to learn from")
        return settings

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require(value >= 1, name, value, "at least 1")
            require(value <= most, name, value, f"at most {most:,}")
        for name in ("actor_rate", "critic_rate"):
            require(getattr(self, name) > 0, name, getattr(self, name), "positive")
        fits = self.capacity >= self.copies and self.capacity % self.copies == 0
        require(fits, "capacity", self.capacity, f"a multiple of copies ({self.copies})")
        require(self.warmup >= self.copies, "warmup", self.warmup, f"at least copies ({self.copies})")
        require(0 <= self.discount < 1, "discount", self.discount, "at least 0 and below 1")
        require(0 < self.target_rate <= 1, "target_rate", self.target_rate, "above 0 and at most 1")

    def check(self, environment: str, simulator: Simulator) -> None:
        """Refuse actions without bounds."""
        bounds = simulator.action_bounds
        if bounds is None or not (np.abs(bounds) < np.finfo(np.float32).max).all():
            raise InputError(f"{environment} has no bounded continuous actions, which SAC needs")

    def is_due(self, before: int, step: int) -> bool:
        """Whether a snapshot is taken after a step: ever more rarely, and none during the warm-up."""
        return step > self.warmup and bisect.bisect(_SNAPSHOTS, before) < bisect.bisect(_SNAPSHOTS, step)

    def initialize(self, simulator: Simulator, keys: jax.Array, steps: int) -> tuple[SACState, Transitions]:
        """The state of each seed, and replays no larger than the training can fill them."""
        observation_size, action_size = simulator.observation_size, simulator.action_size
        rows = min(self.capacity, -(-steps // self.copies) * self.copies)
        sizes = ((observation_size,), (action_size,), (), (), (observation_size,))
        empty = Transitions(*(jnp.zeros((len(keys), rows, *size)) for size in sizes))
        return _initialize(self, observation_size, action_size, keys), empty

    def states(
        self,
        collector: Collector,
        keys: jax.Array,
        state: SACState,
        replay: Transitions,
        first: int,
        steps: int,
    ) -> Iterator[tuple[int, SACState, Transitions]]:
        """The steps done, the states and the replays after each step of all copies."""
        for step in range(first, steps, self.copies):
            if step < self.warmup:
                actions: Any = collector.uniform()
            else:
                actions = _act(state.parameters["actor"], collector.observations, keys, step)
                # Queued behind the actions: the device updates while the simulator computes the transitions.
                state = _learn(self, state, replay, keys, step)
            taken = collector.step(np.asarray(actions))._asdict()
            fresh = Transitions(*(np.asarray(taken[name], np.float32) for name in Transitions._fields))
            replay = _insert(replay, fresh, step)
            yield step + self.copies, state, replay

    def actors(self, simulator: Simulator, state: SACState, step: int) -> list[LearnedActor]:
        """The policy of each seed, rounded as its file is."""
        tensors = tensor_files.flatten("actor", state.parameters["actor"])
        bounds = [bound.astype(np.float32) for bound in simulator.action_bounds or ()]
        return [
            BehaviourPolicy.of({name: tensor[row] for name, tensor in tensors.items()}, *bounds)
            for row in range(len(tensors["actor/output/bias"]))
        ]


class SACState(NamedTuple):
    """What updates change."""

    parameters: Parameters  # actor, critics [critic, ...] and log_temperature
    targets: Parameters  # as the critics
    optimizer: optax.OptState


class Transitions(NamedTuple):
    """Transitions of several copies, in a batch or in a replay, which is a ring of them."""

    observations: Any  # [..., dimension]
    actions: Any  # [..., action], within -1 and 1
    rewards: Any  # [...]
    terminated: Any  # [...], 1 where the episode terminated and 0 where it was truncated
    next_observations: Any  # [..., dimension], before any reset


def initialize(settings: SAC, observation_size: int, action_size: int, key: jax.Array) -> SACState:
    """The state before the first update."""
    actor_key, critics_key = jax.random.split(key)
    width = settings.critic_width

    def critic(key: jax.Array) -> Parameters:
        layers = _layers(key, observation_size + action_size, width, width, 1)
        return layers | {"first_norm": norm(width), "second_norm": norm(width)}

    hidden = (settings.actor_width, settings.actor_width)
    parameters = {
        "actor": _layers(actor_key, observation_size, *hidden, 2 * action_size),
        "critics": jax.vmap(critic)(jax.random.split(critics_key, 2)),
        "log_temperature": jnp.zeros(()),
    }
    # A copy: the same buffer cannot be given away twice when the state is donated.
    targets = jax.tree.map(jnp.copy, parameters["critics"])
    return SACState(parameters, targets, _optimizer(settings).init(parameters))


def _layers(key: jax.Array, *sizes: int) -> Parameters:
    names, keys = ("first", "second", "output"), jax.random.split(key, 3)
    ends = itertools.pairwise(sizes)
    return {name: linear(key, *each) for name, key, each in zip(names, keys, ends, strict=True)}


def distribution(actor: Parameters, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and log std of each action before tanh, [..., action]."""
    hidden = jax.nn.relu(dense(actor["first"], observations))
    hidden = jax.nn.relu(dense(actor["second"], hidden))
    means, raw = jnp.split(dense(actor["output"], hidden), 2, axis=-1)
    low, high = LOG_STDS
    return means, low + (high - low) / 2 * (jnp.tanh(raw) + 1)


def sample(actor: Parameters, observations: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Actions within (-1, 1) for standard normal noise, and their log-densities."""
    return squashed(*distribution(actor, observations), noise)


def act(actor: Parameters, observations: jax.Array, key: jax.Array) -> jax.Array:
    """Sampled actions within (-1, 1)."""
    shape = (len(observations), len(actor["output"]["bias"]) // 2)
    return sample(actor, observations, jax.random.normal(key, shape))[0]


def q_values(critics: Parameters, observations: jax.Array, actions: jax.Array) -> jax.Array:
    """Q of each critic, [critic, ...]."""
    inputs = jnp.concatenate((observations, actions), axis=-1)

    def one(critic: Parameters) -> jax.Array:
        hidden = jax.nn.relu(layer_norm(critic["first_norm"], dense(critic["first"], inputs)))
        hidden = jax.nn.relu(layer_norm(critic["second_norm"], dense(critic["second"], hidden)))
        return dense(critic["output"], hidden)[..., 0]

    return jax.vmap(one)(critics)


def losses(
    settings: SAC, parameters: Parameters, targets: Parameters, batch: Transitions, noise: jax.Array
) -> tuple[jax.Array, Metrics]:
    """The sum of the three losses, each of which has a gradient in its own part of the parameters only.

    Args:
        noise: standard normal, for this and the next step, [2, batch, action].
    """
    temperature = jnp.exp(jax.lax.stop_gradient(parameters["log_temperature"]))
    # One pass for both steps: on a GPU the number of small kernels is what costs.
    both = jnp.stack((batch.observations, batch.next_observations))
    (actions, next_actions), (densities, next_densities) = sample(parameters["actor"], both, noise)
    # r + γ (min Q' + α H), but r alone where the episode terminated.
    next_values = q_values(targets, batch.next_observations, next_actions).min(axis=0)
    following = next_values - temperature * next_densities
    wanted = batch.rewards + settings.discount * (1 - batch.terminated) * following
    values = q_values(parameters["critics"], batch.observations, batch.actions)
    critic_loss = jnp.square(values - jax.lax.stop_gradient(wanted)).mean(axis=1).sum()
    chosen = q_values(jax.lax.stop_gradient(parameters["critics"]), batch.observations, actions).min(axis=0)
    actor_loss = (temperature * densities - chosen).mean()
    entropy = -jax.lax.stop_gradient(densities).mean()
    # Its descent lowers the temperature while the entropy is above its target, -dim, and else raises it.
    temperature_loss = parameters["log_temperature"] * (entropy + actions.shape[-1])
    return critic_loss + actor_loss + temperature_loss, {"critic_loss": critic_loss, "entropy": entropy}


def update(settings: SAC, state: SACState, batch: Transitions, noise: jax.Array) -> tuple[SACState, Metrics]:
    """One gradient step of actor, critics and temperature, after which the target critics follow."""
    gradient = jax.grad(functools.partial(losses, settings), has_aux=True)
    gradients, metrics = gradient(state.parameters, state.targets, batch, noise)
    changes, optimizer = _optimizer(settings).update(gradients, state.optimizer)
    parameters = optax.apply_updates(state.parameters, changes)
    targets = optax.incremental_update(parameters["critics"], state.targets, settings.target_rate)
    return SACState(parameters, targets, optimizer), metrics


def insert(replay: Transitions, fresh: Transitions, steps: int) -> Transitions:
    """A replay after so many steps, with the oldest transitions overwritten by the next ones.

    Its capacity is a multiple of their number: a slice that crossed its end would be moved back.
    """
    place = steps % len(replay.rewards)
    return jax.tree.map(
        lambda old, new: jax.lax.dynamic_update_slice_in_dim(old, new, place, axis=0), replay, fresh
    )


def learn(
    settings: SAC, state: SACState, replay: Transitions, steps: int, key: jax.Array
) -> tuple[SACState, Metrics]:
    """Update on batches of a replay after so many steps; metrics [update]."""
    rows_key, noise_key = jax.random.split(key)
    # Everything random is sampled before the loop, in few large kernels.
    filled = jnp.minimum(steps, len(replay.rewards))
    rows = jax.random.randint(rows_key, (settings.updates, settings.batch), 0, filled)
    noise = jax.random.normal(noise_key, (settings.updates, 2, settings.batch, replay.actions.shape[-1]))
    batches = jax.tree.map(lambda x: x[rows], replay)
    return jax.lax.scan(lambda state, inputs: update(settings, state, *inputs), state, (batches, noise))


def _optimizer(settings: SAC) -> optax.GradientTransformation:
    return optax.partition(
        {"actor": optax.adam(settings.actor_rate), "rest": optax.adam(settings.critic_rate)},
        {"actor": "actor", "critics": "rest", "log_temperature": "rest"},
    )


# The functions above for all seeds: arrays have an axis [seed] in front; each purpose has its own keys.


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
@functools.partial(jax.vmap, in_axes=(None, None, None, 0))
def _initialize(settings: SAC, observation_size: int, action_size: int, key: jax.Array) -> SACState:
    return initialize(settings, observation_size, action_size, jax.random.fold_in(key, 0))


@jax.jit
@functools.partial(jax.vmap, in_axes=(0, 0, 0, None))
def _act(actor: Any, observations: jax.Array, key: jax.Array, step: int) -> jax.Array:
    return act(actor, observations, jax.random.fold_in(jax.random.fold_in(key, 1), step))


_insert = jax.jit(jax.vmap(insert, in_axes=(0, 0, None)), donate_argnums=0)


@functools.partial(jax.jit, static_argnums=0, donate_argnums=1)
@functools.partial(jax.vmap, in_axes=(None, 0, 0, 0, None))
def _learn(settings: SAC, state: SACState, replay: Transitions, key: jax.Array, step: int) -> SACState:
    key = jax.random.fold_in(jax.random.fold_in(key, 2), step)
    return learn(settings, state, replay, step, key)[0]
