"""The role of each column of a table: given by the user, or found by name."""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from cwbc.data.formats.step_table import Kind, StepColumn
from cwbc.data.issues import Issue


@dataclasses.dataclass(frozen=True)
class ColumnOptions:
    """Which column of a table has which role; a role that is not given is found by name."""

    episode: str | None = None
    """Names the episode of each row (found: episode, episode_id, trajectory, ...)."""
    step: str | None = None
    """Orders the rows of an episode (found: step, timestep, t; without one, they are in order)."""
    observations: str | None = None
    """The observation, comma-separated; * is any letters (found: observation, observation_*, obs, state)."""
    actions: str | None = None
    """The action, comma-separated (found: action or action_*); one column of integers is discrete."""
    reward: str | None = None
    """The reward of the step (found: reward)."""
    terminated: str | None = None
    """True where the environment terminated the episode (found: terminated, terminal)."""
    truncated: str | None = None
    """True where a time limit truncated the episode (found: truncated, timeout)."""
    done: str | None = None
    """True on each last step, whatever the reason (found: done)."""
    action_kind: Literal["continuous", "discrete"] | None = None
    """Whether actions are continuous or discrete (default: by their type)."""

    def names(self, role: str) -> list[str] | None:
        """The column names or patterns given for a role."""
        value: str | None = getattr(self, role)
        if value is None or not _ROLES[role].several:
            return None if value is None else [value]
        return [name.strip() for name in value.split(",")]


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
    several: bool = False  # NAME0, NAME1, ... or NAME_* are one column of several
    required: bool = False
    encoding: str = ""  # how text becomes what is expected


_NUMBERS: tuple[Kind, ...] = ("float", "integer", "boolean")
_VECTOR, _FLAG = "a number, or a list of numbers, per row", "true or false per row"
_ROLES = {
    "observations": _Role(
        ("observation", "observations", "obs", "state", "states"),
        (*_NUMBERS, "image"),
        _VECTOR,
        several=True,
        required=True,
        encoding="; encode text as numbers, such as a column of 0 and 1 for each of its values",
    ),
    "actions": _Role(
        ("action", "actions", "act", "acts"),
        _NUMBERS,
        _VECTOR,
        several=True,
        required=True,
        encoding="; number the discrete actions 0, 1, ...",
    ),
    "reward": _Role(
        ("reward", "rewards", "rew", "next.reward"),
        _NUMBERS,
        "one number per row",
        required=True,
        encoding="; encode text as numbers",
    ),
    "episode": _Role(
        (
            "episode", "episodes", "episode_id", "episode_index", "trajectory", "trajectory_id", "traj_id",
            "ep_id", "ep",
        ),
        ("integer", "text", "float"),  # float: integers as tools write them beside missing values
        "an integer or a name per row",
    ),
    "step": _Role(
        ("step", "steps", "timestep", "time_step", "frame_index", "t", "timestamp", "time"),
        ("integer", "float", "time"),
        "an integer per row",
    ),
    "terminated": _Role(
        ("terminated", "terminal", "terminals", "termination", "terminations"), (*_NUMBERS, "text"), _FLAG
    ),
    "truncated": _Role(
        ("truncated", "timeout", "timeouts", "truncation", "truncations"), (*_NUMBERS, "text"), _FLAG
    ),
    "done": _Role(("done", "dones", "next.done"), (*_NUMBERS, "text"), _FLAG),
}  # fmt: skip
_MEMBER = re.compile(r"(\d+)|[_.](.*)", re.DOTALL)  # what follows the name of a role in those of its columns
_NUMBER = re.compile(r"\d{1,9}")
TIMES = ("timestamp", "time")


def assign(columns: Mapping[str, StepColumn], options: ColumnOptions) -> tuple[Roles | None, list[Issue]]:
    """The role of each column, or the errors that prevent it."""
    issues: list[Issue] = []
    chosen = {role: _columns_of(role, columns, options, issues) for role in _ROLES}
    for name, role in _ROLES.items():
        if role.required and not chosen[name] and options.names(name) is None:
            issues.append(_missing(name, columns))
    for name, members in chosen.items():
        issues += [issue for column in members if (issue := _wrong_type(name, column))]
    if len(chosen["observations"]) > 1 and any(c.kind == "image" for c in chosen["observations"]):
        mixed = ", ".join(f"{c.name} ({c.contents})" for c in chosen["observations"])
        issues.append(
            Issue("error", f"observations mix images with other columns: {mixed}", "give one image")
        )
    discrete = _discrete(chosen["actions"], options, issues)
    if issues:
        return None, issues
    used = {column.name for members in chosen.values() for column in members}
    ignored = tuple(name for name in columns if name not in used)
    roles: dict[str, Any] = {
        name: members if _ROLES[name].several else next(iter(members), None)
        for name, members in chosen.items()
    }
    return Roles(**roles, ignored=ignored, discrete=discrete), []


