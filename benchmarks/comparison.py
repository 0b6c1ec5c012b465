"""What got worse since a stored run. Ratios are compared: times of two machines, or two days, are not."""

from __future__ import annotations

import dataclasses

from benchmarks.rows import Report, Row
from cwbc.system.errors import InputError

_SHORTEST = 0.05  # seconds: what takes less is decided by what else the machine does


@dataclasses.dataclass(frozen=True)
class Change:
    """One row of two runs."""

    stored: Row
    now: Row

    @property
    def factor(self) -> float:
        """How many times as bad as it was."""
        assert self.stored.ratio is not None
        assert self.now.ratio is not None
        better, worse = self.stored.ratio, self.now.ratio
        return better / worse if self.now.more_is_better else worse / better


def check_device(stored: Report, device: str) -> None:
    """Refuse a stored run of another kind of device."""
    if stored.device != device:
        raise InputError(
            f"the stored run is from the device {stored.device!r}, this one from {device!r}; "
            "only runs on one kind of device are compared"
        )


def compare(stored: Report, now: Report) -> list[Change]:
    """Every row with a limit that both runs have, but for times that are too short to compare."""
    before = {row.label: row for row in stored.rows if row.limit is not None}
    pairs = [
        Change(before[row.label], row) for row in now.rows if row.limit is not None and row.label in before
    ]
    return [pair for pair in pairs if not (_is_short(pair.stored) or _is_short(pair.now))]


def _is_short(row: Row) -> bool:
    return row.unit == "s" and row.measured < _SHORTEST


def worsened(changes: list[Change], tolerance: float) -> list[Change]:
    """Those that are more than `tolerance` times as bad as they were, the worst first."""
    worse = [change for change in changes if change.factor > tolerance]
    return sorted(worse, key=lambda change: -change.factor)
