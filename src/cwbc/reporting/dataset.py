"""What a report says about its data, kept beside the results so that a report never needs the data."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from cwbc.errors import InputError


@dataclasses.dataclass(frozen=True)
class DatasetSummary:
    """A dataset in a few numbers and the histogram of its episodes' returns."""

    name: str
    environment: str | None
    content_hash: str
    episodes: int
    steps: int
    lowest: float
    best: float
    mean_return: float
    histogram_edges: tuple[float, ...]  # [bin + 1]
    histogram_counts: tuple[int, ...]  # [bin]

    def to_json(self) -> dict[str, Any]:
        """The fields with lists for tuples, as JSON would hand them back."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in vars(self).items()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> DatasetSummary:
        """The inverse of `to_json`; other keys are left alone."""
        names = [field.name for field in dataclasses.fields(cls)]
        if missing := [name for name in names if name not in values]:
            raise InputError(f"the dataset's summary lacks {', '.join(missing)}; it needs {', '.join(names)}")
        read: dict[str, Any] = {name: values[name] for name in names}
        read |= {name: tuple(value) for name, value in read.items() if isinstance(value, list)}
        return cls(**read)
