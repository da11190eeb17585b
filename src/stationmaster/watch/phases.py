"""Announced pauses stop the clock up to a limit for each kind, configured or learnt from this run."""

from __future__ import annotations

from dataclasses import dataclass, field

from stationmaster.watch.policy import StallPolicy

PAUSES = ("saving", "sampling", "evaluating")
"""Phases in which training waits and something else is done: limited by their length."""
PREPARATIONS = ("loading", "caching", "downloading", "failed")
"""Phases before training, first or again: limited by how long nothing moves."""
QUIET_ENDS = ("finished",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrun:
    """A pause that has outlasted its limit."""

    phase: str
    lasted: float
    allowed: float


@dataclass(slots=True)
class PhaseBook:
    """Which phase the run is in, and the time spent in each since the last new step."""

    phase: str | None = None
    spent: dict[str, float] = field(default_factory=dict)
    _visits: int = 0
    _longest: dict[str, float] = field(default_factory=dict)

    @property
    def stops_clock(self) -> bool:
        return self.phase in PAUSES or self.phase in PREPARATIONS or self.phase in QUIET_ENDS

    @property
    def is_pause(self) -> bool:
        return self.phase in PAUSES

    @property
    def is_preparation(self) -> bool:
        return self.phase in PREPARATIONS

    @property
    def has_failed(self) -> bool:
        """The last thing printed was an error: training may start again, or hang where it is."""
        return self.phase == "failed"

    @property
    def is_over(self) -> bool:
        return self.phase in QUIET_ENDS

    def enter(self, phase: str | None, *, has_started: bool) -> None:
        """Move to `phase`. After the first step, a sampler that loads its pipeline is still sampling."""
        if phase is None or phase == self.phase:
            return
        if has_started and self.is_pause and phase in PREPARATIONS and phase != "failed":
            return
        self.phase = phase
        if phase in PAUSES:
            self._visits += 1

    def spend(self, seconds: float) -> None:
        if self.phase in PAUSES:
            self.spent[self.phase] = self.spent.get(self.phase, 0.0) + seconds

    def close(self, *, learn: bool) -> None:
        """End the pauses before a new step, and remember how long they took if the run was healthy."""
        if learn:
            for phase, seconds in self.spent.items():
                self._longest[phase] = max(self._longest.get(phase, 0.0), seconds)
        self.spent.clear()
        self._visits = 0

    def allowed(self, phase: str, policy: StallPolicy) -> float:
        """How long this phase may last between two steps."""
        configured: float = getattr(policy, f"{phase}_limit")
        learnt = min(policy.learned_cap, policy.learned_factor * self._longest.get(phase, 0.0))
        return max(configured, learnt)

    def overrun(self, policy: StallPolicy, *, silence: float = 0.0) -> Overrun | None:
        """The pause that has lasted too long, if one has. Silence beside it counts: it may have begun unannounced."""
        for phase, seconds in self.spent.items():
            if seconds + silence > self.allowed(phase, policy):
                return Overrun(phase=phase, lasted=seconds + silence, allowed=self.allowed(phase, policy))
        takes_turns = self._visits > 2 * len(self.spent) > 2
        together = sum(self.spent.values())
        allowed = max([policy.loop_limit, *(self.allowed(phase, policy) for phase in self.spent)])
        if takes_turns and together > allowed:
            return Overrun(phase=" and ".join(sorted(self.spent)), lasted=together, allowed=allowed)
        return None
