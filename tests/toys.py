"""A problem with a known answer (the reward is the action, so omega_t is right), and small methods."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import jax
import numpy as np
from conftest import write_d4rl
from gymnasium import spaces
from numpy.typing import NDArray

from cwbc.behaviours.policies import BehaviourPolicy, Floats
from cwbc.behaviours.snapshots import Series, Snapshot, SnapshotReturns
from cwbc.core.cloning import Cloning
from cwbc.core.methods import Method, Training, parse, sized, with_options
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.trajectories import Trajectories
from cwbc.data.formats.arrays import from_arrays

HORIZON = 10
ENVIRONMENT = "cwbc-toy-v0"
DISCRETE_ENVIRONMENT = "cwbc-toy-discrete-v0"
AIM = "cwbc-aim-v0"
LARGEST = 0.5  # of the logged actions; the environment would take more


class Toy(gymnasium.Env[NDArray[np.float64], Any]):
    """Ten steps whose reward is the action; observations are noise."""

    def __init__(self, discrete: bool = False) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (2,), np.float64)
        self.action_space = spaces.Discrete(3) if discrete else spaces.Box(-1, 1, (1,), np.float32)

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.float64], dict[str, Any]]:
        super().reset(seed=seed)
        return self.np_random.normal(size=2), {}

    def step(self, action: Any) -> tuple[NDArray[np.float64], float, bool, bool, dict[str, Any]]:
        return self.np_random.normal(size=2), float(np.sum(action)), False, False, {}


class Aim(gymnasium.Env[NDArray[np.float32], Any]):
    """Five steps with a reward for actions near the observed mark; actions are between -2 and 2."""

    observation_space = spaces.Box(-2, 2, (1,))
    action_space = spaces.Box(-2, 2, (1,))

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        super().reset(seed=seed)
        return self._moved(), {}

    def step(self, action: Any) -> tuple[NDArray[np.float32], float, bool, bool, dict[str, Any]]:
        reward = 1 - float(np.abs(action - self._mark).sum())
        return self._moved(), reward, False, False, {}

    def _moved(self) -> NDArray[np.float32]:
        self._mark = self.np_random.uniform(-1.5, 1.5, 1).astype(np.float32)
        return self._mark


gymnasium.register(AIM, entry_point=Aim, max_episode_steps=5)  # type: ignore[arg-type]
gymnasium.register(ENVIRONMENT, entry_point=Toy, max_episode_steps=HORIZON)  # type: ignore[arg-type]
gymnasium.register(
    DISCRETE_ENVIRONMENT,
    entry_point=Toy,  # type: ignore[arg-type]
    max_episode_steps=HORIZON,
    kwargs={"discrete": True},
)


def learner(folder: Path, *returns: float) -> Series:
    """A manifest of snapshots every ten steps with these returns; without noise, each of them earns 1000."""
    calm = SnapshotReturns(1000, 0, 1000)
    snapshots = tuple(
        Snapshot(10 * i, calm, SnapshotReturns(mean, 1, mean)) for i, mean in enumerate(returns)
    )
    folder.mkdir(parents=True, exist_ok=True)
    series = Series("Hopper-v4", 0, 5, {"warmup": 15}, "command", "device", {}, snapshots, folder)
    series.write()
    return series


def ant_policy(size: int = 29) -> BehaviourPolicy:
    """A policy for the ant of mazes, all of whose torques are the tanh of the x of its direction."""
    shapes = {"first": (size, 4), "second": (4, 4), "output": (4, 16)}
    actor: dict[str, Floats] = {f"actor/{name}/weight": np.zeros(shape) for name, shape in shapes.items()}
    actor |= {f"actor/{name}/bias": np.zeros(shape[1]) for name, shape in shapes.items()}
    # x and -x pass the two ReLUs separately.
    actor["actor/first/weight"][27, :2] = 1, -1
    actor["actor/second/weight"][:2, :2] = np.eye(2)
    actor["actor/output/weight"][0, :8], actor["actor/output/weight"][1, :8] = 1, -1
    return BehaviourPolicy.of(actor, np.full(8, -1, np.float32), np.full(8, 1, np.float32))


def ant_series(folder: Path) -> Series:
    """Snapshots of an ant that does not walk, but has the right shape."""
    series = dataclasses.replace(learner(folder, 0, 1), environment="cwbc/ant-direction-v0")
    for snapshot in series.snapshots:
        ant_policy().save(series.folder / snapshot.file)
    series.write()
    return series


def random_arrays(initialize: Callable[[jax.Array], Any], seed: int) -> Any:
    """Arrays as `initialize` returns them, sampled by NumPy: to compile `initialize` takes seconds."""
    generator = np.random.default_rng(seed)
    shapes = jax.eval_shape(initialize, jax.random.key(0))
    return jax.tree.map(
        lambda x: jax.device_put(np.asarray(generator.uniform(-0.3, 0.3, x.shape), x.dtype)), shapes
    )


def random_parameters(spec: PolicySpec, seed: int) -> Any:
    """Parameters of an untrained policy."""
    learner = spec.method.learner
    return random_arrays(lambda key: learner.initialize(spec, key).parameters, seed)


def tiny(name: str, **options: Any) -> Method:
    """A method with one hidden layer of 16 units, unless the options say otherwise."""
    method, training = sized(name, "small")
    return with_options(method, training, {"width": 16, "layers": 1, **options})[0]


def cloning(method: Method) -> Cloning:
    """The learner of a method that clones."""
    assert isinstance(method.learner, Cloning)
    return method.learner


def with_cloning(method: Method, **changes: Any) -> Method:
    """A method that clones, with other fields of its learner."""
    return dataclasses.replace(method, learner=dataclasses.replace(cloning(method), **changes))


def as_in_the_paper(name: str) -> Method:
    """A method whose condition is not scaled, so that it can be computed by hand."""
    return with_options(parse(name), Training(), {"condition_scale": "paper"})[0]


def toy_data(episodes: int = 60, full_length: bool = False, discrete: bool = False) -> Trajectories:
    """Episodes of one action each, spread evenly; unless `full_length`, some terminate early."""
    generator = np.random.default_rng(0)
    levels = np.arange(episodes) % 3 if discrete else np.linspace(-LARGEST, LARGEST, episodes)
    lengths = np.full(episodes, HORIZON) if full_length else 3 + np.arange(episodes) % (HORIZON - 2)
    actions = np.repeat(levels, lengths)
    ends = np.zeros(len(actions), bool)
    ends[np.cumsum(lengths) - 1] = True
    data = from_arrays(
        "toy",
        generator.normal(size=(len(actions), 2)),
        actions.astype(np.int64) if discrete else actions[:, None],
        actions.astype(np.float64),
        ends & np.repeat(lengths < HORIZON, lengths),
        ends & np.repeat(lengths == HORIZON, lengths),
        environment=DISCRETE_ENVIRONMENT if discrete else ENVIRONMENT,
        time_limit=HORIZON,
    )
    return data if discrete else data.described(action_bounds=((-1.0,), (1.0,)))


def write_toy(path: Path, full_length: bool = True, environment: str | None = ENVIRONMENT) -> Path:
    """The toy's episodes as a file in D4RL's layout."""
    data = toy_data(full_length=full_length)
    last = np.zeros(data.steps, bool)
    last[data.starts + data.lengths - 1] = True
    return write_d4rl(
        path,
        env=environment,
        observations=data.observations,
        actions=data.actions,
        rewards=data.rewards,
        terminals=last & ~full_length,
        timeouts=last & full_length,
    )
