"""The heartbeats of a job: how far it was each time its machine answered, bounded however long it runs. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.model import Heartbeat, Progress

_APART_SECONDS = 60.0
_END = 100.0  # percent
MOST_HEARTBEATS = 60
_LONGEST_NAME = 80  # a machine reports it


def with_heartbeat(known: Sequence[Heartbeat], progress: Progress, *, now: float) -> tuple[Heartbeat, ...]:
    """The heartbeats with one of now: at most one a minute for each step of the plan, and one at 100 %."""
    last, step = known[-1] if known else None, (progress.active_step or "")[:_LONGEST_NAME] or None
    if last is not None and now - last.at < _APART_SECONDS and not _is_news(last, step, progress.percent):
        return tuple(known)
    beat = Heartbeat(at=now, step=step, percent=progress.percent, eta_seconds=progress.eta_seconds)
    return _thinned((*known, beat))


def _is_news(last: Heartbeat, step: str | None, percent: float | None) -> bool:
    """A short training may begin and end between two looks: then only the percentage tells of it."""
    return last.step != step or (percent == _END and last.percent != _END)


def _thinned(beats: tuple[Heartbeat, ...]) -> tuple[Heartbeat, ...]:
    """The newer half unchanged, every second one of the older half: they reach back to the start."""
    if len(beats) <= MOST_HEARTBEATS:
        return beats
    half = len(beats) // 2
    return (*beats[:half:2], *beats[half:])
