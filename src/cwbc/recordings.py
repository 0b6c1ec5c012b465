"""A dataset as it was read, before it is trusted."""

from __future__ import annotations

import dataclasses

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

    def examined(self) -> list[Finding]:
        """Everything that is wrong or doubtful."""
        wrong, doubtful = checks.errors(self.data, self.origin), checks.warnings(self.data, self.origin)
        return [*self.findings, *wrong, *doubtful]

    def trusted(self) -> Trajectories:
        """The data, if nothing is wrong with it."""
        found = [finding for finding in self.findings if finding.severity == "error"]
        if found := [*found, *checks.errors(self.data, self.origin)]:
            raise Rejected(self.origin.source, found)
        return self.data
