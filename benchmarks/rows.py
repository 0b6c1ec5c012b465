"""What is measured, as values: the table, the JSON, the picture and the comparison are made of these."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from cwbc.system.errors import InputError
from cwbc.system.files import write_atomically

_FORMAT = 1


@dataclasses.dataclass(frozen=True)
class Row:
    """One number beside its limit, and what was promised about it."""

    name: str
    measured: float
    unit: str
    limit: float | None = None  # in the same unit, from the same run
    limit_is: str = ""  # what the limit is, in words
    promise: float | None = None  # the least where more is better, else the most
    promise_on: Literal["ratio", "measured"] = "ratio"
    more_is_better: bool = False
    steps: int | None = None  # of the dataset: rows of one name that differ in it are a curve

    @property
    def label(self) -> str:
        """The name, with what distinguishes the rows of a curve."""
        return self.name if self.steps is None else f"{self.name} with {self.steps:,} steps of data"

    @property
    def ratio(self) -> float | None:
        """The measured number in units of its limit: what can be compared between runs."""
        return None if self.limit is None else self.measured / self.limit

    @property
    def kept(self) -> bool | None:
        """Whether the promise is kept; None where nothing was promised."""
        value = self.ratio if self.promise_on == "ratio" else self.measured
        if self.promise is None or value is None:
            return None
        return value >= self.promise if self.more_is_better else value <= self.promise


@dataclasses.dataclass(frozen=True)
class Report:
    """The rows of one run, and what they were measured on."""

    device: str  # "cpu", or the kind of the GPU
    processor: str
    cores: int
    versions: Mapping[str, str]
    rows: tuple[Row, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values; ratios and kept promises are for readers, and follow from the rest."""
        rows = [dataclasses.asdict(row) | {"ratio": row.ratio, "kept": row.kept} for row in self.rows]
        return {"format": _FORMAT} | dataclasses.asdict(self) | {"rows": rows}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Report:
        """The report that to_json made plain values of."""
        if values["format"] != _FORMAT:
            raise ValueError(f"its format is {values['format']}, expected {_FORMAT}")
        names = [field.name for field in dataclasses.fields(Row)]
        rows = tuple(Row(**{name: row[name] for name in names}) for row in values["rows"])
        own = (field.name for field in dataclasses.fields(cls))
        return cls(**{name: values[name] for name in own} | {"rows": rows})


def write(path: Path, report: Report) -> None:
    """Keep a report as JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(report.to_json(), indent=2, allow_nan=False) + "\n")


def read(path: Path) -> Report:
    """A stored report."""
    try:
        return Report.from_json(json.loads(path.read_bytes()))
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; --json {path} writes one") from None
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; expected a file that --json wrote") from None
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(f"{path} is no report of benchmarks, or it is damaged; --json writes one") from error
