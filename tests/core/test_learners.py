"""The shape of a learner, with one of another kind: trained, killed, resumed, saved, loaded and evaluated."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from fitted_q import (
    CHAIN,
    EXIT,
    GOAL,
    LOGGED,
    METHOD,
    RIGHT,
    STATES,
    FittedQ,
    FittedQState,
    chain_data,
    observed,
)
from toys import tiny

from cwbc.core import training_loop
from cwbc.core.learners import Learner
from cwbc.core.methods import (
    Method,
    Training,
    as_begun,
    method_from_json,
    options_of,
    to_json,
    with_all_options,
    with_options,
)
from cwbc.core.policy_spec import PolicySpec
from cwbc.runs.evaluating import evaluate
from cwbc.runs.policies import Policies, Policy
from cwbc.runs.run_directory import RunDirectory
from cwbc.runs.training import Run, train, train_together
from cwbc.system import tensor_files
from cwbc.system.errors import DivergenceError, InputError

SETTINGS = Training(steps=600, batch_size=32)
SHORT = Training(steps=30, batch_size=32)
SEEDS = (0, 3)


def assert_same(one: Any, other: Any) -> None:
    jax.tree.map(np.testing.assert_array_equal, one, other)


@pytest.fixture(autouse=True, scope="module")
def short_chunks() -> Iterator[None]:
    """Of one length, so that all trainings are one program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_loop, "chunk_length", lambda *_: 5)
        yield


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose policies have learned the chain."""
    place = tmp_path_factory.mktemp("fitted-q")
    train(chain_data(), METHOD, SETTINGS, SEEDS, place)
    return place


def test_it_is_a_learner() -> None:
    learner: Learner = METHOD.learner
    assert not learner.looks_back
    assert not learner.is_conditioned
    assert isinstance(learner, FittedQ)


def test_it_stitches_what_no_logged_trajectory_does(directory: Path) -> None:
    data, policies = chain_data(), Policies.load(directory)
    from_the_start = [data.returns[n] for n, (first, _) in enumerate(LOGGED * 5) if first == 0]
    np.testing.assert_allclose(max(from_the_start), EXIT, rtol=1e-6)
    sweep = evaluate(policies, CHAIN, [0.0, 1.0], episodes=2)
    assert not sweep.takes_target
    assert sweep.returns.shape == (len(SEEDS), 1, 2)
    assert (sweep.returns == GOAL).all()
    assert (sweep.lengths == STATES - 1).all()
    assert policies.warnings == ()


def test_cloning_the_same_data_does_not() -> None:
    policies = train(chain_data(), tiny("bc"), SETTINGS, (0,))
    assert evaluate(policies, CHAIN, [0.0], episodes=1).returns.item() == EXIT


def test_its_values_are_the_discounted_returns_of_the_optimum(directory: Path) -> None:
    learner, policy = METHOD.learner, Policies.load(directory).policy(0)
    assert isinstance(learner, FittedQ)
    states = policy.spec.observations.received(np.stack([observed(n) for n in range(STATES - 1)]))
    values = np.asarray(learner._values(policy.parameters, states))
    expected = GOAL * learner.discount ** np.arange(STATES - 2, -1, -1)
    np.testing.assert_allclose(values[:, RIGHT], expected, atol=0.05)
    assert values[0, 1 - RIGHT] == pytest.approx(EXIT, abs=0.05)


def test_a_policy_acts_and_comes_back_from_a_file(directory: Path, tmp_path: Path) -> None:
    policy = Policies.load(directory).policy(3)
    policy.save(tmp_path / "policy")
    loaded = Policy.load(tmp_path / "policy")
    assert loaded.spec == policy.spec
    for each in (policy, loaded):
        each.begin([0.0, 100.0])
        found = each.act(np.stack([observed(1), observed(4)]))
        assert found.tolist() == [RIGHT, RIGHT]


def test_a_seed_alone_equals_that_seed_in_a_stack_and_streamed_data_that_on_the_device() -> None:
    both = train(chain_data(), METHOD, SHORT, SEEDS)
    alone = train(chain_data(), METHOD, SHORT, SEEDS[1:], data_on="host")
    jax.tree.map(lambda a, b: np.testing.assert_array_equal(a[1], b[0]), both.parameters, alone.parameters)


def test_methods_that_differ_in_numbers_are_trained_together() -> None:
    other = with_all_options(METHOD, SHORT, {"discount": 0.5, "tau": 0.5, "learning_rate": 0.1})[0]
    assert METHOD.form == other.form
    runs = [Run(chain_data(), PolicySpec.fit(method, chain_data(), SHORT)) for method in (METHOD, other)]
    together = train_together(runs, SHORT, (0,))
    for method, one in zip((METHOD, other), together, strict=True):
        assert_same(one.parameters, train(chain_data(), method, SHORT, (0,)).parameters)


def test_a_divergence_is_noticed() -> None:
    method = with_options(METHOD, SHORT, {"learning_rate": 1e38})[0]
    with pytest.raises(DivergenceError, match=r"fitted-q became .* for seed 0"):
        train(chain_data(), method, SHORT, (0,))


def test_it_comes_back_from_json() -> None:
    written = to_json(METHOD)
    assert (written["kind"], written["name"], written["learner"]) == ("Method", "fitted-q", "FittedQ")
    assert method_from_json(json.loads(json.dumps(written)), "method") == METHOD
    with pytest.raises(InputError, match=r"method has 'network2', which is unknown"):
        method_from_json({**written, "network2": {}}, "method")


def test_its_fields_are_options() -> None:
    assert {"discount", "tau", "width", "learning_rate", "steps"} <= options_of(METHOD, SHORT)
    with pytest.raises(InputError, match="fitted-q has no option percentile; its options: batch_size, "):
        with_all_options(METHOD, SHORT, {"percentile": 5.0})
    begun = as_begun(METHOD, 50).learner
    assert isinstance(begun, FittedQ)
    assert begun.optimizer.warmup_steps == 5


def test_the_checkpoint_has_every_field_of_its_state(directory: Path) -> None:
    tensors, description = tensor_files.read(directory / "checkpoint.safetensors")
    assert {name.split("/")[0] for name in tensors} == {"parameters", "target", "optimizer"}
    assert description["design"]["method"]["learner"] == "FittedQ"
    rows = RunDirectory(directory).metrics()
    assert set(rows[-1]) == {"step", "seconds", "loss", "value"}


PROGRAM = """
import os, signal, sys
from collections.abc import Iterator
from pathlib import Path
from fitted_q import METHOD, chain_data
from cwbc.core import training_loop
from cwbc.core.methods import Training
from cwbc.runs.training import train

