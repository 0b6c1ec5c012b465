"""Behavioural cloning, conditioned on a return or not: supervised learning of the logged actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from cwbc.core import conditioning, optimizers
from cwbc.core.conditioning import Condition
from cwbc.core.encoders import Convolutions
from cwbc.core.layers import Parameters
from cwbc.core.learners import Learner, Metrics, Update
from cwbc.core.networks import Network
from cwbc.core.optimizers import Optimizer
from cwbc.core.regularizers import Conservative
from cwbc.core.spaces import Discrete
from cwbc.core.trajectories import Trajectories

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window

SATURATED = 0.999  # encoded actions beyond it are at an end of their range


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CloningNumbers:
    """Hyper-parameters that are only numbers, which programs take as arguments."""

    learning_rate: Any  # []
    weight_decay: Any  # []
    warmup_steps: Any  # []
    noise_width: Any  # [] of the return noise, in the condition's unit
    coefficient: Any  # [] alpha


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CloningState:
    """Parameters and the optimizer's state."""

    parameters: Parameters  # [seed, ...]
    optimizer: Any  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CloningBatch:
    """The sampled windows, then some of them once more with noise on their returns-to-go."""

    observations: jax.Array  # [sampled window, step, ...]: noise changes none, so images are encoded once
    actions: jax.Array  # [window, step, dimension] or [window, step]
    returns_to_go: jax.Array  # [window, step]
    timesteps: jax.Array  # [window, step]
    weights: jax.Array  # [window, step] in the mean of its loss; 0 where nothing is trained on
    dropout_key: jax.Array
    coefficient: jax.Array  # [] alpha
    sampled: int = dataclasses.field(metadata={"static": True})  # the first windows, those without noise


Carried = tuple[CloningState, Parameters]  # the state, and what is prepared of its parameters


