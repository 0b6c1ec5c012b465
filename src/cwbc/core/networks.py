"""The networks, as values: an MLP that reads one step, and a causal transformer that reads those before it.

Both map the same window of K steps to one output per step, so that all else is one path.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Literal

import jax
import jax.numpy as jnp

from cwbc.core import blocks, kernels
from cwbc.core.layers import (
    Parameters,
    after_norm,
    cast,
    check_sizes,
    dense,
    dropout,
    dropout_keys,
    layer_norm,
    linear,
    norm,
    relu,
    standardized,
)
from cwbc.system.errors import require

Steps = slice | jax.Array  # which steps of a window
ALL = slice(None)


@dataclasses.dataclass(frozen=True)
class MLP:
    """Hidden layers of ReLU units on (observation, condition) [RvS, BC].

    Args:
        width: hidden dimension (paper: 1024 for RvS, 128 for DT).
        layers: hidden layers (paper: 2 for RvS, 3 for DT).
        dropout: dropout rate (paper: 0 for RvS, 0.1 for DT).
    """

    width: int = 1024
    layers: int = 2
    dropout: float = 0.0

    looks_back = False

    def __post_init__(self) -> None:
        check_sizes(self.width, self.layers, self.dropout)

    def initialize(
        self, key: jax.Array, observation_size: int, action_size: int, conditioned: bool, horizon: int
    ) -> Parameters:
        sizes = [observation_size + conditioned, *[self.width] * self.layers, action_size]
        keys = jax.random.split(key, len(sizes) - 1)
        return {
            f"layer{i}": linear(keys[i], fan_in, fan_out)
            for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes))
        }

    def prepared(self, parameters: Parameters, dtype: jnp.dtype) -> Parameters:
        """What products in `dtype` read instead of parameters; the first and the last stay in float32."""
        if dtype == jnp.float32:
            return {}
        return {f"layer{i}": cast(parameters[f"layer{i}"], dtype) for i in range(1, self.layers)}

    def __call__(
        self,
        parameters: Parameters,
        observations: jax.Array,  # [window, step, dimension]
        conditions: jax.Array | None,  # [window, step]
        actions: jax.Array,  # [window, step, size]
        timesteps: jax.Array,  # [window, step]
        dropout_key: jax.Array | None = None,
        steps: Steps = ALL,
    ) -> jax.Array:  # [window, chosen step, size]
        x = observations
        if conditions is not None:
            x = jnp.concatenate([observations, conditions[..., None]], axis=-1)
        x = x[:, steps]
        *hidden, last = layers = [parameters[f"layer{i}"] for i in range(self.layers + 1)]
        keys = dropout_keys(dropout_key, self.dropout, self.layers)
        if keys[0] is None and kernels.do_mlp(layers):
            from cwbc.core.kernels.mlp import mlp

            return mlp(layers, x)
        for layer, key in zip(hidden, keys, strict=True):
            x = dropout(key, self.dropout, relu(dense(layer, x)))
        return dense(last, x)


@dataclasses.dataclass(frozen=True)
class Transformer:
    """A causal transformer over the steps of a window, with learned timestep embeddings [DT].

    Args:
        width: hidden dimension (paper: 1024 for RvS, 128 for DT).
        layers: hidden layers (paper: 2 for RvS, 3 for DT).
        heads: attention heads (paper: 1).
        dropout: dropout rate (paper: 0 for RvS, 0.1 for DT).
        tokens: return-to-go and observation as separate tokens or as one (paper: separate for DT).
    """

    width: int = 128
    layers: int = 3
    heads: int = 1
    dropout: float = 0.1
    tokens: Literal["separate", "concatenated"] = "separate"

    looks_back = True

    def __post_init__(self) -> None:
        check_sizes(self.width, self.layers, self.dropout)
        divides = self.heads >= 1 and self.width % self.heads == 0
        require(divides, "heads", self.heads, f"a divisor of the width {self.width}")

    def initialize(
        self, key: jax.Array, observation_size: int, action_size: int, conditioned: bool, horizon: int
    ) -> Parameters:
        embed_key, time_key, block_key, head_key = jax.random.split(key, 4)
        sizes = {"observation": observation_size, "action": action_size}
        if conditioned and self.tokens == "concatenated":
            sizes["observation"] += 1
        elif conditioned:
            sizes["return"] = 1
        embed_keys = jax.random.split(embed_key, len(sizes))
        block_keys = jax.random.split(block_key, self.layers)
        return {
            "embed": {
                name: linear(k, size, self.width)
                for k, (name, size) in zip(embed_keys, sizes.items(), strict=True)
            },
            "time": 0.02 * jax.random.normal(time_key, (horizon, self.width)),
            "embed_norm": norm(self.width),
            **{f"block{i}": self._block(block_keys[i]) for i in range(self.layers)},
            "final_norm": norm(self.width),
            "head": linear(head_key, self.width, action_size),
        }

    def _block(self, key: jax.Array) -> Parameters:
        # Projections back into the residual stream start smaller the more of them there are, as in GPT-2.
        shapes = {
            "qkv": (self.width, 3 * self.width, 0.02),
            "out": (self.width, self.width, 0.02 / math.sqrt(2 * self.layers)),
            "up": (self.width, 4 * self.width, 0.02),
            "down": (4 * self.width, self.width, 0.02 / math.sqrt(2 * self.layers)),
        }
        keys = jax.random.split(key, len(shapes))
        dense = {
            name: {"weight": std * jax.random.normal(k, (fan_in, fan_out)), "bias": jnp.zeros(fan_out)}
            for k, (name, (fan_in, fan_out, std)) in zip(keys, shapes.items(), strict=True)
        }
        return {"norm1": norm(self.width), "norm2": norm(self.width), **dense}

    def prepared(self, parameters: Parameters, dtype: jnp.dtype) -> Parameters:
        """What products read instead of parameters: norms join the next layer, and blocks are in `dtype`."""
        blocks = {name: parameters[name] for name in (f"block{i}" for i in range(self.layers))}
        return {
            **{name: cast(_without_norms(block), dtype) for name, block in blocks.items()},
            "head": after_norm(parameters["final_norm"], parameters["head"]),
        }

    def __call__(
        self,
        parameters: Parameters,
        observations: jax.Array,  # [window, step, dimension]
        conditions: jax.Array | None,  # [window, step]
        actions: jax.Array,  # [window, step, size]
        timesteps: jax.Array,  # [window, step]
        dropout_key: jax.Array | None = None,
        steps: Steps = ALL,
    ) -> jax.Array:  # [window, chosen step, size]
        windows, length = timesteps.shape
        tokens = self._embed(parameters, observations, conditions, actions, timesteps)
        per_step = len(tokens)
        x = jnp.stack(tokens, axis=2).reshape(windows, length * per_step, self.width)
        first_key, *keys = dropout_keys(dropout_key, self.dropout, 1 + 3 * self.layers)
        x = dropout(first_key, self.dropout, layer_norm(parameters["embed_norm"], x))
        x = x.astype(parameters["block0"]["qkv"]["weight"].dtype)
        normal = standardized(x).astype(x.dtype)

        def read(tokens: jax.Array) -> jax.Array:
            # An action is read off the token before it, which sees the observation but not the action.
            return tokens.reshape(-1, length, per_step, *tokens.shape[2:])[:, steps, -2]

        for i in range(self.layers):
            block = parameters[f"block{i}"]
            *attend_keys, mix_key = keys[3 * i : 3 * i + 3]
            wanted = read if i == self.layers - 1 else blocks.every_token
            x, normal = blocks.attend(block, x, normal, self.heads, self.dropout, attend_keys, wanted)
            x, normal = blocks.mix(block, x, normal, self.dropout, mix_key)
        return dense(parameters["head"], normal)

    def _embed(
        self,
        parameters: Parameters,
        observations: jax.Array,
        conditions: jax.Array | None,
        actions: jax.Array,
        timesteps: jax.Array,
    ) -> list[jax.Array]:
        embed = parameters["embed"]
        horizon = parameters["time"].shape[0]
        time = parameters["time"][jnp.minimum(timesteps, horizon - 1)]
        tokens = []
        if conditions is not None and self.tokens == "separate":
            tokens.append(dense(embed["return"], conditions[..., None]))
        elif conditions is not None:
            observations = jnp.concatenate([observations, conditions[..., None]], axis=-1)
        tokens += [dense(embed["observation"], observations), dense(embed["action"], actions)]
        return [token + time for token in tokens]


def _without_norms(block: Parameters) -> Parameters:
    return {
        "qkv": after_norm(block["norm1"], block["qkv"]),
        "out": block["out"],
        "up": after_norm(block["norm2"], block["up"]),
        "down": block["down"],
    }


Network = MLP | Transformer