training_loop.SAVE_INTERVAL = 0.0  # a checkpoint after every chunk
training_loop.chunk_length = lambda *_: 5
replace, left = os.replace, [int(sys.argv[2])]

def fatal(*arguments):
    left[0] -= 1
    return os.kill(os.getpid(), signal.SIGKILL) if left[0] == 0 else replace(*arguments)

os.replace = fatal
train(chain_data(), METHOD, Training(steps=30, batch_size=32), (0, 3), Path(sys.argv[1]))
"""


def test_a_killed_training_resumes_with_the_same_bits(tmp_path: Path) -> None:
    path = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "killed"), "4"]
    environment = os.environ | {"PYTHONPATH": path, "JAX_PLATFORMS": "cpu"}
    ended = subprocess.run(command, env=environment, capture_output=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr.decode()
    assert 0 < RunDirectory(tmp_path / "killed").steps_done() < SHORT.steps
    resumed = train(chain_data(), METHOD, SHORT, SEEDS, tmp_path / "killed")
    whole = train(chain_data(), METHOD, SHORT, SEEDS, tmp_path / "whole")
    assert_same(resumed.parameters, whole.parameters)
    places = [tmp_path / name / "checkpoint.safetensors" for name in ("killed", "whole")]
    assert_same(*(tensor_files.read(place)[0] for place in places))
    losses = [
        [row["loss"] for row in RunDirectory(tmp_path / name).metrics()] for name in ("killed", "whole")
    ]
    assert losses[0] == losses[1]


def test_its_state_is_that_of_all_seeds() -> None:
    spec = PolicySpec.fit(METHOD, chain_data(), SHORT)
    state = training_loop.initialize(spec, SEEDS)
    assert isinstance(state, FittedQState)
    assert {leaf.shape[0] for leaf in jax.tree.leaves(state)} == {len(SEEDS)}
    assert isinstance(spec.method, Method)
