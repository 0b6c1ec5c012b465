"""Atari games of ale_py (extra `atari`); every copy has an emulator of its own, with its own thread."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl

import numpy as np
from numpy.typing import NDArray

from cwbc.core.simulation import Transition
from cwbc.system.errors import InputError, UnavailableError, need_extra, require, unknown

SIZE = 84  # pixels of a side
SCREEN = (210, 160)  # pixels of the screen: height and width
_MOST_FRAMES = 108_000  # of an episode: half an hour of play


@dataclasses.dataclass(frozen=True)
class Game:
    """A game and how it is played; the defaults are the paper's, and those of its datasets."""

    name: str  # such as Breakout
    frame_skip: int = 4  # frames that an action lasts
    no_ops: int = 30  # an episode begins after 1 to so many actions that do nothing
    sticky_actions: float = 0.0  # probability that the previous action is repeated
    fire_on_reset: bool = False  # whether an episode begins with the fire button
    all_actions: bool = False  # whether all 18 actions are taken, or those that the game uses

    def __post_init__(self) -> None:
        require(1 <= self.frame_skip <= 100, "frame_skip", self.frame_skip, "1 to 100")
        require(0 <= self.no_ops <= 1000, "no_ops", self.no_ops, "0 to 1000")
        require(0 <= self.sticky_actions < 1, "sticky_actions", self.sticky_actions, "at least 0, below 1")

    @classmethod
    def of(cls, environment: str) -> Game:
        """The game of an id such as ALE/Breakout-v5, or ALE/Breakout-v5?sticky_actions=0.25&no_ops=0."""
        path, _, query = environment.removeprefix("ALE/").partition("?")
        name, _, version = path.rpartition("-")
        if version != "v5":
            raise UnavailableError(f"{environment!r} is no environment; Atari's are like ALE/Breakout-v5")
        kinds: dict[str, type] = {field.name: type(field.default) for field in dataclasses.fields(cls)[1:]}
        options = {}
        for key, text in parse_qsl(query, keep_blank_values=True):
            if key not in kinds:
                raise unknown("option of a game", key, kinds)
            try:
                options[key] = text == "true" if kinds[key] is bool else kinds[key](text)
            except ValueError:
                wanted = "a number" if kinds[key] is float else "a whole number"
                raise InputError(f"{environment}: {key} must be {wanted}; got {text!r}") from None
            if kinds[key] is bool:
                require(text in ("true", "false"), f"{environment}: {key}", repr(text), "true or false")
        return cls(name, **options)

    @property
    def horizon(self) -> int:
        """H, the longest an episode can be."""
        return _MOST_FRAMES // self.frame_skip

    def emulator(self, drawn: bool = False) -> Any:
        """A new copy of the game; one that is drawn observes the screen in colour."""
        ale_py = need_extra("ale_py", "atari", "Atari games")
        from ale_py import roms

        games = {name.replace("_", ""): name for name in roms.get_all_rom_ids()}
        if self.name.lower() not in games:
            shown = ("".join(map(str.capitalize, name.split("_"))) for name in games.values())
            raise UnavailableError(str(unknown("game", self.name, shown)))
        return ale_py.ALEVectorInterface(
            roms.get_rom_path(games[self.name.lower()]),
            1,
            num_threads=1,
            frame_skip=self.frame_skip,
            stack_num=1,  # observations are stacked where they are read
            img_height=SCREEN[0] if drawn else SIZE,
            img_width=SCREEN[1] if drawn else SIZE,
            grayscale=not drawn,
            noop_max=self.no_ops,
            use_fire_reset=self.fire_on_reset,
            reward_clipping=False,
            max_episode_steps=_MOST_FRAMES,
            repeat_action_probability=self.sticky_actions,
            full_action_space=self.all_actions,
        )


class Atari:
    """Copies of one game; frames are gray, of 84 x 84 pixels, the brighter of the last two for each pixel."""

    discrete, observation_size = True, SIZE * SIZE
    image_shape: tuple[int, ...] | None = (SIZE, SIZE, 1)
    action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = None

    def __init__(self, environment: str, count: int, drawn: bool = False) -> None:
        game = Game.of(environment)
        # One emulator a copy: in an emulator of many, those whose episodes are over would play on.
        self._copies = [game.emulator() for _ in range(count)]
        self.horizon, self.action_size = game.horizon, len(self._copies[0].get_action_set())
        self._lives = np.zeros(count, np.int64)
        # An emulator observes one size: a second one, with the same seed and actions, is the screen.
        self._screens = [game.emulator(drawn=True) for _ in range(count if drawn else 0)]
        self._pictures = np.zeros((len(self._screens), *SCREEN, 3), np.uint8)

    def reset(self, episodes: NDArray[np.integer[Any]], seeds: Sequence[int]) -> NDArray[np.uint8]:
        """Reset the given episodes, each with its own seed; returns their first frames."""
        # Seeds are of 31 bits, and a negative one would be random.
        valid = [int(seed) & 0x7FFFFFFF for seed in seeds]
        begun = [self._copies[row].reset([0], [seed]) for row, seed in zip(episodes, valid, strict=True)]
        for row, seed in zip(episodes if self._screens else (), valid, strict=False):
            self._pictures[row] = self._screens[row].reset([0], [seed])[0][0, 0]
        self._lives[episodes] = [facts["lives"][0] for _, facts in begun]
        return np.concatenate([frames for frames, _ in begun]).reshape(len(episodes), -1)

    def step(self, episodes: NDArray[np.integer[Any]], actions: NDArray[Any]) -> Transition:
        """Advance the given episodes by one step, all at the same time."""
        for episode, action in zip(episodes, actions.tolist(), strict=True):
            self._copies[episode].send([action], [1.0])
        *outcomes, facts = zip(*(self._copies[episode].recv() for episode in episodes), strict=True)
        frames, rewards, terminated, truncated = (np.concatenate(part) for part in outcomes)
        lives = np.array([each["lives"][0] for each in facts])
        lost, self._lives[episodes] = lives < self._lives[episodes], lives
        frames = frames.reshape(len(episodes), -1)
        for episode, action in zip(episodes if self._screens else (), actions.tolist(), strict=False):
            self._screens[episode].send([action], [1.0])
            self._pictures[episode] = self._screens[episode].recv()[0][0, 0]
        return Transition(frames, rewards.astype(float), terminated, truncated, lost)

    def picture(self, episode: int) -> NDArray[np.uint8]:
        """The screen. [height, width, 3]"""
        return self._pictures[episode].copy()

    def close(self) -> None:
        self._copies.clear()
        self._screens.clear()
