"""Simulation and whole sweeps, beside MuJoCo's own loop or the emulator alone over as many steps."""

from __future__ import annotations

import contextlib
import statistics
import time
from collections.abc import Iterator
from typing import Any

import mujoco
import numpy as np

from benchmarks.images import LENGTH, SIDE, filmed
from benchmarks.inputs import logged
from benchmarks.limits import advance, open_loop, physical
from benchmarks.rows import Row
from benchmarks.timing import seconds
from cwbc import envs
from cwbc.core.evaluation import roll_out
from cwbc.core.methods import Training, parse, with_all_options
from cwbc.core.policy_spec import PolicySpec
from cwbc.core.training_loop import initialize
from cwbc.runs.evaluating import evaluate
from cwbc.runs.policies import Policies

CHEETAH = "HalfCheetah-v5"
MAZES = ("d4rl/antmaze-large-play-v2", "d4rl/maze2d-large-v1")
GAME = "ALE/Breakout-v5"
HORIZON = 1000
GPU_TARGETS = {"rvs": 10.0, "dt": 30.0}  # seconds for 2,100 episodes


def cpu_simulation(count: int = 128, steps: int = 100) -> Iterator[Row]:
    """A simulator's step against MuJoCo's own C loop over the same states and actions."""
    for environment in ("Hopper-v5", "Walker2d-v5", CHEETAH, *MAZES):
        ours, limit = _stepping(environment, count, steps)
        yield Row(
            f"simulation, {environment} x {count}",
            count * steps / ours,
            "steps/s",
            count * steps / limit,
            "open-loop C",
            promise=0.8,
            more_is_better=True,
        )


def _stepping(environment: str, count: int, steps: int) -> tuple[float, float]:
    simulator, physics = physical(environment, count)
    episodes = np.arange(count)
    actions = np.random.default_rng(0).uniform(-1, 1, (count, simulator.action_size)).astype(np.float32)
    simulator.reset(episodes, range(count))
    bare = mujoco.batch.Batch(physics.model, count)
    bare.bind("ctrl")[:] = actions
    ours, limit = 0.0, 0.0
    for _ in range(steps):
        bare.state[:] = physics.batch.state  # the cost of a step depends on the contacts of its state
        limit += seconds(lambda: advance(bare, simulator))
        began = time.perf_counter()
        outcome = simulator.step(episodes, actions)
        ours += time.perf_counter() - began
        if (ended := episodes[outcome.terminated | outcome.truncated]).size:
            simulator.reset(ended, range(len(ended)))
    simulator.close()
    return ours, limit


def cpu_games(count: int = 64, steps: int = 100, repeats: int = 3) -> Iterator[Row]:
    """The evaluation of a small policy in a game, beside as many copies of the emulator alone."""
    data = filmed(LENGTH, np.empty((LENGTH, SIDE, SIDE, 1), np.uint8))
    convolutions: dict[str, Any] = {"channels": (4, 8), "kernels": (8, 4), "strides": (8, 2), "width": 32}
    method, training = with_all_options(parse("rvs"), Training(), convolutions)
    spec = PolicySpec.fit(method, data, training)
    parameters = initialize(spec, (0,)).parameters
    turns = [(_played(spec, parameters, count, steps), _emulated(count, steps)) for _ in range(1 + repeats)]
    ours, limit = map(statistics.median, zip(*turns[1:], strict=True))
    yield Row(
        f"evaluation of a small policy, {GAME} x {count}",
        count * steps / ours,
        "steps/s",
        count * steps / limit,
        "emulator alone",
        promise=0.8,
        more_is_better=True,
    )


def _played(spec: PolicySpec, parameters: Any, count: int, steps: int) -> float:
    """Seconds for so many steps of each copy, after the first one."""
    simulator = envs.make(GAME, count)
    simulator.horizon = 1 + steps  # less than any episode takes
    moments = []
    roll_out(
        spec,
        parameters,
        np.linspace(1, 100, count),
        range(count),
        simulator,
        independent=envs.is_independent(GAME),
        progress=lambda timestep: moments.append(time.perf_counter()),
    )
    simulator.close()
    return moments[-1] - moments[0]


def _emulated(count: int, steps: int) -> float:
    """The same of uniform actions that nothing chooses."""
    simulator, episodes, random = envs.make(GAME, count), np.arange(count), np.random.default_rng(0)
    simulator.reset(episodes, range(count))
    actions = random.integers(0, simulator.action_size, (1 + steps, count))
    simulator.step(episodes, actions[0])
    took = seconds(lambda: [simulator.step(episodes, each).rewards for each in actions[1:]])
    simulator.close()
    return took


def cpu_sweep() -> Iterator[Row]:
    """100 whole episodes of HalfCheetah under a paper-size RvS policy."""
    yield _sweep("100 HalfCheetah episodes, rvs", "rvs", seeds=1, targets=10, promise=10.0)


def gpu_sweeps() -> Iterator[Row]:
    """The paper's sweep: 21 targets, 10 episodes, 10 seeds."""
    for name, promise in GPU_TARGETS.items():
        yield _sweep(f"2,100 HalfCheetah episodes, {name}", name, seeds=10, targets=21, promise=promise)


def _sweep(label: str, name: str, seeds: int, targets: int, promise: float, episodes: int = 10) -> Row:
    data = logged(5000)
    spec, which = PolicySpec.fit(parse(name), data, Training()), tuple(range(seeds))
    policies = Policies(spec, initialize(spec, which).parameters, which)
    returns = [1000.0 * k for k in range(1, 1 + targets)]
    _compile(policies, returns, episodes)
    count, sample = seeds * targets * episodes, HORIZON // 10
    limit = open_loop(CHEETAH, count, sample)
    took = seconds(lambda: evaluate(policies, CHEETAH, returns, episodes).returns)
    limit += open_loop(CHEETAH, count, sample)  # before and after, as the machine may slow down
    return Row(
        label,
        took,
        "s",
        limit / 2 * HORIZON / sample,
        "open-loop C, as many steps",
        promise=promise,
        promise_on="measured",
    )


class _Compiled(Exception):
    """The first step is done."""


def _compile(policies: Policies, targets: list[float], episodes: int) -> None:
    def stop(timestep: int) -> None:
        raise _Compiled

    with contextlib.suppress(_Compiled):
        evaluate(policies, CHEETAH, targets, episodes, progress=stop)