def _columns_of(
    role: str, columns: Mapping[str, StepColumn], options: ColumnOptions, issues: list[Issue]
) -> tuple[StepColumn, ...]:
    patterns = options.names(role)
    if patterns is None:
        return tuple(columns[name] for name in _by_name(role, columns))
    names: list[str] = []
    for pattern in patterns:
        # A name may contain the signs of a pattern, such as [0]: an exact match comes first.
        matches = [pattern] if pattern in columns else fnmatch.filter(_free(role, columns, options), pattern)
        if not matches:
            near = difflib.get_close_matches(pattern, columns, n=3)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {listed(columns)}"
            issues.append(Issue("error", f"there is no column {pattern!r} (--{role})", hint))
        names += _natural(matches)
    names = list(dict.fromkeys(names))
    if len(names) > 1 and not _ROLES[role].several:
        issues.append(Issue("error", f"--{role} names {len(names)} columns", "it takes one"))
    return tuple(columns[name] for name in names)


def _free(role: str, columns: Mapping[str, StepColumn], options: ColumnOptions) -> list[str]:
    """The columns without another role, which a pattern may match."""
    others = [other for other in _ROLES if other != role]
    taken = {name for other in others for name in (options.names(other) or ())}
    taken |= {name for other in others for name in _by_name(other, columns)}
    return [name for name in columns if name not in taken]


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
    found = {
        name: _MEMBER.fullmatch(key, len(candidate))
        for key, name in plain.items()
        if key.startswith(candidate)
    }
    rests = {name: rest[1] or rest[2] for name, rest in found.items() if rest}
    # Beside consecutively numbered columns, others are something else: action_0, action_1, action_prob.
    numbers = sorted(int(rest) for rest in rests.values() if _NUMBER.fullmatch(rest))
    consecutive = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    return {name for name, rest in rests.items() if not consecutive or _NUMBER.fullmatch(rest)}


def _natural(names: Sequence[str]) -> list[str]:
    """Numbered names by their numbers (2 before 10); others in the given order."""
    if not all(re.search(r"\d", name) for name in names):
        return list(names)

    def key(name: str) -> list[tuple[int, str]]:  # not as integers, whose digits Python limits
        return [(len(digits), digits) for digits in (n.lstrip("0") for n in re.findall(r"\d+", name))]

    return sorted(names, key=key)


def _discrete(actions: tuple[StepColumn, ...], options: ColumnOptions, issues: list[Issue]) -> bool:
    """Whether actions are discrete: one column of integers is, unless an option says otherwise."""
    if not actions or options.action_kind == "continuous":
        return False
    suitable: tuple[Kind, ...] = ("integer", "boolean") if options.action_kind is None else _NUMBERS
    integers = all(column.kind in suitable for column in actions)
    one = len(actions) == 1 and actions[0].width in (None, 1)
    if integers and not one:
        remedy = "discrete actions are one integer; --action-kind continuous reads them as continuous"
        issues.append(Issue("error", "actions are several integers per step", remedy))
    return integers and one


def _missing(role: str, columns: Iterable[str]) -> Issue:
    found = _ROLES[role]
    names = ", ".join(found.names[:4]) + (f" or {found.names[0]}_*" if found.several else "")
    what, example = (role, "COLUMN,COLUMN,...") if found.several else (f"the {role}", "COLUMN")
    return Issue(
        "error",
        f"no column for {what} (looked for {names}; it has {listed(columns)})",
        f"rename one, or name it to `cwbc data import` (and `check`) with --{role} {example}",
    )


def _wrong_type(name: str, column: StepColumn) -> Issue | None:
    role = _ROLES[name]
    if column.kind in role.kinds and (column.width in (None, 1) or (role.several and column.width)):
        return None
    encoding = role.encoding if column.kind == "text" else ""
    remedy = column.remedy or f"expected {role.expected}{encoding}"
    return Issue("error", f"{column.name} holds {column.contents}", remedy, column.name)


def listed(columns: Iterable[str], limit: int = 20) -> str:
    """The names of columns, and a remark where all of them are numbers."""
    names = list(columns)
    rest = f" and {len(names) - limit} more" if len(names) > limit else ""
    missing = ": numbers, so the header seems to be missing" * all(map(_is_number, names))
    return ", ".join(names[:limit]) + rest + missing if names else "no columns"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
