"""Exported policies act as cwbc.Policy does: every base, over whole episodes, each with its own clock."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import pytest
from fitted_q import METHOD, FittedQ, chain_data
from numpy.typing import NDArray
from pixels import pixel_data
from toys import random_parameters, tiny, toy_data

from cwbc.core import encoders
from cwbc.core.acting import History
from cwbc.core.layers import Parameters
from cwbc.core.methods import Training
from cwbc.core.networks import MLP
from cwbc.core.optimizers import Optimizer
from cwbc.core.policy_spec import PolicySpec
from cwbc.runs.export import checking, description, numpy_file, numpy_policy, onnx_file
from cwbc.runs.export.checking import Stepper
from cwbc.runs.export.graph import Graph, Value
from cwbc.runs.export.jaxprs import traced
from cwbc.runs.export.step import Step
from cwbc.runs.policies import Policy
from cwbc.system.errors import DifferenceError, InputError

CONTEXT, EPISODES, STEPS = 3, 3, 10
TARGETS = (3.0, -2.0, 0.5)
DATA = {
    "continuous": toy_data(),
    "discrete": toy_data(discrete=True),
    "pixels": pixel_data(20).described(time_limit=STEPS),
    "chain": chain_data(),
}
ABOUT: dict[str, Any] = {"cwbc_version": "0", "method": "mine", "target": None}


@functools.cache
def policy(name: str, data: str = "continuous") -> Policy:
    options = {"critic_width": 16, "candidates": 8} if "+q" in name else {}
    method = METHOD if name == "fitted-q" else tiny(name, **options)
    spec = PolicySpec.fit(method, DATA[data], Training(context=CONTEXT, frame_stack=2))
    return Policy(spec, random_parameters(spec, 7), {"dataset": data, "best_return": 5.0}).acting("greedy")


def steppers(step: Step) -> dict[str, Stepper]:
    """A step in NumPy and in ONNX Runtime."""
    in_numpy = numpy_policy.Policy.read(io.BytesIO(numpy_file.encoded(step, ABOUT)))
    return {"NumPy": in_numpy.step, **onnx_file.steppers(onnx_file.encoded(step, ABOUT))}


def observations(data: str, steps: int = STEPS) -> NDArray[Any]:
    """Random observations of several episodes. [step, episode, ...]"""
    generator, shape = np.random.default_rng(3), (steps, EPISODES, *DATA[data].observations.shape[1:])
    return generator.integers(0, 256, shape) if data == "pixels" else generator.normal(size=shape)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        *(("bc", "continuous"), ("rvs", "continuous"), ("dt", "continuous"), ("dt-concat", "discrete")),
        *(("rvs", "pixels"), ("dt", "pixels"), ("rvs+q", "continuous"), ("dt+q", "continuous")),
        *((name, "continuous") for name in ("td3bc", "iql", "cql", "rebrac")),
        *(("discrete-cql", "discrete"), ("discrete-cql", "pixels")),
        ("fitted-q", "chain"),  # as users write learners
    ],
)
def test_episodes_with_clocks_of_their_own_equal_those_of_the_policy(name: str, data: str) -> None:
    original = policy(name, data)
    step = Step.of(original.spec, original.parameters)
    alone = [Policy(original.spec, original.parameters) for _ in range(EPISODES)]
    seen, rewards = observations(data), np.random.default_rng(4).normal(size=(STEPS, EPISODES))
    runtimes = steppers(step)
    states = dict.fromkeys(runtimes, np.full((EPISODES, step.inputs[2].shape[1]), 8.0))
    for t in range(STEPS):
        begun = np.array([t == 0, t in (0, 2), t in (0, 8)])  # the first episode is longer than its context
        for i in np.flatnonzero(begun):
            alone[i].begin(TARGETS[i])
        taken = [each.act(seen[t, i], None if begun[i] else rewards[t, i]) for i, each in enumerate(alone)]
        for runtime, function in runtimes.items():
            state = np.array(states[runtime])
            state[begun] = 0
            state[begun, 0] = np.array(TARGETS)[begun]
            # What an episode is given as its first reward does not matter.
            actions, states[runtime] = function(seen[t], np.where(begun, np.nan, rewards[t]), state)
            assert actions.dtype == taken[0].dtype
            np.testing.assert_allclose(actions, np.stack(taken), rtol=1e-5, atol=2e-5, err_msg=runtime)
            np.testing.assert_array_equal(states[runtime][:, 1], state[:, 1] + 1)
    assert list(runtimes) == ["NumPy", "ONNX Runtime"]


def test_clipped_rewards_are_subtracted() -> None:
    original = policy("rvs")
    clipped = Policy(dataclasses.replace(original.spec, clipped_rewards=True), original.parameters)
    assert (
        description(clipped, 1.0)["clipped_rewards"],
        "clipped_rewards" in description(original, 1.0),
    ) == (
        True,
        False,
    )
    original.begin(TARGETS)
    clipped.begin(TARGETS)
    runtimes, states = steppers(Step.of(clipped.spec, clipped.parameters)), dict[str, Any]()
    for t, seen in enumerate(observations("continuous", 3)):
        raw = np.array([25.0, -7.0, 0.5])
        expected = original.act(seen, raw.clip(-1, 1) if t else None)
        np.testing.assert_array_equal(clipped.act(seen, raw if t else None), expected)
        for runtime, function in runtimes.items():
            state = states.get(runtime, np.array([[target, 0.0] for target in TARGETS]))
            actions, states[runtime] = function(seen, raw, state)
            np.testing.assert_allclose(actions, expected, rtol=1e-5, atol=2e-5, err_msg=runtime)
    for state in states.values():
        np.testing.assert_array_equal(state[:, 0], np.array(TARGETS) - 2 * np.array([1, -1, 0.5]))


def test_convolutions_as_traced_on_an_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    original = policy("rvs", "pixels")
    monkeypatch.setattr(encoders, "on_cpu", lambda: False)
    step = Step.of(original.spec, original.parameters)
    assert "Conv" in [node.operation for node in step.nodes]
    size = step.inputs[2].shape[1]
    assert checking.largest_difference(original, steppers(step), size, 3.0) < 1e-6


def everything(table: jax.Array, x: jax.Array, number: jax.Array) -> jax.Array:
    """Much of what learners may compute of floats [row, column] and a whole number of each episode."""
    places = jnp.stack([number, number + 1])
    smooth = jax.nn.softplus(x) + jax.nn.gelu(x) + jax.nn.elu(x) + jax.scipy.special.erf(x) + jax.nn.silu(x)
    norms = jnp.sqrt(jnp.sum(x**3 * x**-2, axis=0) ** 2 + 1) + jnp.std(x) + jax.nn.logsumexp(x)
    rounded = (
        jnp.round(x) + jnp.floor(x) + jnp.sign(x) * jnp.ceil(x) + jnp.fmod(x, 0.7) + jnp.clip(x, -1, 0.5)
    )
    logic = (x > 0) & ~(x >= 1) | (x != x) ^ jnp.isfinite(x) | (jnp.any(x > 2) & jnp.all(x < 3))
    parts = jnp.split(jnp.pad(x, ((1, 0), (0, 2)), constant_values=2.0), 2, axis=1)
    found = (
        smooth, norms, rounded, logic, parts[1], x[::-1, ::2], jnp.tile(x, (2, 1)), table[number],
        table[places, places], table[number + 9], table.at[number + 3].get(mode="fill"),
        x[:, places].at[number].set(7.0) + x[:, :2].at[:, number].add(x[:, 0]),
        jax.lax.dynamic_slice(x, (number, 0), (2, 2)), jnp.take_along_axis(x, x.argmin(1)[:, None], axis=1),
        jnp.cumsum(x, axis=1) + jax.lax.cumsum(x, axis=1, reverse=True),
        jax.checkpoint(lambda x: jnp.einsum("ij,kj->ik", x, x))(x),
        (number - 5) // 2, jnp.prod(x), jnp.roll(x, 1), x.max(1) - x.min(1), jnp.where(number > 0, x, 1 - x),
        jnp.sort(table, axis=0), (x**2) ** number, jnp.full((2, 3), 4.0).at[:, 1].set(x[0, 0]),
    )  # fmt: skip
    return jnp.concatenate([jnp.ravel(each).astype(jnp.float32) for each in found])


def test_operations_are_those_of_jax() -> None:
    graph, table = Graph(), jnp.arange(12.0).reshape(4, 3)
    x, numbers = (
        np.random.default_rng(0).normal(size=(EPISODES, 3, 4)).astype(np.float32),
        np.array([0, 1, 1.0]),
    )
    inputs = Value((-1, 3, 4), x.dtype), Value((-1,), numbers.dtype), Value((-1, 1), numbers.dtype)
    expected = jax.jit(jax.vmap(everything, (None, 0, 0)))(table, x, numbers.astype(np.int32))
    (output,) = traced(graph, everything, table, [inputs[0], graph.cast(inputs[1], np.int32)])
    # An array in place of observations, and whole numbers in place of rewards.
    step = Step(graph.needed([output]), inputs, (output, inputs[2]))
    assert np.isnan(expected).any()  # beyond the end of the table
    for runtime, function in steppers(step).items():
        found, _ = function(x, numbers, np.zeros((EPISODES, 1)))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5, err_msg=runtime)


def test_numpy_alone_acts_with_what_was_exported(tmp_path: Path) -> None:
    original, path = policy("dt"), tmp_path / "robot.npz"
    original.export(path, "numpy", target=2.5)
    seen, rewards = observations("continuous", 5)[:, 0], [0.5, -1.0, 2.0, 0.25]
    original.begin(2.5)
    expected = [original.act(each, reward) for each, reward in zip(seen, [None, *rewards], strict=True)]
    (tmp_path / "inputs.json").write_text(json.dumps([seen.tolist(), [None, *rewards]]))
    program = (
        "import json, sys; from policy import Policy; one = Policy.load('robot.npz'); one.begin()\n"
        "inputs = zip(*json.load(open('inputs.json')))\n"
        "print(json.dumps([one.act(*each).tolist() for each in inputs]))\n"
        "assert not {'jax', 'cwbc'} & {*sys.modules}"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(json.loads(ended.stdout), expected, rtol=1e-5, atol=1e-6)


def exported(name: str, tmp_path: Path, data: str = "continuous") -> numpy_policy.Policy:
    policy(name, data).export(tmp_path / "policy.npz", "numpy")
    return numpy_policy.Policy.load(tmp_path / "policy.npz")


def test_several_episodes_in_numpy(tmp_path: Path) -> None:
    original, found = policy("rvs"), exported("rvs", tmp_path)
    seen, rewards = observations("continuous", 3), np.random.default_rng(4).normal(size=(2, EPISODES))
    for each in (original, found):
        each.begin(TARGETS)
    for t in range(3):
        given = rewards[t - 1] if t else None
        np.testing.assert_allclose(
            found.act(seen[t], given), original.act(seen[t], given), rtol=1e-5, atol=1e-6
        )


def test_images_and_discrete_actions_in_numpy(tmp_path: Path) -> None:
    original, found = policy("rvs", "pixels"), exported("rvs", tmp_path, "pixels")
    seen = observations("pixels")[:, 0]
    for each in (original, found):
        each.begin(2.0)
    for t in range(3):
        action = found.act(seen[t], 0.5 if t else None)
        assert action.shape == ()
        assert action == original.act(seen[t], 0.5 if t else None)
    with pytest.raises(ValueError, match="an observation is bytes, 0 to 255"):
        found.act(seen[0] - 300, 0.5)


def test_sampled_actions_are_greedy_in_files(tmp_path: Path) -> None:
    greedy = policy("rvs", "pixels")
    sampled = greedy.acting("sampled")
    sampled.export(tmp_path / "policy.npz", "numpy", 2.0)
    found = numpy_policy.Policy.load(tmp_path / "policy.npz")
    assert found.about["actions"] == {"kind": "discrete", "choice": "greedy", "size": 2}
    assert sampled.spec.sampled  # as before
    for each in (greedy, found):
        each.begin(2.0)
    for t, seen in enumerate(observations("pixels")[:, 0]):
        assert found.act(seen, 0.5 if t else None) == greedy.act(seen, 0.5 if t else None)


def test_mistakes_in_numpy_are_errors(tmp_path: Path) -> None:
    one = exported("rvs", tmp_path)
    with pytest.raises(ValueError, match="call begin"):
        one.act([0.0, 0.0])
    with pytest.raises(ValueError, match=r"rvs is conditioned on a target; call begin\(target\)"):
        one.begin()
    for target in (np.nan, "600", ["600"], [], [[1.0]]):
        with pytest.raises(ValueError, match="a target is a finite number"):
            one.begin(target)
    one.begin(1.0)
    with pytest.raises(ValueError, match="from the second step on"):
        one.act([0.0, 0.0], 1.0)
    with pytest.raises(ValueError, match=r"finite numbers of shape \(2,\)"):
        one.act([0.0, 0.0, 0.0])
    one.act([0.0, 0.0])
    with pytest.raises(ValueError, match="from the second step on"):
        one.act([0.0, 0.0])
    with pytest.raises(ValueError, match="a reward is finite numbers"):
        one.act([0.0, 0.0], np.inf)
    with pytest.raises(FileNotFoundError):
        numpy_policy.Policy.load(tmp_path / "other.npz")


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    exported("rvs", tmp_path)
    path = tmp_path / "policy.npz"
    whole, generator = path.read_bytes(), np.random.default_rng(0)
    path.write_bytes(whole[:-50])
    with pytest.raises(ValueError, match="is no policy that cwbc exported, or it is damaged"):
        numpy_policy.Policy.load(path)
    with np.load(io.BytesIO(whole)) as file:
        arrays = dict(file)
    description = json.loads(str(arrays[numpy_policy.DESCRIPTION]))
    weight = next(name for name in arrays if arrays[name].ndim == 2)
    for changes, message in (
        ({"format": 0}, "it has format 0"),
        ({"nodes": [["Import", [0], {}]]}, "no operation 'Import'"),
        ({"nodes": [["Add", [0, 9999], {}]]}, "of the values"),
        ({weight: arrays[weight][:, :1]}, "its weights are not those"),
        ({weight: np.array(["x"])}, "its weights are not those"),
    ):
        text = json.dumps(description | {key: value for key, value in changes.items() if key != weight})
        others = {key: value for key, value in changes.items() if key == weight}
        np.savez(path, allow_pickle=False, **(arrays | {numpy_policy.DESCRIPTION: np.array(text)} | others))
        with pytest.raises(ValueError, match=message):
            numpy_policy.Policy.load(path)
    for place in generator.integers(0, len(whole), 20):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with contextlib.suppress(ValueError):  # unless it is a byte that does not matter
            loaded = numpy_policy.Policy.load(path)
            loaded.begin(1.0)
            assert np.isfinite(loaded.act([0.0, 0.0])).all()


@pytest.mark.parametrize(("name", "target"), [("rvs", 2.5), ("rvs", None), ("rvs+q", None), ("bc", None)])
def test_an_onnx_file_describes_itself(name: str, target: float | None, tmp_path: Path) -> None:
    original = policy(name)
    original.export(tmp_path / "policy.onnx", target=target)
    model = onnx.load(tmp_path / "policy.onnx")
    about = {entry.key: entry.value for entry in model.metadata_props}
    assert about["method"] == name
    assert about["dataset"] == "continuous"
    assert about["horizon"] == "10"
    assert json.loads(about["observation"]) == {"shape": [2], "values": "finite numbers"}
    assert json.loads(about["actions"]) == {"kind": "continuous", "lowest": [-1.0], "highest": [1.0]}
    wanted = original.spec.method.learner.open_target(10) if target is None else target
    assert ("target" in about) == (wanted is not None)
    assert wanted is None or float(about["target"]) == wanted
    assert [each.name for each in model.graph.input] == ["observation", "reward", "state"]
    assert [each.name for each in model.graph.output] == ["action", "next_state"]


def test_what_is_there_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, module = tmp_path / "policy.npz", tmp_path / "policy.py"
    policy("bc").export(path, "numpy")
    with pytest.raises(InputError, match=r"policy.npz exists; --overwrite replaces it"):
        policy("bc").export(path, "numpy")
    policy("bc").export(tmp_path / "second.npz", "numpy")  # beside the same module
    module.write_text("mine")
    with pytest.raises(InputError, match=r"policy.py exists; --overwrite replaces it"):
        policy("bc").export(tmp_path / "third.npz", "numpy")
    before = path.read_bytes()
    monkeypatch.setattr(checking, "TOLERANCE", -1.0)
    with pytest.raises(DifferenceError, match="nothing was written: in NumPy, actions differ by"):
        policy("bc").export(path, "numpy", overwrite=True)
    assert (path.read_bytes(), module.read_text()) == (before, "mine")
    monkeypatch.undo()
    policy("bc").export(path, "numpy", overwrite=True)
    assert "class Policy" in module.read_text()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["policy.npz", "policy.py", "second.npz"]


def test_a_wrong_number_in_a_file_is_noticed() -> None:
    original = policy("rvs")
    other = dataclasses.replace(original.spec, horizon=original.spec.horizon + 1)
    step = Step.of(other, original.parameters)
    with pytest.raises(
        DifferenceError, match=r"actions differ by .* of their range at step 0, more than 0.0001"
    ):
        checking.largest_difference(original, steppers(step), step.inputs[2].shape[1], None)


def test_a_tie_of_two_actions_is_no_difference() -> None:
    original = policy("bc", "discrete")
    head = {name: np.array(value) for name, value in original.parameters["layer1"].items()}
    for name, lowest in (("weight", 0), ("bias", -9)):  # two actions are equal, the third is never the best
        head[name][..., 1], head[name][..., 2] = head[name][..., 0], lowest
    tied = Policy(original.spec, original.parameters | {"layer1": jax.tree.map(jnp.asarray, head)})
    step = steppers(Step.of(tied.spec, tied.parameters))["NumPy"]

    def other(*inputs: Any) -> Any:
        actions, state = step(*inputs)
        return 1 - actions, state

    def never(*inputs: Any) -> Any:
        return step(*inputs)[0] * 0 + 2, inputs[2]

    assert checking.largest_difference(tied, {"mine": other}, 2, None) == 0
    with pytest.raises(DifferenceError, match="in mine, actions differ by 2 of their range"):
        checking.largest_difference(tied, {"mine": never}, 2, None)


def test_mistakes_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="unknown format 'torch'"):
        policy("bc").export(tmp_path / "policy.pt", "torch")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="bc takes no target return; export it without one"):
        policy("bc").export(tmp_path / "policy.onnx", target=1.0)
    with pytest.raises(InputError, match="the target must be a finite number; got nan"):
        policy("rvs").export(tmp_path / "policy.onnx", target=np.nan)
    for target in ("600", [], [600.0]):
        with pytest.raises(InputError, match="the target must be a finite number; got"):
            policy("rvs").export(tmp_path / "policy.onnx", target=target)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="is the name of the module"):
        policy("bc").export(tmp_path / "policy.py", "numpy")
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(InputError, match=r"exports to ONNX need more packages: pip install 'cwbc\[onnx\]'"):
        policy("bc").export(tmp_path / "policy.onnx")
    assert not list(tmp_path.iterdir())


@dataclasses.dataclass(frozen=True)
class Sorting(FittedQ):
    """A learner that computes while acting what no export can."""

    @property
    def form(self) -> Sorting:
        return self

    def act(self, spec: PolicySpec, parameters: Parameters, history: History, step: jax.Array) -> jax.Array:
        return spec.actions.choose(jnp.sort(history.observations[:, step]))


@dataclasses.dataclass(frozen=True)
class InNumPy(FittedQ):
    """A learner whose conditions only NumPy can compute."""

    def standardized(self, returns_to_go: Any, timesteps: Any, horizon: int) -> Any:
        return np.asarray(returns_to_go)


def test_a_learner_that_cannot_be_exported_is_refused(tmp_path: Path) -> None:
    original = policy("fitted-q", "chain")
    for kind, message in ((Sorting, "cannot compute sort of float32"), (InNumPy, "JAX cannot trace it")):
        learner = kind(MLP(width=16, layers=1), Optimizer())
        spec = dataclasses.replace(original.spec, method=dataclasses.replace(METHOD, learner=learner))
        with pytest.raises(InputError, match=message):
            Policy(spec, original.parameters).export(tmp_path / "policy.npz", "numpy")
