"""From the readings of a log parser to what the detector needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from stationmaster.watch.seen import Seen


class ReadingLike(Protocol):
    """The part of a parser's reading that tells of progress."""

    @property
    def step(self) -> int | None: ...
    @property
    def total_steps(self) -> int | None: ...
    @property
    def scope(self) -> str | None: ...
    @property
    def epoch(self) -> float | None: ...
    @property
    def total_epochs(self) -> int | None: ...
    @property
    def phase(self) -> str | None: ...


def seen_from(readings: Iterable[ReadingLike], *, at: float, moved: bool = False) -> Seen:
    """One moment out of the readings of one piece of log: of each value the last.

    Lines sent twice after a reconnect thus leave no trace: only where the counter ends up counts.
    """
    step = total = scope = epoch = total_epochs = phase = None
    for reading in readings:
        step = reading.step if reading.step is not None else step
        total = reading.total_steps or total
        scope = reading.scope or scope
        epoch = reading.epoch if reading.epoch is not None else epoch
        total_epochs = reading.total_epochs or total_epochs
        phase = reading.phase or phase
    return Seen(
        at=at,
        step=step,
        total=total,
        scope=str(scope) if scope else None,
        epoch=epoch,
        total_epochs=total_epochs,
        phase=str(phase) if phase else None,
        moved=moved,
    )
