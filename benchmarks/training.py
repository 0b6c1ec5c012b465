"""Training: its operations against plain products, and what each method costs."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Iterator

import jax

from benchmarks import limits
from benchmarks.inputs import Trainee, logged
from benchmarks.rows import Row
from benchmarks.timing import seconds, side_by_side
from cwbc.core import sampling
from cwbc.core.actor_critic import ActorCritic
from cwbc.core.cloning import Cloning
from cwbc.core.critics import CRITICS
from cwbc.core.layers import Parameters
from cwbc.core.methods import Preset
from cwbc.core.networks import MLP
from cwbc.core.policy_spec import PolicySpec

# Steps of a turn: few, so that noise meets both sides; enough that handing over the state does not count.
TURNS: dict[Preset, int] = {"small": 100, "paper": 20}
GPU_TARGETS = {"rvs": 30.0, "rvs+cwbc": 45.0, "dt": 90.0}  # seconds for 100,000 steps of ten seeds
# Seconds for a million updates of ten seeds.
GPU_CRITIC_TARGETS = {"td3bc": 120.0, "iql": 150.0, "cql": 500.0, "rebrac": 400.0}
LANES = ("td3bc", "iql")  # on three datasets as well
OPTIMIZER_BYTES = 28  # per weight: it, its gradient and two moments are read, all but the gradient written


def operations(spec: PolicySpec, windows: int) -> float:
    """Additions and multiplications of the matrix products in one step of one seed, forward and backward."""
    learner, context = spec.method.learner, spec.context
    assert isinstance(learner, Cloning)
    network = learner.network
    parameters = jax.eval_shape(functools.partial(learner.initial_parameters, spec), jax.random.key(0))
    rows = windows * context
    # A product costs two operations per weight and row, and as many again for each gradient; what enters the
    # network needs none.
    if isinstance(network, MLP):
        first, *others = (parameters[f"layer{i}"]["weight"].size for i in range(network.layers + 1))
        return rows * (4.0 * first + 6.0 * sum(others))
    kinds = len(parameters["embed"])  # tokens of a step
    embedding = sum(layer["weight"].size for layer in parameters["embed"].values())
    blocks = 0.0
    for i in range(network.layers):
        wanted = kinds if i < network.layers - 1 else 1  # of the last block, the token before the action
        qkv, *others = (parameters[f"block{i}"][name]["weight"].size for name in ("qkv", "out", "up", "down"))
        attention = 12.0 * network.width * kinds * context  # scores and mixture, per token
        blocks += 6.0 * kinds * qkv + wanted * (6.0 * sum(others) + attention)
    head = parameters["head"]["weight"].size
    return rows * (4.0 * embedding + 6.0 * head + blocks)


def cpu_step() -> Iterator[Row]:
    """A paper-size RvS step against the same amount of plain matrix products."""
    rvs = Trainee("rvs", logged(100_000), "paper", chunk=TURNS["paper"])
    work = rvs.chunk * operations(rvs.spec, rvs.windows)
    plain, plain_work = limits.products((limits.ROWS, limits.WIDTH), limits.WIDTH, "float32", 3 * rvs.chunk)
    ours, limit = side_by_side(rvs.train, plain, repeats=11)
    yield Row(
        "RvS step, paper size",
        work / ours / 1e9,
        "GFLOP/s",
        plain_work / limit / 1e9,
        "plain product",
        promise=0.9,
        more_is_better=True,
    )
    yield Row("RvS step, paper size: time", 1e3 * ours / rvs.chunk, "ms")


def critic_operations(spec: PolicySpec, batch_size: int) -> float:
    """Additions and multiplications of the matrix products in one update of TD3+BC, of one seed."""
    learner = spec.method.learner
    assert isinstance(learner, ActorCritic)
    state = jax.eval_shape(lambda key: learner.initialize(spec, key), jax.random.key(0))

    def weights(network: Parameters, layers: int) -> float:
        return sum(network[f"layer{i}"]["weight"].size for i in range(layers))

    layers = learner.network.layers + 1
    actor, critics = (weights(network, layers) for network in (state.parameters, state.critics))
    first_of_actor, first_of_critics = (weights(network, 1) for network in (state.parameters, state.critics))
    # The values to learn, the critics forward and backward; at times the actor, through the first critic.
    update = 2.0 * (actor + critics) + 6.0 * critics - 2.0 * first_of_critics
    of_actor = 6.0 * actor - 2.0 * first_of_actor + 4.0 * critics / CRITICS
    return batch_size * (update + of_actor / learner.policy_delay)


def cpu_critics() -> Iterator[Row]:
    """An update of TD3+BC against as many plain matrix products of the same sizes."""
    td3bc = Trainee("td3bc", logged(100_000), "paper", chunk=200)
    rows, learner = td3bc.training.batch_size, td3bc.spec.method.learner
    assert isinstance(learner, ActorCritic)
    width = learner.network.width
    work = td3bc.chunk * critic_operations(td3bc.spec, rows)
    plain, plain_work = limits.products((rows, width), width, "float32", 8 * td3bc.chunk)
    ours, limit = side_by_side(td3bc.train, plain, repeats=11)
    yield Row(
        "td3bc update, batch 256, width 256",
        work / ours / 1e9,
        "GFLOP/s",
        plain_work / limit / 1e9,
        "plain product",
        promise=0.7,
        more_is_better=True,
    )
    yield Row("td3bc update: time", 1e3 * ours / td3bc.chunk, "ms")


def cpu_regularizer() -> Iterator[Row]:
    """What the conservative regularizer adds to a step."""
    data = logged(100_000)
    for preset, chunk in TURNS.items():
        plain, regularized = (Trainee(name, data, preset, chunk=chunk) for name in ("rvs", "rvs+c"))
        plain_time, time = side_by_side(plain.train, regularized.train, repeats=11)
        yield Row(
            f"rvs+c step, {preset} size",
            1e3 * time / chunk,
            "ms",
            1e3 * plain_time / chunk,
            "rvs",
            promise=1.1 + regularized.data.episodes.most_selected,
        )


def gpu_ten_seeds(chunks: int = 4) -> Iterator[Row]:
    """Ten seeds at the paper's sizes: 100,000 steps projected from some of them."""
    data = logged(100_000)
    for name, target in GPU_TARGETS.items():
        trainee = Trainee(name, data, "paper", limits.GPU_SEEDS)
        first = seconds(trainee.train)
        chunk = statistics.median(seconds(trainee.train) for _ in range(chunks))
        yield from _gpu_rows(name, trainee, first - chunk, chunk / trainee.chunk, target)


