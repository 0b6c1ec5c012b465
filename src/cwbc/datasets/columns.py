"""Which column of a table means what: told by the user, or found by name."""

from __future__ import annotations

import dataclasses
import difflib
import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from cwbc.datasets.source import Column, Kind
from cwbc.findings import Finding


@dataclasses.dataclass(frozen=True)
class ColumnOptions:
    """The columns that the user names; None is found by name, and what is not there is done without."""

    episode: str | None = None
    step: str | None = None
    observations: tuple[str, ...] | None = None
    actions: tuple[str, ...] | None = None
    reward: str | None = None
    terminated: str | None = None
    truncated: str | None = None
    done: str | None = None
    action_kind: Literal["continuous", "discrete"] | None = None


BY_NAME = ColumnOptions()


@dataclasses.dataclass(frozen=True)
class Roles:
    """The columns of one table by what they mean."""

    observations: tuple[Column, ...]
    actions: tuple[Column, ...]
    reward: Column
    episode: Column | None
    step: Column | None
    terminated: Column | None
    truncated: Column | None
    done: Column | None
    ignored: tuple[str, ...]
    discrete: bool


# Common names of each role, likeliest first; followed by a number, or by an underscore and anything, it is
# one column of several.
_NAMES = {
    "observations": ("observation", "observations", "obs", "state", "states"),
    "actions": ("action", "actions", "act", "acts"),
    "reward": ("reward", "rewards", "rew", "next.reward"),
    "episode": (
        "episode", "episodes", "episode_id", "episode_index", "trajectory", "trajectory_id", "traj_id",
        "ep_id", "ep",
    ),
    "step": ("step", "steps", "timestep", "time_step", "frame_index", "t", "timestamp", "time"),
    "terminated": ("terminated", "terminal", "terminals", "termination", "terminations"),
    "truncated": ("truncated", "timeout", "timeouts", "truncation", "truncations"),
    "done": ("done", "dones", "next.done"),
}  # fmt: skip
_MEMBER = re.compile(r"(\d+)|[_.](.*)", re.DOTALL)  # what follows the name of a role in those of its columns
_NUMBER = re.compile(r"\d{1,9}")
TIMES = ("timestamp", "time")
_EXAMPLES = {"observations": "COLUMN,COLUMN,...", "actions": "COLUMN,COLUMN,...", "reward": "COLUMN"}
_WANTED = {"episode": "a whole number or a name", "step": "a whole number", "reward": "one number"}
_ENCODINGS = {  # how text becomes what is wanted
    "actions": "; number the choices 0, 1, ...",
    "observations": "; encode text as numbers, such as a column of 0 and 1 for each of its values",
    "reward": "; encode text as numbers",
}
_SEVERAL = ("observations", "actions")
_NUMBERS: tuple[Kind, ...] = ("real", "whole", "truth")
_KINDS: dict[str, tuple[Kind, ...]] = {
    "observations": _NUMBERS,
    "actions": _NUMBERS,
    "reward": _NUMBERS,
    "episode": ("whole", "text", "real"),  # real: whole numbers as tools write them beside missing ones
    "step": ("whole", "real", "time"),
    "terminated": (*_NUMBERS, "text"),  # of true and false
    "truncated": (*_NUMBERS, "text"),
    "done": (*_NUMBERS, "text"),
}


def assign(columns: Mapping[str, Column], options: ColumnOptions) -> tuple[Roles | None, list[Finding]]:
    """The role of each column, or what keeps them from having one."""
    found: list[Finding] = []
    chosen = {role: _columns_of(role, columns, options, found) for role in _NAMES}
    for role in ("observations", "actions", "reward"):
        if not chosen[role] and _asked(options, role) is None:
            found.append(_missing(role, columns))
    for role, members in chosen.items():
        for column in members:
            fits = column.width in (None, 1) or (role in _SEVERAL and column.width != 0)
            if column.kind not in _KINDS[role] or not fits:
                found.append(_wrong_type(role, column))
    discrete = _discrete(chosen["actions"], options, found)
    if found:
        return None, found
    used = {column.name for members in chosen.values() for column in members}
    single = {role: members[0] if members else None for role, members in chosen.items()}
    reward = single["reward"]
    assert reward is not None
    roles = Roles(
        observations=chosen["observations"],
        actions=chosen["actions"],
        reward=reward,
        episode=single["episode"],
        step=single["step"],
        terminated=single["terminated"],
        truncated=single["truncated"],
        done=single["done"],
        ignored=tuple(name for name in columns if name not in used),
        discrete=discrete,
    )
    return roles, []


def _asked(options: ColumnOptions, role: str) -> tuple[str, ...] | None:
    value = getattr(options, role)
    return (value,) if isinstance(value, str) else value


