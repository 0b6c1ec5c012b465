"""What users type after `cwbc behaviours`; the work is in behaviour_commands.py."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Union

from tyro.conf import Positional, arg

from cwbc.option_types import Device, Directory, Flag, Flat, Real, Whole

Task = Annotated[Positional[str], arg(metavar="TASK", help_behavior_hint="")]
Place = Annotated[Positional[str | None], arg(metavar="[TASK|DIR]", help_behavior_hint="")]


@dataclasses.dataclass(frozen=True)
class LearnerOptions:
    """Each replaces one value of the learner, soft actor-critic."""

    copies: Whole = None
    """Copies of the environment that each seed steps together (default: 16)."""
    updates: Whole = None
    """Gradient steps after each step of all copies (default: 16)."""
    batch: Whole = None
    """Transitions in a gradient step (default: 512)."""
    capacity: Whole = None
    """Transitions that the replay holds (default: 1,000,000)."""
    warmup: Whole = None
    """Steps with uniform actions before the first update (default: 10,000, at most a tenth of --steps)."""
    actor_width: Whole = None
    """Hidden dimension of the actor, which is what is kept (default: 64)."""
    critic_width: Whole = None
    """Hidden dimension of the two critics (default: 256)."""
    actor_rate: Real = None
    """Adam's learning rate for the actor (default: 3e-4)."""
    critic_rate: Real = None
    """Adam's learning rate for critics and temperature (default: 1e-3)."""
    discount: Real = None
    """gamma, the discount (default: 0.99)."""
    target_rate: Real = None
    """tau, how far the target critics follow at each update (default: 0.005)."""


@dataclasses.dataclass(frozen=True)
class Train:
    """Train behaviours online with soft actor-critic, and keep snapshots from untrained to expert."""

    task: Task
    """Gymnasium id of an environment with continuous actions, such as HalfCheetah-v4 or Pendulum-v1."""
    seeds: Annotated[int, arg(metavar="N", help_behavior_hint="")] = 1
    """Number of learners, trained side by side (default: 1)."""
    steps: Annotated[int, arg(metavar="N", help_behavior_hint="")] = 1_000_000
    """Steps of the environment for each learner (default: 1,000,000)."""
    episodes: Annotated[int, arg(metavar="N", help_behavior_hint="")] = 10
    """Episodes that measure a snapshot, with and without noise in its actions (default: 10)."""
    out: Directory = None
    """Directory of the behaviours (default: behaviours/TASK)."""
    device: Device = None
    """Where to compute (default: the GPU when there is one)."""
    overwrite: Flag = False
    """Begin anew where the directory holds behaviours that were trained with other settings."""
    learner: Annotated[LearnerOptions, Flat] = LearnerOptions()


@dataclasses.dataclass(frozen=True)
class Show:
    """Show snapshots and what each of them earns: those that come with cwbc, or your own."""

    place: Place = None
    """hopper, walker2d, halfcheetah, or the directory of a training (default: list the three)."""


Action = Union[Train, Show]  # noqa: UP007  # as in cli_data


@dataclasses.dataclass(frozen=True)
class Behaviours:
    """Train the behaviours that datasets are made of, and look at them: train, show."""

    action: Annotated[Action, Flat]
