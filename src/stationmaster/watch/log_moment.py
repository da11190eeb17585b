"""One moment of the log as the stall watch needs it: the counter, the phase, and whether anything moved."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stationmaster.parsers.base import Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMoment:
    """What a piece of log contains, at the time it was written (by the machine's own clock where that is known)."""

    at: float
    step: float | None = None
    total: float | None = None
    scope: str | None = None  # "run": the counter spans the run; "epoch": it restarts with each epoch
    epoch: float | None = None
    total_epochs: float | None = None
    phase: str | None = None
    moved: bool = False  # something besides the step counter went forward: another bar, a line never seen before


def log_moment(readings: Iterable[Reading], *, at: float, moved: bool = False) -> LogMoment:
    """One moment from the readings of one piece of log: of each value the last.

    So lines that are sent twice after a reconnect leave no trace: only where the counter ends up counts.
    """
    step = total = scope = epoch = total_epochs = phase = None
    for reading in readings:
        step = reading.step if reading.step is not None else step
        total = reading.total_steps or total
        scope = reading.scope or scope
        epoch = reading.epoch if reading.epoch is not None else epoch
        total_epochs = reading.total_epochs or total_epochs
        phase = reading.phase or phase
    return LogMoment(
        at=at,
        step=step,
        total=total,
        scope=str(scope) if scope else None,
        epoch=epoch,
        total_epochs=total_epochs,
        phase=str(phase) if phase else None,
        moved=moved,
    )