def _columns_of(
    role: str, columns: Mapping[str, Column], options: ColumnOptions, found: list[Finding]
) -> tuple[Column, ...]:
    asked = _asked(options, role)
    if asked is None:
        return tuple(columns[name] for name in _by_name(role, columns))
    names: list[str] = []
    for pattern in asked:
        # A name may hold the signs of a pattern, such as [0]: itself comes first.
        matches = [pattern] if pattern in columns else fnmatch.filter(_free(role, columns, options), pattern)
        if not matches:
            near = difflib.get_close_matches(pattern, columns, n=3)
            hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {listed(columns)}"
            found.append(Finding("error", f"there is no column {pattern!r} ({_option(role)})", hint))
        names += _natural(matches)
    names = list(dict.fromkeys(names))
    if len(names) > 1 and role not in _SEVERAL:
        found.append(Finding("error", f"{_option(role)} names {len(names)} columns", "it takes one"))
    return tuple(columns[name] for name in names)


def _free(role: str, columns: Mapping[str, Column], options: ColumnOptions) -> list[str]:
    """The columns that mean nothing else, which a pattern may take."""
    taken = {name for other in _NAMES if other != role for name in _asked(options, other) or ()}
    taken |= {name for other in _NAMES if other != role for name in _by_name(other, columns)}
    return [name for name in columns if name not in taken]


def _by_name(role: str, columns: Mapping[str, Column]) -> list[str]:
    plain = {name.strip().lower(): name for name in reversed(list(columns))}
    for candidate in _NAMES[role]:
        if candidate in plain:
            if candidate in TIMES and columns[plain[candidate]].kind == "text":
                continue  # a time in words orders nothing, and need not be what is meant
            return [plain[candidate]]
        if role in _SEVERAL:
            found = {
                name: _MEMBER.fullmatch(key, len(candidate))
                for key, name in plain.items()
                if key.startswith(candidate)
            }
            members = {name: rest[1] or rest[2] for name, rest in found.items() if rest}
            # Beside ones that are numbered through, others are something else: action_0, action_1,
            # action_probability.
            numbers = sorted(int(rest) for rest in members.values() if _NUMBER.fullmatch(rest))
            through = len(numbers) > 1 and numbers == list(range(numbers[0], numbers[0] + len(numbers)))
            chosen = {name for name, rest in members.items() if not through or _NUMBER.fullmatch(rest)}
            if chosen:
                return _natural([name for name in columns if name in chosen])
    return []


def _natural(names: Sequence[str]) -> list[str]:
    """Numbered names by their number (2 before 10); others as they stand."""
    if not all(re.search(r"\d", name) for name in names):
        return list(names)

    def key(name: str) -> list[tuple[int, str]]:  # not as integers, which have fewer digits than a name may
        return [(len(digits), digits) for digits in (n.lstrip("0") for n in re.findall(r"\d+", name))]

    return sorted(names, key=key)


def _discrete(actions: tuple[Column, ...], options: ColumnOptions, found: list[Finding]) -> bool:
    """Whether actions are numbers of choices: one column of whole numbers is, unless the user says not."""
    if not actions or options.action_kind == "continuous":
        return False
    fitting: tuple[Kind, ...] = ("whole", "truth") if options.action_kind is None else _NUMBERS
    whole = all(column.kind in fitting for column in actions)
    one = len(actions) == 1 and actions[0].width in (None, 1)
    if options.action_kind == "discrete" and not whole and all(c.kind in _NUMBERS for c in actions):
        held = actions[0].spelled or actions[0].kind
        found.append(
            Finding(
                "error", f"--action-kind discrete: {actions[0].name} holds {held}", "expected whole numbers"
            )
        )
    if whole and not one:
        found.append(
            Finding(
                "error",
                "actions are several whole numbers per step",
                "discrete actions are one number; --action-kind continuous takes them as real ones",
            )
        )
    return whole and one


def _missing(role: str, columns: Iterable[str]) -> Finding:
    names = ", ".join(_NAMES[role][:4]) + (f" or {_NAMES[role][0]}_*" if role in _SEVERAL else "")
    what = {"observations": "observations", "actions": "actions", "reward": "the reward"}[role]
    return Finding(
        "error",
        f"no column for {what} (looked for {names}; it has {listed(columns)})",
        f"rename one, or name it to `cwbc data import` (and `check`) with {_option(role)} {_EXAMPLES[role]}",
    )


def _wrong_type(role: str, column: Column) -> Finding:
    if role in _SEVERAL:
        wanted = "a number, or a list of numbers, per row"
    else:
        wanted = _WANTED.get(role, "true or false")
        wanted += " per row"
    held = column.spelled or column.kind
    if column.width is not None:
        held = f"lists of {column.width} values ({held})"
    if column.kind == "text":
        wanted += _ENCODINGS.get(role, "")
    return Finding("error", f"{column.name} holds {held}", column.remedy or f"expected {wanted}", column.name)


def _option(role: str) -> str:
    return f"--{role}"


def listed(columns: Iterable[str], limit: int = 20) -> str:
    """The names of columns, and what they look like where they are none."""
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
