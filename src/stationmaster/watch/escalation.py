"""A stalled run is flagged, then stopped after a grace period, unless it recovers first."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.stall import StallAnalysis

FLAGGED = "stall_flagged"
CLEARED = "stall_cleared"
TERMINATE = "terminate"


@dataclass(frozen=True, slots=True, kw_only=True)
class StallEvent:
    """A decision of the watch; each is reported once."""

    kind: str
    at: float
    analysis: StallAnalysis


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """How far a stall has got. This is the whole state: it can be stored between polls and across restarts."""

    flagged_at: float | None = None
    terminated_at: float | None = None

    @property
    def is_flagged(self) -> bool:
        return self.flagged_at is not None

    def grace_is_over(self, at: float, policy: StallPolicy) -> bool:
        return self.flagged_at is not None and at - self.flagged_at >= policy.grace

    def next(
        self, *, is_stalling: bool, is_recovering: bool = False, at: float, policy: StallPolicy
    ) -> tuple[Escalation, str | None]:
        """The next state, and the event to report, if any. A run that is just recovering is not stopped."""
        if self.terminated_at is not None:
            return self, None
        if self.flagged_at is None:
            return (Escalation(flagged_at=at), FLAGGED) if is_stalling else (self, None)
        if not is_stalling:
            return Escalation(), CLEARED
        if policy.terminate and self.grace_is_over(at, policy) and not is_recovering:
            return Escalation(flagged_at=self.flagged_at, terminated_at=at), TERMINATE
        return self, None