@dataclasses.dataclass(frozen=True)
class Cloning(Learner):
    """Supervised learning of the logged actions."""

    network: Network
    condition: Condition | None
    regularizer: Conservative | None
    optimizer: Optimizer
    encoder: Convolutions = dataclasses.field(default=Convolutions(), metadata={"added": True})

    @property
    def looks_back(self) -> bool:
        return self.network.looks_back

    @property
    def is_conditioned(self) -> bool:
        return self.condition is not None

    @property
    def can_sample(self) -> bool:
        return True

    @property
    def is_fitted(self) -> bool:
        return self.condition is None or self.condition.is_fitted

    @property
    def form(self) -> Cloning:
        return Cloning(
            self.network,
            self.condition and self.condition.form,
            Conservative(noise=0.0) if self.regularizer else None,
            Optimizer(clip_norm=self.optimizer.clip_norm),
            self.encoder,
        )

    @property
    def numbers(self) -> CloningNumbers:
        optimizer, regularizer = self.optimizer, self.regularizer
        values = (
            optimizer.learning_rate,
            optimizer.weight_decay,
            optimizer.warmup_steps,
            regularizer.width / self._unit if regularizer else 0.0,
            regularizer.coefficient if regularizer else 0.0,
        )
        return CloningNumbers(*(np.asarray(value, np.float32) for value in values))

    @property
    def reads(self) -> Hashable:
        return self.condition

    @property
    def _unit(self) -> float:
        return self.condition.unit if self.condition else 1.0

    def fit(self, data: Trajectories) -> Cloning:
        return dataclasses.replace(
            self,
            condition=self.condition and self.condition.fit(data),
            regularizer=self.regularizer and self.regularizer.fit(data),
            encoder=self.encoder.fit(data.observations.shape[1:]),
        )

    def window(self, training: Training) -> int:
        return training.context

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        returns = self.standardized(data.returns_to_go, data.timesteps, data.horizon)
        return {"returns_to_go": returns.astype(np.float32)}

    def episode_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        shortfalls = (data.best - data.returns) / self._unit
        return {"shortfalls": shortfalls.astype(np.float32)}

    def selected(self, data: Trajectories) -> NDArray[np.bool_] | None:
        return self.regularizer.selected(data) if self.regularizer else None

    def standardized(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        return conditioning.standardized(self.condition, returns_to_go, timesteps, horizon)

    def initialize(self, spec: PolicySpec, key: jax.Array) -> CloningState:
        parameters = self.initial_parameters(spec, key)
        # The numbers do not matter before the first step: without them, one program is enough for all data.
        numbers = dataclasses.replace(self, condition=None, regularizer=None).numbers
        return CloningState(parameters, self._transformation(numbers).init(parameters))

    def initial_parameters(self, spec: PolicySpec, key: jax.Array) -> Parameters:
        """Fresh parameters."""
        shape = spec.observations.encoded_shape
        sizes = (spec.actions.size, self.condition is not None, spec.horizon)
        if len(shape) == 1:
            return self.network.initialize(key, shape[0], *sizes)
        encoder_key, network_key = jax.random.split(key)
        network = self.network.initialize(network_key, self.encoder.features(shape), *sizes)
        return {**network, "encoder": self.encoder.initialize(encoder_key, shape)}

    def prepared(self, parameters: Parameters, precision: str = "float32") -> Parameters:
        """Values that `outputs` reads instead of the parameters of the same names."""
        return self.network.prepared(parameters, jnp.dtype(precision))

    def outputs(
        self,
        spec: PolicySpec,
        parameters: Parameters,  # with those that are prepared
        inputs: CloningBatch | History,
        actions: jax.Array,  # [window, step, size], encoded
        dropout_key: jax.Array | None = None,
        steps: slice | jax.Array = slice(None),
    ) -> jax.Array:  # [window, chosen step, size]
        """The network's outputs at the chosen steps, in training and in acting alike."""
        observations, timesteps = inputs.observations, inputs.timesteps
        if len(spec.observations.encoded_shape) > 1:
            observations = self.encoder(parameters["encoder"], observations)
        if noisy := len(timesteps) - len(observations):
            observations = jnp.concatenate([observations, observations[:noisy]])
        conditions = None
        if self.condition is not None:
            conditions = self.condition(inputs.returns_to_go, timesteps, spec.horizon)
        return self.network(parameters, observations, conditions, actions, timesteps, dropout_key, steps)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        parameters = parameters | self.prepared(parameters)
        outputs = self.outputs(spec, parameters, history, history.actions, steps=step[None])[:, 0]
        if isinstance(spec.actions, Discrete) and history.keys is not None:
            return spec.actions.sample(outputs, history.keys_at(step))
        return spec.actions.choose(outputs)

    def batch(self, window: Window, random: RandomNumbers, numbers: CloningNumbers) -> CloningBatch:
        """The windows, then the regularized ones once more, so that both are one pass through the network."""
        sampled, weights = len(window.mask), mean_weights(window.mask)
        observations, returns_to_go = window.columns.observations, window.columns.extra["returns_to_go"]
        if count := window.most_selected:
            first = jax.tree.map(lambda x: x[:count], window)
            noise = first.episodes["shortfalls"] + numbers.noise_width * random.noise[:count]
            weights_of_first = mean_weights(first.mask & first.selected[:, None])
            window = jax.tree.map(lambda *x: jnp.concatenate(x), window, first)
            noisy = first.columns.extra["returns_to_go"] + noise[:, None]
            returns_to_go = jnp.concatenate([returns_to_go, noisy])
            weights = jnp.concatenate([weights, weights_of_first])
        return CloningBatch(
            observations=observations,
            actions=window.columns.actions,
            returns_to_go=returns_to_go,
            timesteps=window.timesteps,
            weights=weights,
            dropout_key=random.key,
            coefficient=numbers.coefficient,
            sampled=sampled,
        )

    def update(
        self,
        spec: PolicySpec,
        training: Training,
        numbers: CloningNumbers,
        added_loss: Callable[[Parameters], jax.Array] | None = None,
    ) -> Update:
        """The functions of one update.

        Args:
            added_loss: of the parameters, with those that are prepared; added to the loss.
        """
        transform = self._transformation(numbers)

        def prepare(parameters: Parameters) -> Parameters:
            return self.prepared(parameters, training.precision)

        def step(carried: Carried, batch: CloningBatch) -> tuple[Carried, Metrics]:
            state, prepared = carried

            def objective(parameters: Parameters, prepared: Parameters) -> tuple[jax.Array, Metrics]:
                return self.losses(spec, parameters | prepared, batch, added_loss)

            gradient = jax.grad(objective, argnums=(0, 1), has_aux=True)
            (direct, through), metrics = gradient(state.parameters, prepared)
            _, pull_back = jax.vjp(prepare, state.parameters)
            gradients = jax.tree.map(jnp.add, direct, *pull_back(through))
            updates, optimizer = transform.update(gradients, state.optimizer, state.parameters)
            parameters = optax.apply_updates(state.parameters, updates)
            # Prepared in the step that writes the parameters, so that they are not read once more.
            return (CloningState(parameters, optimizer), prepare(parameters)), metrics

        return (lambda state: (state, prepare(state.parameters))), step, (lambda carried: carried[0])

    def losses(
        self,
        spec: PolicySpec,
        parameters: Parameters,
        batch: CloningBatch,
        added_loss: Callable[[Parameters], jax.Array] | None = None,
    ) -> tuple[jax.Array, Metrics]:
        """The total loss of a batch, its parts, and metrics of the predictions' health."""
        encoded = spec.actions.encode(batch.actions)
        outputs = self.outputs(spec, parameters, batch, encoded, batch.dropout_key)
        parts = spec.actions.loss(outputs, batch.actions) * batch.weights
        prediction = jnp.sum(parts[: batch.sampled])
        predicted = spec.actions.encode(spec.actions.choose(outputs[: batch.sampled]))
        health = _health(predicted, encoded[: batch.sampled], batch.weights[: batch.sampled])
        total, metrics = prediction, {"prediction": prediction, **health}
        if self.regularizer is not None:
            metrics["conservative"] = jnp.sum(parts[batch.sampled :])
            total += batch.coefficient * metrics["conservative"]
        if added_loss is not None:
            total += added_loss(parameters)
        return total, {"loss": total, **metrics}

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        steps = training.batch_size * training.context * (2 if self.regularizer else 1)
        weights = parameters * (3 if self.looks_back else 1)  # tokens of a step
        if len(spec.observations.encoded_shape) > 1:
            weights += self.encoder.products(spec.observations.encoded_shape)
        return 6 * weights * steps

    def activations(self, spec: PolicySpec, training: Training) -> int:
        network, steps = self.network, training.context
        per_window = steps * network.layers * network.width
        if network.looks_back:
            tokens = 3 * steps
            # Of a layer: queries, keys, values, the attended values, and four times the width in between.
            heads = getattr(network, "heads", 1)
            per_window = 8 * tokens * network.layers * network.width + heads * tokens**2
        if len(spec.observations.encoded_shape) > 1:
            per_window += steps * self.encoder.outputs(spec.observations.encoded_shape)
        return training.batch_size * per_window

    def _transformation(self, numbers: CloningNumbers) -> optax.GradientTransformation:
        schedule = (numbers.learning_rate, numbers.weight_decay, numbers.warmup_steps)
        return optimizers.transformation(self.optimizer.clip_norm, *schedule)


def mean_weights(mask: jax.Array) -> jax.Array:
    """Weights with which a sum is the mean over the mask; all 0 for an empty mask."""
    return mask / jnp.maximum(jnp.sum(mask), 1)


def _health(
    predicted: jax.Array,  # [window, step, size], encoded
    logged: jax.Array,  # [window, step, size], encoded
    weights: jax.Array,  # [window, step]
) -> Metrics:
    """How predicted actions compare with logged ones, which reveals a network with constant predictions."""

    def mean(values: jax.Array) -> jax.Array:
        return jnp.sum(values * weights[..., None], axis=(0, 1))  # [size]

    def variance(values: jax.Array) -> jax.Array:
        return jnp.sum(mean(jnp.square(values)) - jnp.square(mean(values)))

    def at_the_ends(values: jax.Array) -> jax.Array:
        return jnp.mean(mean((jnp.abs(values) > SATURATED).astype(jnp.float32)))

    # Where the logged actions are constant, predictions may be, too.
    ratio = jnp.where(variance(logged) > 0, variance(predicted) / variance(logged), 1.0)
    return {
        "variation": jnp.sqrt(jnp.maximum(ratio, 0.0)),  # std / that of the logged actions
        "saturation": at_the_ends(predicted) - at_the_ends(logged),  # fraction, beyond the logged one
    }
