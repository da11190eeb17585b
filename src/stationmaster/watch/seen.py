"""One moment of the log as the detector needs it: where the counter stands, in which phase, what moved."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a piece of log said, at the time it was written (by the machine's own clock where that is known)."""

    at: float
    step: float | None = None
    total: float | None = None
    scope: str | None = None  # "run": the counter spans the run; "epoch": it restarts with each epoch
    epoch: float | None = None
    total_epochs: float | None = None
    phase: str | None = None
    moved: bool = False  # something besides the step counter went forward: another bar, a line never seen before
