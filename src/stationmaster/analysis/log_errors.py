"""The log's problems as entries of the report, with the time and the memory of each."""

from __future__ import annotations

from collections.abc import Iterator

from stationmaster.analysis.facts.log_facts import LoggedError
from stationmaster.analysis.facts.run_facts import RunFacts
from stationmaster.analysis.report import LogError
from stationmaster.parsers.base import ErrorKind

_NEAR_SECONDS = 30.0
_MOST_ENTRIES = 40


def log_errors_of(facts: RunFacts) -> tuple[LogError, ...]:
    """Return the errors first that had a consequence, each problem once."""
    entries = [*_entries(facts)]
    entries.sort(key=lambda entry: (entry.level != "ERROR", entry.timestamp is None, entry.timestamp or 0.0))
    return tuple(entries[:_MOST_ENTRIES])


def _entries(facts: RunFacts) -> Iterator[LogError]:
    seen: set[str] = set()
    for error in (*facts.log.errors, *facts.log.warnings):
        if error.message in seen:
            continue
        seen.add(error.message)
        serious = error not in facts.log.warnings and _had_consequence(facts, error)
        at = _time_of(facts, error)
        yield LogError(
            timestamp=at,
            level="ERROR" if serious else "WARNING",
            message=error.message,
            memory_at_time_gb=_memory_at(facts, at),
            kind=error.kind.value,
            count=error.count,
            traceback=error.traceback,
        )


def _had_consequence(facts: RunFacts, error: LoggedError) -> bool:
    """Return whether a problem ended the run, spoilt it or lost work."""
    if error.kind is ErrorKind.NAN_LOSS:
        return facts.has_nan
    if error.kind is ErrorKind.OOM:
        return True  # a batch was lost at least
    if error.kind is ErrorKind.DISK_FULL or error.lost_work:
        return True  # a save was lost
    return error is facts.log.cause and facts.ending.failed


def _time_of(facts: RunFacts, error: LoggedError) -> float | None:
    if error.at is not None:
        return error.at
    if error.kind is ErrorKind.OOM and facts.oom_events:
        return facts.oom_events[-1 if error.fatal else 0].at
    if error.kind is ErrorKind.NAN_LOSS:
        row = facts.losses.nan_at if facts.losses is not None else None
        return None if row is None else row.at
    ended = error is facts.log.cause
    if not ended or facts.row_times is None:
        return None
    ends = facts.events_of_kind("training_end")
    return ends[-1].at if ends else facts.row_times[1]


def _memory_at(facts: RunFacts, at: float | None) -> float | None:
    pool = facts.summary_pool
    if at is None or pool is None:
        return None
    nearest = pool.nearest(at)
    return round(nearest.used_gb, 2) if abs(nearest.at - at) <= _NEAR_SECONDS else None
