"""Tables with one row per step, and the role of each column: given by the user, or found by name."""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from cwbc.data.issues import DataError, Issue, Origin

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = Literal["float", "integer", "boolean", "text", "time", "image", "other"]
# Columns side by side [row, width], or images [row, ...], from their names, the type to convert to (None:
# their own) and a function that is called with the number of values read.
Fetch = Callable[[Sequence[str], type | None, Callable[[int], None]], "NDArray[Any]"]


@dataclasses.dataclass(frozen=True)
class StepColumn:
    """One column of a table."""

    name: str
    kind: Kind
    width: int | None = None  # values per row of a column of lists or images; None: one value per row
    type_name: str = ""  # what the format calls the type
    remedy: str = ""  # what would be right, where that depends on more than the role

    @property
    def contents(self) -> str:
        """The values of the column in words."""
        values = self.type_name or self.kind
        lists = self.width is not None and self.kind != "image"
        return f"lists of {self.width} values ({values})" if lists else values


@dataclasses.dataclass(frozen=True, eq=False)
class StepTable:
    """A table with one row per step, whatever its format."""

    origin: Origin
    rows: int
    columns: dict[str, StepColumn]
    fetch: Fetch

    def values(self, column: StepColumn) -> NDArray[Any]:
        """A column with one value per row. [row]"""
        return self.fetch([column.name], None, lambda count: None).reshape(-1)

    def invalid(
        self, column: StepColumn, rows: NDArray[Any], what: str, remedy: str, values: Any = None
    ) -> DataError:
        """An error about some rows of one column."""
        name, origin = column.name, self.origin
        issue = origin.issue("error", f"{name} {what}", remedy, None, rows, name, values)
        return DataError(origin.source, [issue])


@dataclasses.dataclass(frozen=True)
class ColumnOptions:
    """Which column of a table has which role; a role that is not given is found by name.

    Args:
        episode: names the episode of each row (found: episode, episode_id, trajectory, ...).
        step: orders the rows of an episode (found: step, timestep, t; without one, they are in order).
        observations: the observation, comma-separated; * is any letters (found: observation,
            observation_*, obs, state).
        actions: the action, comma-separated (found: action or action_*); one column of integers is discrete.
        reward: the reward of the step (found: reward).
        terminated: true where the environment terminated the episode (found: terminated, terminal).
        truncated: true where a time limit truncated the episode (found: truncated, timeout).
        done: true on each last step, whatever the reason (found: done).
        action_kind: whether actions are continuous or discrete (default: by their type).
    """

    episode: str | None = None
    step: str | None = None
    observations: str | None = None
    actions: str | None = None
    reward: str | None = None
    terminated: str | None = None
    truncated: str | None = None
    done: str | None = None
    action_kind: Literal["continuous", "discrete"] | None = None

    def names(self, role: str) -> list[str] | None:
        """The column names or patterns given for a role."""
        value: str | None = getattr(self, role)
        if value is None:
            return None
        return [name.strip() for name in value.split(",")] if _ROLES[role].several else [value]


BY_NAME = ColumnOptions()


@dataclasses.dataclass(frozen=True)
class Roles:
    """The columns of one table by their roles."""

    observations: tuple[StepColumn, ...]
    actions: tuple[StepColumn, ...]
    reward: StepColumn
    episode: StepColumn | None
    step: StepColumn | None
    terminated: StepColumn | None
    truncated: StepColumn | None
    done: StepColumn | None
    ignored: tuple[str, ...]
    discrete: bool


@dataclasses.dataclass(frozen=True)
class _Role:
    """How the columns of a role are found, and what they may contain."""

    names: tuple[str, ...]  # common ones, likeliest first
    kinds: tuple[Kind, ...]
    expected: str
    encoding: str = ""  # how text becomes what is expected
    several: bool = False  # NAME0, NAME1, ... or NAME_* are one column of several
    required: bool = False


NUMBERS: tuple[Kind, ...] = ("float", "integer", "boolean")
_VECTOR, _FLAG = "a number, or a list of numbers, per row", "true or false per row"
_ROLES = {
    "observations": _Role(
        ("observation", "observations", "obs", "state", "states"), (*NUMBERS, "image"), _VECTOR,
        "; encode text as numbers, such as a column of 0 and 1 for each of its values", True, True,
    ),
    "actions": _Role(
        ("action", "actions", "act", "acts"), NUMBERS, _VECTOR,
        "; number the discrete actions 0, 1, ...", True, True,
    ),
    "reward": _Role(
        ("reward", "rewards", "rew", "next.reward"), NUMBERS, "one number per row",
        "; encode text as numbers", required=True,
    ),
    "episode": _Role(
        ("episode", "episodes", "episode_id", "episode_index", "trajectory", "trajectory_id", "traj_id",
         "ep_id", "ep"),
        ("integer", "text", "float"),  # float: integers as tools write them beside missing values
        "an integer or a name per row",
    ),
    "step": _Role(
        ("step", "steps", "timestep", "time_step", "frame_index", "t", "timestamp", "time"),
        ("integer", "float", "time"), "an integer per row",
    ),
    "terminated": _Role(
        ("terminated", "terminal", "terminals", "termination", "terminations"), (*NUMBERS, "text"), _FLAG
    ),
    "truncated": _Role(
        ("truncated", "timeout", "timeouts", "truncation", "truncations"), (*NUMBERS, "text"), _FLAG
    ),
    "done": _Role(("done", "dones", "next.done"), (*NUMBERS, "text"), _FLAG),
}  # fmt: skip
_MEMBER = re.compile(r"(\d+)|[_.](.*)", re.DOTALL)  # what follows the name of a role in those of its columns
_NUMBER = re.compile(r"\d{1,9}")
_DECIMAL = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*", re.IGNORECASE)
TIMES = ("timestamp", "time")
_error = functools.partial(Issue, "error")