def gpu_critics(chunks: int = 4) -> Iterator[Row]:
    """Ten seeds of value-based methods at their authors' sizes, and on three datasets in one program."""
    one, *others = (logged(100_000) for _ in range(3))
    for name, target in GPU_CRITIC_TARGETS.items():
        trainee = Trainee(name, one, "paper", limits.GPU_SEEDS)
        first = seconds(trainee.train)
        chunk = statistics.median(seconds(trainee.train) for _ in range(chunks))
        steps = trainee.training.steps
        yield Row(
            f"{name}, 10 seeds x {steps:,} updates, projected without compiling",
            chunk / trainee.chunk * steps,
            "s",
            promise=target,
            promise_on="measured",
        )
        yield Row(f"{name}: compiling", first - chunk, "s")
        if name in LANES:
            lanes = Trainee(
                name,
                one,
                "paper",
                limits.GPU_SEEDS,
                source=lambda data, method: sampling.side_by_side([(d, method) for d in (data, *others)]),
            )
            alone, together = side_by_side(trainee.train, lanes.train, repeats=chunks)
            update = 1e3 / trainee.chunk
            yield Row(
                f"{name}: an update on three datasets",
                update * together,
                "ms",
                update * alone,
                "one dataset",
                promise=1.6,
            )


def gpu_streaming() -> Iterator[Row]:
    """Ten seeds at the paper's size on ten million steps, on the device and in host memory."""
    data = logged(10_000_000)
    resident, streamed = (
        Trainee("rvs", data, "paper", limits.GPU_SEEDS, source=source)
        for source in (sampling.to_device, sampling.in_host_memory)
    )
    limit, took = side_by_side(resident.train, streamed.train, repeats=5)
    step = 1e3 / resident.chunk
    yield Row(
        "rvs, data in host memory: a step", step * took, "ms", step * limit, "data on the device", promise=3.0
    )


def _gpu_rows(name: str, trainee: Trainee, compiling: float, step: float, target: float) -> Iterator[Row]:
    flops = len(trainee.seeds) * operations(trainee.spec, trainee.windows)
    traffic = OPTIMIZER_BYTES * trainee.weights
    products, bandwidth = limits.seeds_product_rate(), limits.gpu_bandwidth()
    steps = trainee.training.steps
    least = flops / products + traffic / bandwidth
    yield Row(
        f"{name}, 10 seeds x {steps:,} steps, projected without compiling",
        step * steps,
        "s",
        least * steps,
        "products and optimizer at their limits",
        promise=target,
        promise_on="measured",
    )
    yield Row(f"{name}: a step", 1e3 * step, "ms")
    yield Row(f"{name}: compiling", compiling, "s")
    if fraction := trainee.data.episodes.most_selected:
        yield Row(f"{name}: windows with return noise", 100 * fraction, "%")
    yield Row(
        f"{name}: matrix products",
        flops / step / 1e12,
        "TFLOP/s",
        products / 1e12,
        "batched product",
        more_is_better=True,
    )
    yield Row(
        f"{name}: optimizer's memory traffic",
        traffic / step / 1e12,
        "TB/s",
        bandwidth / 1e12,
        "copy",
        more_is_better=True,
    )
