"""Problems for value-based methods: a line of states to be stitched, and their losses in NumPy."""

from __future__ import annotations

from typing import Any

import gymnasium
import jax
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray
from toys import random_arrays

from cwbc.core import critics
from cwbc.core.methods import Method, Training, sized, with_all_options
from cwbc.core.networks import MLP
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

LENGTH = 5  # states of the line
GOAL = 1.0


def line(*episodes: tuple[int, tuple[float, ...]], unit: float = 1.0) -> Trajectories:
    """Logged walks on a line: from a state, by actions whose sign is the direction."""
    rows: list[tuple[Any, ...]] = []
    for first, actions in episodes:
        state = first
        for number, action in enumerate(actions):
            now, state = state, max(state + (1 if action > 0 else -1), 0)
            reached = state == LENGTH
            is_last = number == len(actions) - 1
            rows.append(
                (np.eye(LENGTH)[now], [action], unit * GOAL * reached, reached, is_last and not reached)
            )
    columns: Any = [np.array(column) for column in zip(*rows, strict=True)]
    observations, actions, rewards, terminated, truncated = columns
    arrays = (observations, actions, rewards, terminated, truncated)
    return from_arrays("line", *arrays, environment="cwbc-line-v0", time_limit=12)


# None that begins at state 0 reaches the goal: the best policy is a stitch of the two halves.
WALKS = (
    (0, (0.6, 0.5, 0.7, -0.4, -0.6)),
    (0, (-0.5, 0.6, 0.4, -0.7)),
    (2, (0.5, 0.4, 0.6)),
    (3, (-0.6, 0.5, 0.5, 0.7)),
    (1, (-0.7, -0.3)),
) * 4


class Line(gymnasium.Env[NDArray[np.float32], Any]):
    observation_space = spaces.Box(0, 1, (LENGTH,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._state = 0
        return np.eye(LENGTH, dtype=np.float32)[0], {}

    def step(self, action: Any) -> Any:
        self._state = max(self._state + (1 if action[0] > 0 else -1), 0)
        reached = self._state == LENGTH
        return (
            np.eye(LENGTH, dtype=np.float32)[min(self._state, LENGTH - 1)],
            GOAL * reached,
            reached,
            False,
            {},
        )


gymnasium.register("cwbc-line-v0", entry_point=Line, max_episode_steps=12)  # type: ignore[arg-type]


def small(name: str, **options: Any) -> tuple[Method, Training]:
    """A method with narrow networks that learn quickly."""
    rates = {"learning_rate": 3e-3, "critic_learning_rate": 3e-3, "target_rate": 0.05}
    sizes = {"width": 32, "batch_size": 64} | ({"critic_width": 32} if "+q" in name else {})
    return with_all_options(*sized(name, "small"), {**sizes, **rates, **options})


# An independent implementation in NumPy: losses in float64, gradients by central differences.


def numpy_mlp(parameters: Any, x: NDArray[np.float64], normed: bool = False) -> NDArray[np.float64]:
    layers = [parameters[f"layer{i}"] for i in range(sum(name.startswith("layer") for name in parameters))]
    for layer in layers[:-1]:
        x = np.maximum(x @ layer["weight"] + layer["bias"], 0)
        if normed:
            x = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return x @ layers[-1]["weight"] + layers[-1]["bias"]


def numpy_values(ensemble: Any, s: Any, a: Any, normed: bool) -> NDArray[np.float64]:
    each = [jax.tree.map(lambda x, i=i: x[i], ensemble) for i in range(2)]
    return np.stack([numpy_mlp(one, np.concatenate([s, a], axis=1), normed)[:, 0] for one in each])


def differences(loss: Any, parameters: Any) -> Any:
    """The gradient of a loss by central differences."""
    leaves, tree = jax.tree.flatten(parameters)
    gradients = []
    for place, leaf in enumerate(leaves):
        gradient = np.zeros_like(leaf)
        for index in np.ndindex(leaf.shape):
            values = []
            for sign in (1, -1):
                moved = leaf.copy()
                moved[index] += sign * 1e-6
                values.append(loss(jax.tree.unflatten(tree, [*leaves[:place], moved, *leaves[place + 1 :]])))
            gradient[index] = (values[0] - values[1]) / 2e-6
        gradients.append(gradient)
    return jax.tree.unflatten(tree, gradients)


def initial_mlp(network: MLP, outputs: int, seed: int) -> Any:
    """Parameters of an MLP on states of the line."""
    return random_arrays(lambda key: critics.initial_mlp(network, key, LENGTH, outputs), seed)


def initial_critics(network: MLP, spec: PolicySpec, seed: int) -> Any:
    """Parameters of an ensemble of critics."""
    return random_arrays(lambda key: critics.initial_critics(network, key, spec), seed)


def in_float64(tree: Any) -> Any:
    return jax.tree.map(lambda x: np.asarray(x, np.float64), tree)


def close(found: Any, expected: Any) -> None:
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-6), found, expected)