def assign(columns: Mapping[str, StepColumn], options: ColumnOptions) -> tuple[Roles | None, list[Issue]]:
    """The role of each column, or the errors that prevent it."""
    wrong: list[Issue] = []
    chosen = {role: _columns_of(role, columns, options, wrong) for role in _ROLES}
    for name, role in _ROLES.items():
        if role.required and not chosen[name] and options.names(name) is None:
            looked = ", ".join(role.names[:4]) + (f" or {role.names[0]}_*" if role.several else "")
            whose, example = (name, "COLUMN,COLUMN,...") if role.several else (f"the {name}", "COLUMN")
            what = f"no column for {whose} (looked for {looked}; it has {listed(columns)})"
            remedy = f"rename one, or name it to `cwbc data import` (and `check`) with --{name} {example}"
            wrong.append(_error(what, remedy))
    for name, column in ((name, column) for name, members in chosen.items() for column in members):
        role = _ROLES[name]
        fits = column.width in (None, 1) or (role.several and column.width)
        if column.kind not in role.kinds or not fits:
            encoding = role.encoding if column.kind == "text" else ""
            remedy = column.remedy or f"expected {role.expected}{encoding}"
            wrong.append(_error(f"{column.name} holds {column.contents}", remedy, column.name))
    observations, actions = chosen["observations"], chosen["actions"]
    if len(observations) > 1 and any(column.kind == "image" for column in observations):
        mixed = ", ".join(f"{column.name} ({column.contents})" for column in observations)
        wrong.append(_error(f"observations mix images with other columns: {mixed}", "give one image"))
    # One column of integers is discrete, unless an option says otherwise.
    suitable: tuple[Kind, ...] = ("integer", "boolean") if options.action_kind is None else NUMBERS
    discrete = options.action_kind != "continuous" and all(column.kind in suitable for column in actions)
    if discrete and actions and (len(actions) > 1 or actions[0].width not in (None, 1)):
        remedy = "discrete actions are one integer; --action-kind continuous reads them as continuous"
        wrong.append(_error("actions are several integers per step", remedy))
    if wrong:
        return None, wrong
    used = {column.name for members in chosen.values() for column in members}
    ignored = tuple(name for name in columns if name not in used)
    roles: dict[str, Any] = {
        name: members if _ROLES[name].several else next(iter(members), None)
        for name, members in chosen.items()
    }
    return Roles(**roles, ignored=ignored, discrete=discrete), []


def _columns_of(
    role: str, columns: Mapping[str, StepColumn], options: ColumnOptions, wrong: list[Issue]
) -> tuple[StepColumn, ...]:
    patterns = options.names(role)
    if patterns is None:
        return tuple(columns[name] for name in _by_name(role, columns))
    # A pattern matches no column that has another role.
    others = [other for other in _ROLES if other != role]
    taken = {name for other in others for name in (*(options.names(other) or ()), *_by_name(other, columns))}
    free = [name for name in columns if name not in taken]
    names: list[str] = []
    for pattern in patterns:
        # A name may contain the signs of a pattern, such as [0]: an exact match comes first.
        matches = [pattern] if pattern in columns else fnmatch.filter(free, pattern)
        if not matches:
            near = difflib.get_close_matches(pattern, columns, n=3)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {listed(columns)}"
            wrong.append(_error(f"there is no column {pattern!r} (--{role})", hint))
        names += _natural(matches)
    names = list(dict.fromkeys(names))
    if len(names) > 1 and not _ROLES[role].several:
        wrong.append(_error(f"--{role} names {len(names)} columns", "it takes one"))
    return tuple(columns[name] for name in names)


def _by_name(role: str, columns: Mapping[str, StepColumn]) -> list[str]:
    plain = {name.strip().lower(): name for name in reversed(list(columns))}
    for candidate in _ROLES[role].names:
        if candidate in plain:
            if candidate in TIMES and columns[plain[candidate]].kind == "text":
                continue  # a time as text orders nothing, and need not be what is meant
            return [plain[candidate]]
        if _ROLES[role].several and (members := _members(candidate, plain)):
            return _natural([name for name in columns if name in members])
    return []


def _members(candidate: str, plain: Mapping[str, str]) -> set[str]:
    """The columns that are numbered or otherwise named after a candidate."""
    named = {name: key for key, name in plain.items() if key.startswith(candidate)}
    found = {name: _MEMBER.fullmatch(key, len(candidate)) for name, key in named.items()}
    rests = {name: rest[1] or rest[2] for name, rest in found.items() if rest}
    # Beside consecutively numbered columns, others are something else: action_0, action_1, action_prob.
    numbers = sorted(int(rest) for rest in rests.values() if _NUMBER.fullmatch(rest))
    consecutive = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return {name for name, rest in rests.items() if not consecutive or _NUMBER.fullmatch(rest)}


def _natural(names: Sequence[str]) -> list[str]:
    """Numbered names by their numbers (2 before 10); others in the given order."""
    if not all(re.search(r"\d", name) for name in names):
        return list(names)

    # Not as integers, whose digits Python limits.
    digits = {name: [number.lstrip("0") for number in re.findall(r"\d+", name)] for name in names}
    return sorted(names, key=lambda name: [(len(number), number) for number in digits[name]])


def listed(columns: Iterable[str], limit: int = 20) -> str:
    """The names of columns, and a remark where all of them are numbers."""
    names = list(columns)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    missing = ": numbers, so the header seems to be missing" * all(_DECIMAL.fullmatch(name) for name in names)
    return ", ".join(names[:limit]) + rest + missing if names else "no columns"
