"""Q-learning without a replay or a target network (PQN, Gallici et al. 2024), for discrete actions.

First pure functions of one learner, then all seeds side by side.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax

from cwbc.behaviours.collector import Collector
from cwbc.behaviours.policies import LearnedActor
from cwbc.behaviours.value_policies import ValuePolicy
from cwbc.core.encoders import SMALL, Convolutions
from cwbc.core.layers import Parameters, dense, layer_norm, linear, norm, relu
from cwbc.core.learners import Metrics
from cwbc.core.simulation import Simulator
from cwbc.core.spaces import Image
from cwbc.system.errors import InputError, require

_DQN = Convolutions((32, 64, 64), (8, 4, 3), (4, 2, 1))
_LONGEST_GRADIENT = 10.0
_MOST = {
    "copies": 10_000,
    "rollout": 10_000,
    "epochs": 1000,
    "minibatches": 2**20,
    "width": 8192,
    "stack": 64,
}
_MOST |= {"exploration": 2**31 - 1, "interval": 2**31 - 1}


@dataclasses.dataclass(frozen=True)
class PQN:
    """The hyper-parameters of a learner; steps are those of one seed, over all copies of its environment.

    Args:
        copies: copies of the environment that each seed steps together.
        rollout: steps of every copy between two updates.
        epochs: how often an update uses each step.
        minibatches: gradient steps in an epoch.
        rate: RAdam's learning rate.
        trace: lambda, how much a target consists of later rewards, rather than of the value one step later.
        discount: gamma, the discount.
        exploration: steps in which epsilon falls from 1 to its last value, at most half of --steps.
        epsilon: the last probability of a random action.
        width: hidden dimension of the network.
        stack: frames of images that the network reads; 1 for other observations.
        reward_limit: rewards are clipped to this size in learning, 1 for images; by default not for others.
        interval: steps between snapshots, at most a tenth of --steps.
    """

    copies: int = 128
    rollout: int = 32
    epochs: int = 2
    minibatches: int = 32
    rate: float = 2.5e-4
    trace: float = 0.65
    discount: float = 0.99
    exploration: int = 1_200_000
    epsilon: float = 0.001
    width: int = 512
    stack: int = 4
    reward_limit: float | None = None
    interval: int = 125_000

    keeps_replay: ClassVar[bool] = False
    depends_on_steps: ClassVar[tuple[str, ...]] = ("exploration", "interval")

    @classmethod
    def sized(cls, simulator: Simulator, steps: int, options: Mapping[str, Any]) -> Self:
        """Games have frames to stack and rewards to clip; a short training explores for half of its steps."""
        lengths = {"exploration": min(cls.exploration, max(1, steps // 2))}
        lengths |= {"interval": min(cls.interval, max(1, steps // 10))}
        kind = {"stack": 1} if simulator.image_shape is None else {"reward_limit": 1.0}
        return cls(**lengths | kind | dict(options))

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require(value >= 1, name, value, "at least 1")
            require(value <= most, name, value, f"at most {most:,}")
        require(self.rate > 0, "rate", self.rate, "positive")
        limit = self.reward_limit
        require(limit is None or limit > 0, "reward_limit", limit, "positive")
        for name in ("trace", "epsilon"):
            require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "at least 0 and at most 1")
        require(0 <= self.discount < 1, "discount", self.discount, "at least 0 and below 1")
        fits = self.advance % self.minibatches == 0
        require(fits, "minibatches", self.minibatches, f"a divisor of copies x rollout ({self.advance})")

    @property
    def advance(self) -> int:
        """Steps between two updates."""
        return self.copies * self.rollout

    def epsilon_at(self, step: Any) -> Any:
        """The probability of a random action at a step."""
        return 1 - (1 - self.epsilon) * np.minimum(step / self.exploration, 1.0)

    def network(self, simulator: Simulator) -> QNetwork:
        """The network of an environment."""
        shape = simulator.image_shape or (simulator.observation_size,)
        return QNetwork(shape, self.stack, self.width, simulator.action_size)

    def check(self, environment: str, simulator: Simulator) -> None:
        """Refuse continuous actions."""
        if not simulator.discrete:
            raise InputError(f"{environment} has continuous actions; PQN needs discrete ones")
        if simulator.image_shape is None and self.stack > 1:
            raise InputError(f"stack must be 1 for {environment}, whose observations are no images")

    def is_due(self, before: int, step: int) -> bool:
        """Whether a snapshot is taken after a step: at equal intervals."""
        return before // self.interval < step // self.interval

    def initialize(self, simulator: Simulator, keys: jax.Array, steps: int) -> tuple[PQNState, None]:
        """The state of each seed; there is no replay."""
        return _initialize(self, self.network(simulator), keys), None

    def states(
        self, collector: Collector, keys: jax.Array, state: PQNState, replay: None, first: int, steps: int
    ) -> Iterator[tuple[int, PQNState, None]]:
        """The steps done and the states after each update."""
        network = self.network(collector.simulator)
        limit = np.inf if self.reward_limit is None else self.reward_limit
        frames: Any = collector.previous
        for begin in range(first, steps, self.advance):
            acted, taken = [], []
            for step in range(begin, begin + self.advance, self.copies):
                now = (frames, collector.observations, collector.is_first)
                epsilon = np.float32(self.epsilon_at(step))
                acted.append(_act(network, state.parameters, *now, epsilon, keys, step))
                frames, actions, _ = acted[-1]
                taken.append(collector.step(np.asarray(actions)))
            before, choices, values = zip(*acted, strict=True)
            rollout = Rollout(
                frames=before,
                actions=choices,
                values=values,
                rewards=np.stack([each.rewards.clip(-limit, limit) for each in taken], axis=1),
                terminated=np.stack([each.terminated | each.life_lost for each in taken], axis=1),
                truncated=np.stack([each.truncated & ~each.terminated for each in taken], axis=1),
                newest=collector.observations,
                is_first=collector.is_first,
            )
            state = _learn(self, network, state, rollout, keys, begin)
            yield begin + self.advance, state, None

    def actors(self, simulator: Simulator, state: PQNState, step: int) -> list[LearnedActor]:
        """The policy of each seed, rounded as its file is, with the epsilon of the learner."""
        network, parameters = self.network(simulator), jax.device_get(state.parameters)
        epsilon = float(self.epsilon_at(step))
        return [
            network.policy(jax.tree.map(lambda x, row=row: x[row], parameters), epsilon)
            for row in range(len(parameters["output"]["bias"]))
        ]


class PQNState(NamedTuple):
    """What updates change."""

    parameters: Parameters
    optimizer: optax.OptState


class Rollout(NamedTuple):
    """Steps of several copies, one after another, and where they lead."""

    frames: tuple[Any, ...]  # of each step: [copy, frame, number]
    actions: tuple[Any, ...]  # of each step: [copy]
    values: tuple[Any, ...]  # of each step, the highest of an action: [copy]
    rewards: Any  # [step, copy]
    terminated: Any  # [step, copy], also where a life was lost
    truncated: Any  # [step, copy]
    newest: Any  # [copy, number], the observations after the last step
    is_first: Any  # [copy], whether these begin an episode


@dataclasses.dataclass(frozen=True)
class QNetwork:
    """Convolutions of images, or a dense layer, then a hidden layer; a layer norm before each ReLU."""

    shape: tuple[int, ...]  # of an observation: [number], or [height, width, channel] of an image
    stack: int  # frames of images that it reads
    width: int
    actions: int

    @property
    def encoder(self) -> Convolutions | None:
        """The convolutions, of images."""
        if len(self.shape) == 1:
            return None
        return _DQN if min(self.shape[:2]) >= SMALL else Convolutions().fit(self.shape)

    def initialize(self, key: jax.Array) -> Parameters:
        """Fresh parameters."""
        first, hidden, output = jax.random.split(key, 3)
        if (encoder := self.encoder) is None:
            layers, features = {"first": linear(first, self.shape[0], self.width)}, self.width
            layers["first_norm"] = norm(self.width)
        else:
            layers = encoder.initialize(first, self._image.encoded_shape)
            layers |= {_norm_of(i): norm(count) for i, count in enumerate(encoder.channels or ())}
            features = encoder.features(self._image.encoded_shape)
        layers |= {"hidden": linear(hidden, features, self.width), "hidden_norm": norm(self.width)}
        return layers | {"output": linear(output, self.width, self.actions)}

    def __call__(self, parameters: Parameters, frames: jax.Array) -> jax.Array:
        """The value of each action, [row, action], for observations [row, frame, number]."""
        if (encoder := self.encoder) is None:
            x = _activated(parameters["first_norm"], dense(parameters["first"], frames[:, 0]))
        else:
            images = self._image.sampled(frames.reshape(*frames.shape[:2], *self.shape))
            x = encoder(parameters, images, lambda i, x: _activated(parameters[_norm_of(i)], x))
        x = _activated(parameters["hidden_norm"], dense(parameters["hidden"], x))
        return dense(parameters["output"], x)

    def policy(self, parameters: Parameters, epsilon: float) -> ValuePolicy:
        """The policy of trained parameters, rounded as its file is."""
        if (encoder := self.encoder) is None:
            names = [("first", "first_norm", 0)]
        else:
            names = [(f"convolution{i}", _norm_of(i), each) for i, each in enumerate(encoder.strides or ())]
        names += [("hidden", "hidden_norm", 0), ("output", "", 0)]
        layers = ((parameters[name], parameters.get(after), stride) for name, after, stride in names)
        return ValuePolicy.of(layers, self.shape, self.stack, epsilon)

    @property
    def _image(self) -> Image:
        height, width, channels = self.shape
        return Image(height, width, channels, self.stack)


def _norm_of(convolution: int) -> str:
    return f"norm{convolution}"


def _activated(norm: Parameters, x: jax.Array) -> jax.Array:
    return relu(layer_norm(norm, x))


def initialize(settings: PQN, network: QNetwork, key: jax.Array) -> PQNState:
    """The state before the first update."""
    parameters = network.initialize(key)
    return PQNState(parameters, _optimizer(settings).init(parameters))


def push(frames: jax.Array, newest: jax.Array, is_first: jax.Array) -> jax.Array:
    """The last frames with the newest; the first of an episode is repeated. [copy, frame, number]"""
    later = jnp.concatenate((frames[:, 1:], newest[:, None]), axis=1)
    return jnp.where(is_first[:, None, None], newest[:, None], later)


def targets(settings: PQN, rollout: Rollout, last_values: jax.Array) -> jax.Array:
    """The lambda-returns that values are to be, [step, copy].

    A truncated step is not learned from, since what follows it is of the next episode: its target is its own
    value, from which the steps before it bootstrap.

    Args:
        last_values: the highest value after the last step, [copy].
    """

    def earlier(later: Any, step: Any) -> Any:
        target, value = later
        reward, terminated, truncated, own = step
        following = settings.trace * target + (1 - settings.trace) * value
        wanted = reward + settings.discount * jnp.where(terminated, 0.0, following)
        wanted = jnp.where(truncated, own, wanted)
        return (wanted, own), wanted

    steps = (rollout.rewards, rollout.terminated, rollout.truncated, jnp.stack(rollout.values))
    return jax.lax.scan(earlier, (last_values, last_values), steps, reverse=True)[1]


def learn(
    settings: PQN, network: QNetwork, state: PQNState, rollout: Rollout, key: jax.Array
) -> tuple[PQNState, Metrics]:
    """Update on a rollout: the targets once, then epochs of minibatches. Metrics [update]."""
    newest = push(rollout.frames[-1], rollout.newest, rollout.is_first)
    wanted = targets(settings, rollout, network(state.parameters, newest).max(axis=-1)).reshape(-1)
    counts = jnp.where(rollout.truncated, 0.0, 1.0).reshape(-1)
    frames, actions = (jnp.concatenate(part) for part in (rollout.frames, rollout.actions))

    def loss(parameters: Parameters, rows: jax.Array) -> jax.Array:
        values = network(parameters, frames[rows])
        chosen = jnp.take_along_axis(values, actions[rows, None], axis=-1)[:, 0]
        return jnp.mean(counts[rows] * jnp.square(chosen - wanted[rows])) / 2

    def update(state: PQNState, rows: jax.Array) -> tuple[PQNState, Metrics]:
        value, gradient = jax.value_and_grad(loss)(state.parameters, rows)
        changes, optimizer = _optimizer(settings).update(gradient, state.optimizer)
        return PQNState(optax.apply_updates(state.parameters, changes), optimizer), {"loss": value}

    orders = [jax.random.permutation(each, len(wanted)) for each in jax.random.split(key, settings.epochs)]
    return jax.lax.scan(
        update, state, jnp.concatenate(orders).reshape(-1, len(wanted) // settings.minibatches)
    )


def _optimizer(settings: PQN) -> optax.GradientTransformation:
    return optax.chain(optax.clip_by_global_norm(_LONGEST_GRADIENT), optax.radam(settings.rate))


# All seeds: arrays have an axis [seed] in front; each purpose has its own keys.


@functools.partial(jax.jit, static_argnums=(0, 1))
@functools.partial(jax.vmap, in_axes=(None, None, 0))
def _initialize(settings: PQN, network: QNetwork, key: jax.Array) -> PQNState:
    return initialize(settings, network, jax.random.fold_in(key, 0))


@functools.partial(jax.jit, static_argnums=0)
@functools.partial(jax.vmap, in_axes=(None, 0, 0, 0, 0, None, 0, None))
def _act(
    network: QNetwork,
    parameters: Parameters,
    frames: jax.Array,
    newest: jax.Array,
    is_first: jax.Array,
    epsilon: float,
    key: jax.Array,
    step: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """The last frames, the actions and the highest values of all copies."""
    random_key, choice_key = jax.random.split(jax.random.fold_in(jax.random.fold_in(key, 1), step))
    frames = push(frames, newest, is_first)
    values = network(parameters, frames)
    random = jax.random.randint(choice_key, values.shape[:1], 0, network.actions)
    is_random = jax.random.uniform(random_key, values.shape[:1]) < epsilon
    return frames, jnp.where(is_random, random, values.argmax(axis=-1)), values.max(axis=-1)


@functools.partial(jax.jit, static_argnums=(0, 1), donate_argnums=2)
@functools.partial(jax.vmap, in_axes=(None, None, 0, 0, 0, None))
def _learn(
    settings: PQN, network: QNetwork, state: PQNState, rollout: Rollout, key: jax.Array, step: int
) -> PQNState:
    key = jax.random.fold_in(jax.random.fold_in(key, 2), step)
    return learn(settings, network, state, rollout, key)[0]
