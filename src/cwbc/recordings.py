"""A dataset as it was read, before it is trusted."""

from __future__ import annotations

import dataclasses
from typing import Any

from numpy.typing import NDArray

from cwbc import checks
from cwbc.findings import Finding, Origin, Rejected
from cwbc.trajectories import Trajectories


@dataclasses.dataclass(frozen=True, eq=False)
class Recording:
    """Episodes with where they are from, and what was found up to now."""

    data: Trajectories
    origin: Origin
    findings: tuple[Finding, ...] = ()
    kept: bool = False  # from the store, which looked at it when it came there
    action_bounds: tuple[NDArray[Any], NDArray[Any]] | None = None  # [dimension] each; the environment's

    def errors(self) -> list[Finding]:
        """Everything that is wrong."""
        return [*self._found("error"), *checks.errors(self.data, self.origin)]

    def warnings(self) -> list[Finding]:
        """Everything that is doubtful."""
        return [*self._found("warning"), *checks.warnings(self.data, self.origin, self.action_bounds)]

    def trusted(self) -> Trajectories:
        """The data, if nothing is wrong with it."""
        if found := self.errors():
            raise Rejected(self.origin.source, found)
        return self.data

    def _found(self, severity: str) -> list[Finding]:
        return [finding for finding in self.findings if finding.severity == severity]
