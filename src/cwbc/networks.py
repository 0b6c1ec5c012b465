"""The networks, as values: an MLP that looks at one step, and a causal transformer that looks back.

Both take the same window of K steps and give one output per step, so that all else is one path.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any, Literal

import jax
import jax.numpy as jnp

from cwbc.errors import require

Parameters = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class MLP:
    """Hidden layers of ReLU units on (observation, condition) [RvS, BC]."""

    width: int = 1024
    layers: int = 2
    dropout: float = 0.0

    looks_back = False

    def __post_init__(self) -> None:
        _check_sizes(self.width, self.layers, self.dropout)

    def initialize(
        self, key: jax.Array, observation_size: int, action_size: int, conditioned: bool, horizon: int
    ) -> Parameters:
        sizes = [observation_size + conditioned, *[self.width] * self.layers, action_size]
        keys = jax.random.split(key, len(sizes) - 1)
        return {
            f"layer{i}": _linear(keys[i], fan_in, fan_out)
            for i, (fan_in, fan_out) in enumerate(itertools.pairwise(sizes))
        }

    def __call__(
        self,
        parameters: Parameters,
        observations: jax.Array,  # [window, step, dimension]
        conditions: jax.Array | None,  # [window, step]
        actions: jax.Array,  # [window, step, size]
        timesteps: jax.Array,  # [window, step]
        dropout_key: jax.Array | None = None,
    ) -> jax.Array:  # [window, step, size]
        x = observations
        if conditions is not None:
            x = jnp.concatenate([observations, conditions[..., None]], axis=-1)
        keys = _dropout_keys(dropout_key, self.dropout, self.layers)
        for i in range(self.layers):
            x = _dropout(keys[i], self.dropout, jax.nn.relu(_dense(parameters[f"layer{i}"], x)))
        return _dense(parameters[f"layer{self.layers}"], x)


@dataclasses.dataclass(frozen=True)
class Transformer:
    """A causal transformer over the steps of a window, with learned timestep embeddings [DT].

    Args:
        tokens: "separate" gives return-to-go, observation and action a token each [DT]; "concatenated"
            puts return-to-go and observation into one [DT-Concat].
    """

    width: int = 128
    layers: int = 3
    heads: int = 1
    dropout: float = 0.1
    tokens: Literal["separate", "concatenated"] = "separate"

    looks_back = True

    def __post_init__(self) -> None:
        _check_sizes(self.width, self.layers, self.dropout)
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
                name: _linear(k, size, self.width)
                for k, (name, size) in zip(embed_keys, sizes.items(), strict=True)
            },
            "time": 0.02 * jax.random.normal(time_key, (horizon, self.width)),
            "embed_norm": _norm(self.width),
            **{f"block{i}": self._block(block_keys[i]) for i in range(self.layers)},
            "final_norm": _norm(self.width),
            "head": _linear(head_key, self.width, action_size),
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
        return {"norm1": _norm(self.width), "norm2": _norm(self.width), **dense}

    def __call__(
        self,
        parameters: Parameters,
        observations: jax.Array,  # [window, step, dimension]
        conditions: jax.Array | None,  # [window, step]
        actions: jax.Array,  # [window, step, size]
        timesteps: jax.Array,  # [window, step]
        dropout_key: jax.Array | None = None,
    ) -> jax.Array:  # [window, step, size]
        windows, steps = timesteps.shape
        tokens = self._embed(parameters, observations, conditions, actions, timesteps)
        per_step = len(tokens)
        x = jnp.stack(tokens, axis=2).reshape(windows, steps * per_step, self.width)
        keys = _dropout_keys(dropout_key, self.dropout, 1 + self.layers)
        x = _dropout(keys[0], self.dropout, _layer_norm(parameters["embed_norm"], x))
        for i in range(self.layers):
            x = self._attend_and_mix(parameters[f"block{i}"], x, keys[1 + i])
        # An action is read off the token before it, which sees the observation but not the action.
        x = x.reshape(windows, steps, per_step, self.width)[:, :, -2]
        return _dense(parameters["head"], _layer_norm(parameters["final_norm"], x))

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
            tokens.append(_dense(embed["return"], conditions[..., None]))
        elif conditions is not None:
            observations = jnp.concatenate([observations, conditions[..., None]], axis=-1)
        tokens += [_dense(embed["observation"], observations), _dense(embed["action"], actions)]
        return [token + time for token in tokens]

    def _attend_and_mix(self, block: Parameters, x: jax.Array, key: jax.Array | None) -> jax.Array:
        attention_key, out_key, mix_key = _dropout_keys(key, self.dropout, 3)
        windows, tokens, width = x.shape
        qkv = _dense(block["qkv"], _layer_norm(block["norm1"], x))
        q, k, v = jnp.moveaxis(qkv.reshape(windows, tokens, 3, self.heads, width // self.heads), 2, 0)
        scores = jnp.einsum("wqhd,wkhd->whqk", q, k) / math.sqrt(width // self.heads)
        visible = jnp.tril(jnp.ones((tokens, tokens), bool))
        scores = jnp.where(visible, scores, -jnp.inf)
        attention = _dropout(attention_key, self.dropout, jax.nn.softmax(scores, axis=-1))
        mixed = jnp.einsum("whqk,wkhd->wqhd", attention, v).reshape(windows, tokens, width)
        x = x + _dropout(out_key, self.dropout, _dense(block["out"], mixed))
        hidden = jax.nn.relu(_dense(block["up"], _layer_norm(block["norm2"], x)))
        return x + _dropout(mix_key, self.dropout, _dense(block["down"], hidden))


Network = MLP | Transformer


def _check_sizes(width: int, layers: int, dropout: float) -> None:
    require(width >= 1, "width", width, "at least 1")
    require(layers >= 1, "layers", layers, "at least 1")
    require(0 <= dropout < 1, "dropout", dropout, "at least 0 and below 1")


def _linear(key: jax.Array, fan_in: int, fan_out: int) -> Parameters:
    weight_key, bias_key = jax.random.split(key)
    limit = 1 / math.sqrt(fan_in)
    return {
        "weight": jax.random.uniform(weight_key, (fan_in, fan_out), minval=-limit, maxval=limit),
        "bias": jax.random.uniform(bias_key, (fan_out,), minval=-limit, maxval=limit),
    }


def _dense(parameters: Parameters, x: jax.Array) -> jax.Array:
    return x @ parameters["weight"] + parameters["bias"]


def _norm(width: int) -> Parameters:
    return {"scale": jnp.ones(width), "bias": jnp.zeros(width)}


def _layer_norm(parameters: Parameters, x: jax.Array) -> jax.Array:
    centered = x - x.mean(axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(centered), axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + 1e-5) * parameters["scale"] + parameters["bias"]


def _dropout_keys(key: jax.Array | None, rate: float, count: int) -> list[jax.Array | None]:
    if key is None or rate == 0:
        return [None] * count
    return list(jax.random.split(key, count))


def _dropout(key: jax.Array | None, rate: float, x: jax.Array) -> jax.Array:
    """Zero a part of x and scale up the rest; with no key, x itself."""
    if key is None or rate == 0:
        return x
    # 16 random bits an element cost half of what 32 do, and give the rate to five digits.
    threshold = round(rate * 2**16)
    kept = jax.random.bits(key, x.shape, jnp.uint16) >= threshold
    return jnp.where(kept, x / (1 - threshold / 2**16), 0)
