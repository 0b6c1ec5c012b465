"""A return-conditioned policy whose target is chosen by a critic, anew at every step [+q, +qr]."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from cwbc.core import critics
from cwbc.core.cloning import Cloning, CloningBatch, CloningState
from cwbc.core.critics import Adam, TransitionBatch, action_values
from cwbc.core.layers import Parameters
from cwbc.core.learners import Learner, Metrics, Update
from cwbc.core.networks import MLP
from cwbc.core.trajectories import Trajectories
from cwbc.system.errors import InputError, require

if TYPE_CHECKING:
    from cwbc.core.acting import History
    from cwbc.core.methods import Training
    from cwbc.core.policy_spec import PolicySpec
    from cwbc.core.sampling import RandomNumbers, Window

# Transition of a window that the critics learn: neighbours are alike, and candidates multiply them.
_EVERY = 4
_OPEN = 10.0  # without a target, this many ranges of candidates above them all: it never limits any
_MOST = 1024  # candidates


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TargetChoiceState:
    """What acts (the base, its critics, the candidates), the slow copy, and the optimizers' states."""

    parameters: Parameters  # {"base": [seed, ...], "critics": [seed, critic, ...], "candidates": [seed, ...]}
    target_critics: Parameters  # [seed, critic, ...]
    optimizer: Any  # [seed, ...] of the base
    critic_optimizer: Adam  # [seed, ...]


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class TargetChoiceBatch:
    """The base's windows, and some transitions of them."""

    cloned: CloningBatch
    transitions: TransitionBatch
    candidates: jax.Array  # [window] the number of the one whose proposals are valued [+qr]


