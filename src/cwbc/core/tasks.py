"""Published facts about environments: reference returns, the targets of the sweep, and scales."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray


def rounded(target: float, scale: float) -> float:
    """A target return to six decimals, or more where the returns are small."""
    return round(target, max(6, 6 - math.floor(math.log10(scale)))) if scale > 0 else target


@dataclasses.dataclass(frozen=True)
class Task:
    """The reference returns of one family of environments; without published ones, those of the dataset."""

    expert_return: float  # "1x expert" of the sweep; unpublished: the dataset's best
    random_score: float  # the return that scores 0; unpublished: the dataset's minimum
    expert_score: float  # the return that scores 100, of a gamer in games; unpublished: the dataset's best
    far_return: float  # the far end of the sweep: "2x expert"; unpublished: the dataset's best + range
    near_return: float  # the near end of the sweep
    noise: float | None = None  # sigma of the conservative regularizer, where published
    return_scale: float | None = None  # Decision Transformer's divisor, where published
    published: bool = True  # whether an expert return is; False: the targets come from the dataset itself
    is_game: bool = False  # whether scores are those of Atari: 0 is a random policy, 100 a gamer

    def normalize(self, returns: NDArray[np.float64]) -> NDArray[np.float64]:
        """The normalized score, as D4RL defines it: 0 is a random policy, 100 the expert."""
        return 100 * (returns - self.random_score) / (self.expert_score - self.random_score)

    def targets(self, best: float) -> tuple[float, ...]:
        """The paper's sweep (20 evenly spaced targets and the expert return) and the dataset's best."""
        sweep = np.linspace(self.near_return, self.far_return, 20).tolist()
        if self.published:
            return tuple(sorted({round(float(t), 6) for t in (*sweep, self.expert_return, best)}))
        # Only those between the named ones are rounded: the unit may be small.
        inner = {rounded(target, self.far_return - self.near_return) for target in sweep[1:-1]}
        return tuple(sorted({*inner, self.near_return, best, self.far_return}))

    def to_json(self) -> dict[str, Any]:
        """The reference returns, by names that fit the task."""
        if self.published:
            return {name: value for name, value in vars(self).items() if name != "is_game"}
        return {
            "published": False,
            "return_of_score_0": self.random_score,
            "return_of_score_100": self.expert_score,
            "near_return": self.near_return,
            "far_return": self.far_return,
        }


@dataclasses.dataclass(frozen=True)
class Landmark:
    """A target return with a name."""

    key: str  # in summary.json
    label: str
    phrase: str  # completes "conditioned on ..."
    target: float


def landmarks(task: Task, best: float) -> tuple[Landmark, ...]:
    """The named targets of a task, the farthest last; without published references there is no expert."""
    data_best = Landmark("at_dataset_best", "dataset's best", "the dataset's best return", best)
    if not task.published:
        phrase = "the dataset's best return plus its range"
        return data_best, Landmark("at_best_plus_range", "best + range", phrase, task.far_return)
    return (
        data_best,
        Landmark("at_expert", "1× expert", "the expert return", task.expert_return),
        Landmark("at_twice_expert", "2× expert", "twice the expert return", task.far_return),
    )


def _locomotion(expert_return: float, random_score: float, expert_score: float) -> Task:
    return Task(
        expert_return,
        random_score,
        expert_score,
        far_return=2 * expert_return,
        near_return=1000.0,
        noise=1000.0,
        return_scale=1000.0,
    )


def _maze(random_score: float, expert_score: float) -> Task:
    return Task(
        expert_score, random_score, expert_score, far_return=2 * expert_score, near_return=random_score
    )


# The scores are D4RL's reference returns; in round numbers, these are the robots' expert returns as well, for
# the paper does not print its own. A key is a family of environments, or the name of one where D4RL
# distinguishes them.
TASKS = {
    "hopper": _locomotion(3200.0, -20.272305, 3234.3),
    "walker2d": _locomotion(4600.0, 1.629008, 4592.3),
    "halfcheetah": _locomotion(12000.0, -280.178953, 12135.0),
    "antmaze": _maze(0.0, 1.0),
    "pointmaze": _maze(0.0, 1.0),  # of cwbc's own data; rewarded once, as antmaze
    "maze2d-umaze-v1": _maze(23.85, 161.86),
    "maze2d-medium-v1": _maze(13.13, 277.39),
    "maze2d-large-v1": _maze(6.7, 273.99),
    "maze2d-umaze-dense-v1": _maze(68.537689, 193.66285642381482),
    "maze2d-medium-dense-v1": _maze(44.264742, 297.4552547777125),
    "maze2d-large-dense-v1": _maze(30.569041, 303.4857382709002),
}

# The returns of a random policy and of a gamer, with which the paper normalizes scores; in the unit of the
# game, while the returns of a dataset may be sums of clipped rewards.
GAMES = {
    "breakout": (2.0, 30.0),
    "qbert": (164.0, 13455.0),
    "pong": (-21.0, 15.0),
    "seaquest": (68.0, 42055.0),
}


def task_for(environment: str | None, lowest: float, best: float) -> Task:
    """The published task of an environment id, or one with the dataset's own returns as references."""
    folder, _, last = (environment or "").lower().rpartition("/")
    family = last.split("-")[0]
    if published := TASKS.get(last) or TASKS.get(family):
        return published
    spread = (best - lowest) or 1.0
    game = GAMES.get(family) if folder == "ale" else None
    random_score, expert_score = game or (best - spread, best)
    return Task(
        expert_return=best,
        random_score=random_score,
        expert_score=expert_score,
        far_return=best + spread,
        near_return=best - spread,
        published=False,
        is_game=game is not None,
    )
