"""Soft actor-critic (Haarnoja et al. 2018) as pure functions of one learner; `training` stacks them."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import optax

from cwbc.behaviours.policies import LOG_STDS
from cwbc.behaviours.replay import Replay, Transitions, insert, unpack
from cwbc.core.layers import Parameters, dense, layer_norm, linear, norm
from cwbc.core.learners import Metrics
from cwbc.system.errors import require

# Transitions are counted in 32 bits; more of the others fit into no memory.
_MOST = {
    "copies": 10_000,
    "updates": 10_000,
    "batch": 2**20,
    "capacity": 2**31 - 1,
    "actor_width": 8192,
    "critic_width": 8192,
}


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


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class SACState:
    """What updates change."""

    parameters: Parameters  # actor, critics [critic, ...] and log_temperature
    targets: Parameters  # as the critics
    optimizer: optax.OptState


def initialize(settings: SAC, observation_size: int, action_size: int, key: jax.Array) -> SACState:
    """The state before the first update."""
    actor_key, critics_key = jax.random.split(key)
    width = settings.critic_width

    def critic(key: jax.Array) -> Parameters:
        keys = jax.random.split(key, 3)
        return {
            "first": linear(keys[0], observation_size + action_size, width),
            "first_norm": norm(width),
            "second": linear(keys[1], width, width),
            "second_norm": norm(width),
            "output": linear(keys[2], width, 1),
        }

    keys = jax.random.split(actor_key, 3)
    parameters = {
        "actor": {
            "first": linear(keys[0], observation_size, settings.actor_width),
            "second": linear(keys[1], settings.actor_width, settings.actor_width),
            "output": linear(keys[2], settings.actor_width, 2 * action_size),
        },
        "critics": jax.vmap(critic)(jax.random.split(critics_key, 2)),
        "log_temperature": jnp.zeros(()),
    }
    # A copy: the same buffer cannot be given away twice when the state is donated.
    targets = jax.tree.map(jnp.copy, parameters["critics"])
    return SACState(parameters, targets, _optimizer(settings).init(parameters))


def distribution(actor: Parameters, observations: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Mean and log std of each action before tanh, [..., action]."""
    hidden = jax.nn.relu(dense(actor["first"], observations))
    hidden = jax.nn.relu(dense(actor["second"], hidden))
    means, raw = jnp.split(dense(actor["output"], hidden), 2, axis=-1)
    low, high = LOG_STDS
    return means, low + (high - low) / 2 * (jnp.tanh(raw) + 1)


def sample(actor: Parameters, observations: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Actions within (-1, 1) for standard normal noise, and their log-densities."""
    means, log_stds = distribution(actor, observations)
    before = means + jnp.exp(log_stds) * noise
    normal = -0.5 * jnp.square(noise) - log_stds - 0.5 * math.log(2 * math.pi)
    # log(1 - tanh(u)^2) without the cancellation
    squash = 2 * (math.log(2) - before - jax.nn.softplus(-2 * before))
    return jnp.tanh(before), (normal - squash).sum(axis=-1)


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


def bootstrap(
    rewards: jax.Array, terminated: jax.Array, values: jax.Array, entropies: jax.Array, discount: float
) -> jax.Array:
    """r + γ (min Q' + α H), but r alone where the episode terminated.

    Args:
        values: of the next step by each target critic, [critic, batch].
        entropies: the next action's part of the entropy bonus, -α log π, [batch].
    """
    return rewards + discount * (1 - terminated) * (values.min(axis=0) + entropies)


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
    wanted = bootstrap(
        batch.rewards,
        batch.terminated,
        q_values(targets, batch.next_observations, next_actions),
        -temperature * next_densities,
        settings.discount,
    )
    values = q_values(parameters["critics"], batch.observations, batch.actions)
    critic_loss = jnp.square(values - jax.lax.stop_gradient(wanted)).mean(axis=1).sum()
    chosen = q_values(jax.lax.stop_gradient(parameters["critics"]), batch.observations, actions).min(axis=0)
    actor_loss = (temperature * densities - chosen).mean()
    entropy = -jax.lax.stop_gradient(densities).mean()
    temperature_loss = temperature_objective(parameters["log_temperature"], entropy, actions.shape[-1])
    metrics = {"critic_loss": critic_loss, "value": values.mean(), "entropy": entropy}
    return critic_loss + actor_loss + temperature_loss, metrics | {"temperature": temperature}


def temperature_objective(log_temperature: jax.Array, entropy: jax.Array, action_size: int) -> jax.Array:
    """Its descent lowers the temperature while the entropy is above its target, -dim, and else raises it."""
    return log_temperature * (entropy + action_size)


def update(settings: SAC, state: SACState, batch: Transitions, noise: jax.Array) -> tuple[SACState, Metrics]:
    """One gradient step of actor, critics and temperature, after which the target critics follow."""
    gradient = jax.grad(functools.partial(losses, settings), has_aux=True)
    gradients, metrics = gradient(state.parameters, state.targets, batch, noise)
    changes, optimizer = _optimizer(settings).update(gradients, state.optimizer)
    parameters = optax.apply_updates(state.parameters, changes)
    targets = optax.incremental_update(parameters["critics"], state.targets, settings.target_rate)
    return SACState(parameters, targets, optimizer), metrics


def learn(
    settings: SAC, state: SACState, replay: Replay, fresh: jax.Array, key: jax.Array, updates: int
) -> tuple[SACState, Replay, Metrics]:
    """Insert fresh rows [copy, column] into the replay, then update on batches of it; metrics [update]."""
    replay = insert(replay, fresh)
    actor = state.parameters["actor"]
    observation_size, action_size = len(actor["first"]["weight"]), len(actor["output"]["bias"]) // 2
    rows_key, noise_key = jax.random.split(key)
    # Everything random is sampled before the loop, in few large kernels.
    numbers = jax.random.randint(rows_key, (updates, settings.batch), 0, replay.filled)
    noise = jax.random.normal(noise_key, (updates, 2, settings.batch, action_size))
    batches = unpack(replay.rows[numbers], observation_size, action_size)
    step = lambda state, inputs: update(settings, state, *inputs)  # noqa: E731
    state, metrics = jax.lax.scan(step, state, (batches, noise))
    return state, replay, metrics


def _optimizer(settings: SAC) -> optax.GradientTransformation:
    return optax.partition(
        {"actor": optax.adam(settings.actor_rate), "rest": optax.adam(settings.critic_rate)},
        {"actor": "actor", "critics": "rest", "log_temperature": "rest"},
    )