@dataclasses.dataclass(frozen=True)
class TargetChoice(Learner):
    """Cloning, and critics of the policy that takes the best of its actions at several targets [+q, +qr].

    Candidates are averages per step, evenly spaced: at step t, such a target is a return-to-go of H - t times
    the average. Where a target is given, none exceeds what remains of it.

    Args:
        candidates: targets that compete at every step (default: 32).
        compared: of them, those that compete in the critics' own target (default: 8).
        lowest_candidate: quantile of the returns at which candidates begin (default: 0.5, the median).
        candidate_reach: candidates exceed the best return by so many times its distance to the third quartile
            (default: 1.5).
        critic_learning_rate: learning rate of the critics (default: 3e-4).
        discount: gamma, discount of later rewards (default: 0.99).
        target_rate: tau, rate at which slow copies follow their networks (default: 0.005).
        value_coefficient: weight of Q / mean |Q| in the base's loss (default: 0 for +q, 1 for +qr).
        critic_width: hidden dimension of the critics (default: 256).
        critic_layers: hidden layers of the critics (default: 2).
        lowest_average: lowest candidate, as a return per step (default: fitted to the data).
        highest_average: highest candidate, as a return per step (default: fitted to the data).
        reward_scale: factor of the rewards (default: H / (best - lowest return)).
    """

    base: Cloning
    critic_width: int = 256
    critic_layers: int = 2
    candidates: int = 32
    compared: int = 8
    lowest_candidate: float = 0.5
    candidate_reach: float = 1.5
    critic_learning_rate: float = 3e-4
    discount: float = 0.99
    target_rate: float = 0.005
    value_coefficient: float = 0.0
    lowest_average: float | None = None
    highest_average: float | None = None
    reward_scale: float | None = None

    def __post_init__(self) -> None:
        if self.base.condition is None:
            raise InputError("+q chooses among targets, and bc takes none; rvs, dt and dt-concat do")
        for name in ("candidates", "compared"):
            require(1 <= getattr(self, name) <= _MOST, name, getattr(self, name), f"from 1 to {_MOST}")
        for name in ("lowest_candidate", "discount"):
            require(0 <= getattr(self, name) <= 1, name, getattr(self, name), "from 0 to 1")
        require(0 < self.target_rate <= 1, "target_rate", self.target_rate, "above 0 and at most 1")
        for name in ("value_coefficient", "candidate_reach", "critic_learning_rate"):
            require(getattr(self, name) >= 0, name, getattr(self, name), "at least 0")
        require(self.candidate_reach <= 1000, "candidate_reach", self.candidate_reach, "at most 1000")
        critics.check_scale(self.reward_scale)
        if self.is_fitted and self.lowest_average > self.highest_average:  # type: ignore[operator]
            raise InputError(f"lowest_average is {self.lowest_average}, above highest_average")
        for name, most in (("critic_width", 2**16), ("critic_layers", 100)):
            require(1 <= getattr(self, name) <= most, name, getattr(self, name), f"from 1 to {most}")

    @property
    def critic_network(self) -> MLP:
        """The shape of a critic."""
        return MLP(self.critic_width, self.critic_layers)

    @property
    def looks_back(self) -> bool:
        return self.base.looks_back

    @property
    def is_conditioned(self) -> bool:
        return True

    @property
    def needs_target(self) -> bool:
        return False

    @property
    def is_fitted(self) -> bool:
        own = (self.lowest_average, self.highest_average, self.reward_scale)
        return self.base.is_fitted and None not in own

    @property
    def form(self) -> TargetChoice:
        sizes = (self.critic_width, self.critic_layers, self.candidates, self.compared)
        form = TargetChoice(self.base.form, *sizes)
        return dataclasses.replace(form, value_coefficient=float(self.value_coefficient > 0))

    @property
    def numbers(self) -> dict[str, Any]:
        names = ("critic_learning_rate", "discount", "target_rate", "value_coefficient")
        rates = {name: getattr(self, name) for name in names}
        sets = {name: self._averages(getattr(self, name)) for name in ("candidates", "compared")}
        own = {name: np.asarray(value, np.float32) for name, value in (rates | sets).items()}
        return {"base": self.base.numbers, **own}

    def _averages(self, count: int) -> Any:
        """Candidates as the base takes them, for a single remaining step. [candidate]"""
        lowest, highest = self._range()
        return self.standardized(np.linspace(lowest, highest, count), np.zeros((), np.int64), 1)

    def _range(self) -> tuple[float, float]:
        if self.lowest_average is None or self.highest_average is None:
            raise ValueError("candidates are not known before fit(data)")
        return self.lowest_average, self.highest_average

    @property
    def reads(self) -> Hashable:
        return self.base.reads, self.reward_scale

    def fit(self, data: Trajectories) -> TargetChoice:
        critics.check_data(data)
        lowest, upper = np.quantile(data.returns, [self.lowest_candidate, 0.75])
        # Beyond the best return there is room where good episodes are rare; where they are common, candidates
        # far above them mislead the critics.
        highest = data.best + self.candidate_reach * (data.best - upper)
        fitted = {
            "lowest_average": float(lowest) / data.horizon,
            "highest_average": float(highest) / data.horizon,
            "reward_scale": critics.reward_scale(data),
        }
        missing: dict[str, Any] = {
            name: value for name, value in fitted.items() if getattr(self, name) is None
        }
        return dataclasses.replace(self, base=self.base.fit(data), **missing)

    def open_target(self, horizon: int) -> float:
        lowest, highest = self._range()
        return horizon * (highest + _OPEN * ((highest - lowest) or abs(highest)))

    def limited(self, targets: NDArray[np.float64], horizon: int) -> NDArray[np.float64]:
        return targets.clip(max=self.open_target(horizon))  # of NumPy or of JAX

    def window(self, training: Training) -> int:
        return max(self.base.window(training), 2)

    def step_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        return self.base.step_columns(data) | critics.transition_columns(data, self.reward_scale or 1.0)

    def episode_columns(self, data: Trajectories) -> dict[str, NDArray[Any]]:
        return self.base.episode_columns(data)

    def selected(self, data: Trajectories) -> NDArray[np.bool_] | None:
        return self.base.selected(data)

    def standardized(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        return self.base.standardized(returns_to_go, timesteps, horizon)

    def initialize(self, spec: PolicySpec, key: jax.Array) -> TargetChoiceState:
        base_key, critic_key = jax.random.split(key)
        base = self.base.initialize(spec, base_key)
        ensemble = critics.initial_critics(self.critic_network, critic_key, spec)
        parameters = {"base": base.parameters, "critics": ensemble, "candidates": jnp.zeros(self.candidates)}
        return TargetChoiceState(parameters, ensemble, base.optimizer, Adam.of(ensemble))

    def batch(self, window: Window, random: RandomNumbers, numbers: Any) -> TargetChoiceBatch:
        base_key, candidate_key = jax.random.split(random.key)
        cloned = self.base.batch(window, dataclasses.replace(random, key=base_key), numbers["base"])
        candidates = jax.random.randint(candidate_key, (len(window.mask),), 0, self.candidates)
        return TargetChoiceBatch(cloned, TransitionBatch.of(window, _EVERY), candidates)

    def update(self, spec: PolicySpec, training: Training, numbers: Any) -> Update:
        base_carried, _, base_state = self.base.update(spec, training, numbers["base"])

        def rounded(parameters: Parameters) -> Parameters:
            return critics.hidden_in(training.precision, parameters)

        def critic_loss(ensemble: Parameters, batch: TransitionBatch, goals: jax.Array) -> jax.Array:
            return self.critic_loss(rounded(ensemble), spec, batch, goals)

        def carried(state: TargetChoiceState) -> tuple[Any, TargetChoiceState]:
            return base_carried(CloningState(state.parameters["base"], state.optimizer)), state

        def step(carry: tuple[Any, TargetChoiceState], batch: TargetChoiceBatch) -> tuple[Any, Metrics]:
            base, state = carry

            def value_loss(base: Parameters) -> jax.Array:
                return self.value_loss(spec, base, rounded(state.parameters["critics"]), batch, numbers)

            added_loss = value_loss if self.value_coefficient else None
            _, base_step, _ = self.base.update(spec, training, numbers["base"], added_loss)
            base, metrics = base_step(base, batch.cloned)
            cloned: CloningState = base_state(base)
            acting = cloned.parameters | self.base.prepared(cloned.parameters, training.precision)
            goals = self.goals(spec, acting, rounded(state.target_critics), batch, numbers)
            ensemble = state.parameters["critics"]
            loss, gradients = jax.value_and_grad(critic_loss)(ensemble, batch.transitions, goals)
            ensemble, optimizer = state.critic_optimizer.apply(
                gradients, ensemble, numbers["critic_learning_rate"]
            )
            state = TargetChoiceState(
                {"base": cloned.parameters, "critics": ensemble, "candidates": numbers["candidates"]},
                critics.toward(state.target_critics, ensemble, numbers["target_rate"]),
                cloned.optimizer,
                optimizer,
            )
            value = jnp.sum(goals * batch.transitions.weights)
            both = {"loss": metrics["loss"] + loss, "critic": loss, "value": value}
            return (base, state), metrics | both

        return carried, step, (lambda carry: carry[1])

    def goals(
        self,
        spec: PolicySpec,
        base: Parameters,
        ensemble: Parameters,
        batch: TargetChoiceBatch,
        numbers: Any,
    ) -> jax.Array:
        """The values that the critics learn: of the best candidate's action at the next step. [row]"""
        now, averages = batch.transitions, numbers["compared"][:, None, None]
        actions = self.proposals(spec, base, batch, averages, first_step=1)
        observations = jnp.tile(now.next_observations, (self.compared, 1))
        values = self.values(ensemble, observations, actions).min(axis=0)
        best = values.reshape(self.compared, -1).max(axis=0)
        return jax.lax.stop_gradient(now.rewards + numbers["discount"] * now.continues * best)

    def value_loss(
        self,
        spec: PolicySpec,
        base: Parameters,
        ensemble: Parameters,
        batch: TargetChoiceBatch,
        numbers: Any,
    ) -> jax.Array:
        """The base's loss from the value of what it proposes, at one candidate for each window [+qr]."""
        averages = numbers["candidates"][batch.candidates][None, :, None]
        actions = self.proposals(spec, base, batch, averages, first_step=0)
        values = self.values(ensemble, batch.transitions.observations, actions).mean(axis=0)
        return -numbers["value_coefficient"] * critics.relative(values, batch.transitions.weights)

    def proposals(
        self,
        spec: PolicySpec,
        base: Parameters,
        batch: TargetChoiceBatch,
        averages: jax.Array,  # [candidate, window or 1, 1]
        first_step: int,
    ) -> jax.Array:  # [row of each candidate, size]
        """The base's encoded actions at candidates, at every few steps of the windows."""
        cloned, count = batch.cloned, len(averages)
        own = slice(cloned.sampled)  # windows, without those that have noise
        left = jnp.maximum(spec.horizon - cloned.timesteps[own], 1)
        shifts = averages * left - cloned.returns_to_go[own]  # [candidate, window, step]
        if self.looks_back:  # earlier returns-to-go differ by rewards, whatever the target: one shift for all
            last = jnp.maximum(jnp.sum(cloned.weights[own] > 0, axis=1) - 1, 0)
            shifts = jnp.take_along_axis(shifts, last[None, :, None], axis=2)

        def for_each(x: jax.Array) -> jax.Array:
            return jnp.tile(x[own], (count, *[1] * (x.ndim - 1)))

        inputs = dataclasses.replace(
            cloned,
            observations=for_each(cloned.observations),
            timesteps=for_each(cloned.timesteps),
            returns_to_go=(cloned.returns_to_go[own] + shifts).reshape(-1, left.shape[1]),
        )
        encoded = spec.actions.encode(for_each(cloned.actions))
        steps = jnp.arange(first_step, left.shape[1] - 1 + first_step, _EVERY)
        outputs = self.base.outputs(spec, base, inputs, encoded, steps=steps)
        return spec.actions.encode(spec.actions.choose(outputs)).reshape(-1, encoded.shape[-1])

    def critic_loss(
        self, ensemble: Parameters, spec: PolicySpec, batch: TransitionBatch, goals: jax.Array
    ) -> jax.Array:
        """The squared errors of all critics, summed."""
        values = self.values(ensemble, batch.observations, spec.actions.encode(batch.actions))
        return jnp.sum(jnp.square(values - goals) * batch.weights)

    def values(self, ensemble: Parameters, observations: jax.Array, actions: jax.Array) -> jax.Array:
        """Q of each critic for encoded actions. [critic, row]"""
        return action_values(ensemble, observations, actions, layer_norm=True)

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        """The action that the critics value most, on average, among those at all candidates."""
        left = jnp.maximum(spec.horizon - history.timesteps[:, step], 1)  # [episode]
        given = history.returns_to_go[:, step]
        # [episode, candidate]
        targets = jnp.minimum(left[:, None] * parameters["candidates"], given[:, None])
        each = jax.tree.map(lambda x: jnp.repeat(x, self.candidates, axis=0), history)
        # In this order, the present return-to-go is exactly the candidate, however large the given target is.
        shifted = (each.returns_to_go - jnp.repeat(given, self.candidates)[:, None]) + targets.reshape(-1, 1)
        each = dataclasses.replace(each, returns_to_go=shifted)
        actions = self.base.act(spec, parameters["base"], each, step)
        encoded = spec.actions.encode(actions)
        values = self.values(parameters["critics"], each.observations[:, step], encoded).mean(axis=0)
        best = values.reshape(targets.shape).argmax(axis=1)
        return actions.reshape(*targets.shape, -1)[jnp.arange(len(best)), best]

    def operations(self, spec: PolicySpec, training: Training, parameters: int) -> float:
        # Of both: a step of the base, and a pass of its windows for every candidate that competes.
        return (1 + self.compared / (3 * _EVERY)) * self.base.operations(spec, training, parameters)

    def activations(self, spec: PolicySpec, training: Training) -> int:
        several = dataclasses.replace(training, batch_size=(1 + self.compared) * training.batch_size)
        return self.base.activations(spec, several)
