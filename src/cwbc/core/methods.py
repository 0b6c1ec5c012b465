"""A method is a learner and a way to sample trajectories; the paper's table is a dictionary of these."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from cwbc.core.actor_critic import ActorCritic
from cwbc.core.cloning import Cloning
from cwbc.core.conditioning import DEFAULT_SCALE, AverageReturnToGo, ReturnToGo
from cwbc.core.cql import ConservativeQ
from cwbc.core.discrete_cql import DiscreteConservativeQ
from cwbc.core.dynamics import Dynamics
from cwbc.core.iql import ImplicitQ
from cwbc.core.learners import Learner
from cwbc.core.method_names import NAMES
from cwbc.core.networks import MLP, Transformer
from cwbc.core.optimizers import MOST_STEPS, Optimizer
from cwbc.core.regularizers import Conservative
from cwbc.core.target_choice import TargetChoice
from cwbc.core.trajectories import Trajectories
from cwbc.core.weighting import ByLength, ByReturn, StoredWeighting, TopFraction, Weighting
from cwbc.system.errors import InputError, require, unknown
from cwbc.system.typed_json import decode

Preset = Literal["paper", "small"]
DEFAULT_SEEDS: Mapping[Preset, int] = {"paper": 10, "small": 3}
_MOST_SEEDS = 10_000  # more are a mistake, and would not fit into memory
MOST_HELD_OUT = 0.5  # of the episodes
# Beyond these, no machine has enough memory.
_MOST = {"steps": MOST_STEPS, "batch_size": 2**20, "context": 2**16, "frame_stack": 64}


@dataclasses.dataclass(frozen=True)
class Method:
    """A learner and the distribution of the trajectories that it learns from."""

    name: str
    learner: Learner
    weighting: Weighting

    def fit(self, data: Trajectories) -> Method:
        """The same method with every value that depends on the data filled in."""
        return dataclasses.replace(self, learner=self.learner.fit(data))

    @property
    def form(self) -> Method:
        """The static part of a compiled program, in which neither numbers nor the weighting matter."""
        return Method("", self.learner.form, ByLength())

    @property
    def is_conditioned(self) -> bool:
        """Whether its policies take a target return."""
        return self.learner.is_conditioned


@dataclasses.dataclass(frozen=True)
class Training:
    """How long to train, and on how much at a time.

    Args:
        steps: training steps (default: the preset's); more than before train a finished run on.
        batch_size: windows in a batch (paper: 64).
        context: K, steps of a window (paper: 20).
        precision: precision of hidden matmuls in training (default: bfloat16 on a GPU, float32 on a CPU).
        frame_stack: frames that a policy reads of image observations (paper: 4).
        holdout: fraction of episodes held out of training (default: 0.1 without an environment, else 0).
    """

    steps: int = 100_000
    batch_size: int = 64
    context: int = 20
    precision: Literal["float32", "bfloat16"] = "float32"
    frame_stack: int = dataclasses.field(default=4, metadata={"added": True})
    holdout: float = dataclasses.field(default=0.0, metadata={"added": True})

    def __post_init__(self) -> None:
        for name, most in _MOST.items():
            value = getattr(self, name)
            require(value >= 1, name, value, "at least 1")
            require(value <= most, name, value, f"at most {most:,}")
        require(0 <= self.holdout <= MOST_HELD_OUT, "holdout", self.holdout, f"from 0 to {MOST_HELD_OUT}")


def as_begun(method: Method, steps: int) -> Method:
    """The method as a training of so many steps begins: optimizers warm up for at most a tenth of them.

    A run that is trained on would otherwise change its learning rate after the fact.
    """

    def begun(value: Any) -> Any:
        if isinstance(value, Optimizer):
            return dataclasses.replace(value, warmup_steps=min(value.warmup_steps, steps // 10))
        return dataclasses.replace(value, **{name: begun(part) for name, part in _parts(value).items()})

    return dataclasses.replace(method, learner=begun(method.learner))


def seeds_of(seeds: Any, name: str = "seeds") -> tuple[int, ...]:
    """The seeds of a number of them (then 0, 1, ...) or of a list, with Python's or NumPy's integers."""
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        count = int(seeds)
        require(count >= 1, name, count, "at least 1")
        require(count <= _MOST_SEEDS, name, count, f"at most {_MOST_SEEDS:,}")
        return tuple(range(count))
    try:
        which = tuple(map(operator.index, seeds))
    except TypeError:
        raise InputError(f"{name} must be a whole number, or a list of such; got {seeds!r}") from None
    valid = 0 < len(which) == len(set(which)) and min(which) >= 0 and max(which) < 2**32
    require(valid, name, list(which), "at least one, all different, from 0 to 2^32 - 1")
    return which


_RETURN_TO_GO, _DT_OPTIMIZER = ReturnToGo(condition_scale=DEFAULT_SCALE), Optimizer(1e-4, clip_norm=0.25)
_BASES: Mapping[str, Learner] = {
    "bc": Cloning(MLP(), None, None, Optimizer()),
    "rvs": Cloning(MLP(), AverageReturnToGo(DEFAULT_SCALE), None, Optimizer()),
    "dt": Cloning(Transformer(), _RETURN_TO_GO, None, _DT_OPTIMIZER),
    "dt-concat": Cloning(Transformer(tokens="concatenated"), _RETURN_TO_GO, None, _DT_OPTIMIZER),
    "td3bc": ActorCritic(MLP(256, 2)),
    "rebrac": ActorCritic(
        MLP(256, 3),
        1e-3,
        1e-3,
        value_coefficient=1.0,
        actor_penalty=0.05,
        critic_penalty=0.01,
        penalty_over="sum",
        actor_critics="min",
        critic_norm="layer",
    ),
    "iql": ImplicitQ(MLP(256, 2)),
    "cql": ConservativeQ(MLP(256, 3)),
    "discrete-cql": DiscreteConservativeQ(MLP(512, 1)),
}
# What each part adds to a base: a way to sample, or a field of the learner.
_WEIGHTINGS: Mapping[str, Weighting] = {"w": ByReturn(), "f": TopFraction()}
_FIELDS: Mapping[str, Mapping[str, Any]] = {"c": {"regularizer": Conservative()}}
# Parts with which a critic chooses the target: the weight of its values in the loss of what it chooses from.
_CHOICES: Mapping[str, float] = {"q": 0.0, "qr": 1.0}
# The paper's CWBC: the transformer is conservative by itself, so it only has the weighting.
_CWBC: Mapping[str, tuple[str, ...]] = {
    "bc": ("w", "c"),
    "rvs": ("w", "c"),
    "dt": ("w",),
    "dt-concat": ("w", "c"),
}
_ALIASES: Mapping[str, str] = {"filtered-bc": "bc+f", "td3+bc": "td3bc", "cql-h": "cql"}
# Batches and updates of their authors.
_VALUE_BASED: Mapping[str, Training] = {
    "td3bc": Training(1_000_000, batch_size=256),
    "rebrac": Training(1_000_000, batch_size=1024),
    "iql": Training(1_000_000, batch_size=256),
    "cql": Training(1_000_000, batch_size=256),
    "discrete-cql": Training(1_000_000, batch_size=256),
}
# For minutes on two CPU cores.
_SMALL: Mapping[str, Mapping[str, Any]] = {
    "mlp": {"width": 256, "learning_rate": 3e-4, "steps": 10_000, "batch_size": 32},
    "transformer": {"width": 64, "layers": 2, "learning_rate": 1e-3, "steps": 5_000, "batch_size": 32},
    "values": {"steps": 20_000},
}
# Where convolutions of large images take nearly all of the time.
_FEW_CHANNELS = {"channels": (16, 32, 32), "kernels": (8, 4, 3), "strides": (4, 2, 1)}
_SMALL_ON_IMAGES: Mapping[str, Mapping[str, Any]] = {
    "mlp": {"width": 256, "learning_rate": 1e-3, "steps": 3_000, "batch_size": 32, "context": 2},
    "transformer": {**_SMALL["transformer"], "steps": 1_500, "batch_size": 8, "context": 8},
    "values": {"steps": 1_500, "batch_size": 64},
}
_SMALL_ON_IMAGES = {kind: {**sizes, **_FEW_CHANNELS} for kind, sizes in _SMALL_ON_IMAGES.items()}
_LEARNERS: tuple[type[Any], ...] = (
    Cloning,
    ActorCritic,
    ImplicitQ,
    ConservativeQ,
    DiscreteConservativeQ,
    TargetChoice,
)
_DECODED: tuple[type[Any], ...] = (*_LEARNERS, Dynamics)
# By their names in JSON.
LEARNERS: dict[str, type[Any]] = {kind.__name__: kind for kind in _DECODED}
# What methods are made of: these fields, and those of their parts, are hyper-parameters.
CHOICES: tuple[type[Any], ...] = (Training, *_LEARNERS, *map(type, _WEIGHTINGS.values()))


def _base_and_parts(name: str) -> tuple[str, list[str]]:
    first, *rest = _ALIASES.get(name.lower(), name.lower()).split("+")
    base, *parts = [*_ALIASES.get(first, first).split("+"), *rest]
    return base, parts


def parse(name: str) -> Method:
    """The method that a name like `rvs+w+c`, `dt+cwbc` or `filtered-bc` means, at the paper's sizes."""
    base, written = _base_and_parts(name)
    if base not in _BASES:
        raise unknown("method", name, [*METHODS, *_BASES])
    learner, weighting, choice = _BASES[base], None, None
    if written and base in _VALUE_BASED:
        raise InputError(f"method {name!r}: {base} takes no parts; parts are for {', '.join(_CWBC)}")
    parts = [each for word in written for each in (_CWBC[base] if word == "cwbc" else (word,))]
    for part in parts:
        if part in _WEIGHTINGS:
            if weighting not in (None, _WEIGHTINGS[part]):
                raise InputError(f"method {name!r}: +w and +f are two weightings; take one of them")
            weighting = _WEIGHTINGS[part]
        elif part in _CHOICES and choice is None and isinstance(learner, Cloning):
            choice = _CHOICES[part]
        elif part in _FIELDS and all(hasattr(learner, name) for name in _FIELDS[part]):
            learner = dataclasses.replace(learner, **_FIELDS[part])  # type: ignore[type-var]
        else:
            raise unknown("method", name, METHODS)
    if choice is not None and isinstance(learner, Cloning):
        learner = TargetChoice(learner, value_coefficient=choice)
    return Method(name.lower(), learner, weighting or ByLength())


METHODS: Mapping[str, Method] = {name: parse(name) for name in NAMES}


def sized(name: str, preset: Preset, large_images: bool = False) -> tuple[Method, Training]:
    """A method and its training at a preset's sizes: the paper's, or for minutes on two CPU cores."""
    if preset not in ("paper", "small"):
        raise unknown("preset", preset, ("paper", "small"))
    method, training = parse(name), _VALUE_BASED.get(_base_and_parts(name)[0], Training())
    if preset == "paper":
        return method, training
    return with_options(method, training, small_sizes(name, large_images))[:2]


def small_sizes(name: str, large_images: bool) -> Mapping[str, Any]:
    """The options of a method in the small preset."""
    # A step of a transformer costs several times one of an MLP.
    kind = "transformer" if parse(name).learner.looks_back else "mlp"
    kind = "values" if _base_and_parts(name)[0] in _VALUE_BASED else kind
    return (_SMALL_ON_IMAGES if large_images else _SMALL)[kind]


def method(name: str, preset: Preset = "paper") -> Method:
    """The method that a name means, at a preset's sizes."""
    return sized(name, preset)[0]


def with_options(
    method: Method, training: Training, options: Mapping[str, Any]
) -> tuple[Method, Training, set[str]]:
    """A method and its training with fields replaced by name wherever they occur, and the names that did."""
    used: set[str] = set()

    def replaced(value: Any) -> Any:
        kinds = {name: kind for name, kind in _options(value).items() if name in options}
        used.update(kinds)
        changes = {name: _of_kind(kind, name, options[name]) for name, kind in kinds.items()}
        parts = {name: replaced(part) for name, part in _parts(value).items()}
        return dataclasses.replace(value, **changes, **parts)

    return replaced(method), replaced(training), used


def _parts(value: Any) -> dict[str, Any]:
    """The fields of a value that have fields of their own."""
    fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return {name: part for name, part in fields.items() if dataclasses.is_dataclass(part)}


def _options(value: Any) -> dict[str, Any]:
    """The types of all other fields, but for the name and for parts that are absent."""
    hints, others = get_type_hints(type(value)), {*_parts(value), "name"}
    return {
        field.name: hints[field.name]
        for field in dataclasses.fields(value)
        if field.name not in others and not any(map(dataclasses.is_dataclass, get_args(hints[field.name])))
    }


def options_of(method: Method, training: Training) -> set[str]:
    """The names of all fields that `with_options` can replace."""

    def names(value: Any) -> set[str]:
        return _options(value).keys() | set().union(*map(names, _parts(value).values()))

    return names(method) | names(training)


def with_all_options(
    method: Method, training: Training, options: Mapping[str, Any]
) -> tuple[Method, Training]:
    """`with_options`, where an option that replaces nothing is an error."""
    changed, settings, used = with_options(method, training, options)
    if unused := sorted(set(options) - used):
        known = ", ".join(sorted(options_of(method, training)))
        raise InputError(f"{method.name} has no option {', '.join(unused)}; its options: {known}")
    return changed, settings


def _of_kind(kind: Any, name: str, value: Any) -> Any:
    """A value of an option's type, or an error; NumPy's numbers become Python's."""
    value = value.item() if isinstance(value, np.generic) else value
    if get_origin(kind) is Literal:
        known = get_args(kind)
        require(value in known, name, repr(value), " or ".join(known))
        return value
    kinds = get_args(kind) or (kind,)  # (float, NoneType) of float | None
    if value is None and type(None) in kinds:
        return value
    if any(get_origin(each) is tuple for each in kinds):
        whole = isinstance(value, tuple | list) and all(isinstance(each, int) for each in value)
        require(whole, name, repr(value), "a list of whole numbers")
        return tuple(value)
    number, wanted = (float | int, "a number") if float in kinds else (int, "a whole number")
    require(isinstance(value, number) and not isinstance(value, bool), name, repr(value), wanted)
    return value


def to_json(value: Any) -> Any:
    """A value as plain JSON, with its kind; the fields of a method's learner are written as the method's."""
    if isinstance(value, Method):
        learner = to_json(value.learner)
        kind = learner.pop("kind")
        others = {} if kind == "Cloning" else {"learner": kind}
        name, weighting = value.name, to_json(value.weighting)
        return {"kind": "Method", "name": name, **others, **learner, "weighting": weighting}
    if isinstance(value, tuple):
        return list(value)
    if not dataclasses.is_dataclass(value):
        return value
    return {"kind": type(value).__name__, **to_json_fields(value)}


def to_json_fields(value: Any) -> dict[str, Any]:
    """The fields of a frozen value as plain JSON."""
    # Fields that were added later are left out at their defaults, so that hashes of earlier runs stay.
    return {
        field.name: to_json(getattr(value, field.name))
        for field in dataclasses.fields(value)
        if not field.metadata.get("added") or getattr(value, field.name) != field.default
    }


def method_from_json(value: Any, place: str) -> Method:
    """The method that to_json wrote; an error names the place of what is wrong."""
    if not isinstance(value, dict):
        raise InputError(f"{place} is no object")
    fields = dict(value)
    kind, name = fields.pop("kind", "Method"), fields.pop("name", None)
    if kind != "Method":
        raise InputError(f"{place}.kind is {kind!r}; expected 'Method'")
    if missing := [field for field in ("name", "weighting") if value.get(field) is None]:
        raise InputError(f"{place} lacks {', '.join(missing)}")
    learner = fields.pop("learner", "Cloning")
    if not isinstance(learner, str) or learner not in LEARNERS:
        known = " or ".join(map(repr, LEARNERS))
        raise InputError(f"{place}.learner is {learner!r}; expected {known}")
    weighting = decode(StoredWeighting, fields.pop("weighting"), f"{place}.weighting")
    return Method(decode(str, name, f"{place}.name"), decode(LEARNERS[learner], fields, place), weighting)
