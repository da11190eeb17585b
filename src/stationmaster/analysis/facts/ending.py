"""How a run ended: completed, stopped by a person, or by an error or a signal."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stationmaster.analysis.configs.base import number
from stationmaster.analysis.facts.log_facts import LogFacts
from stationmaster.parsers.base import ErrorKind

SIGKILL = 9
STALL = "stall"
_KILLED_TEXT = re.compile(
    r"killed by signal: Killed|^(?:.*[\s\]])?Killed\s*$|\bSIGKILL\b|\bSignal 9\b|exitcode\s*:\s*-9\b", re.MULTILINE
)
_ALMOST = 0.98  # nearer to the end than this a silent log may be a finished one


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    completed: bool
    failed: bool
    """Ended by an error, or by a signal that no user sent."""
    by_user: bool
    stalled: bool
    """It was stopped because it made no progress."""
    exit_code: int | None
    signal: int | None
    killed: bool
    """The training or one of its workers was killed with signal 9."""
    killed_for_memory: bool
    vanished: bool
    """Rows and log end in the middle, without a word: the machine itself stopped."""


def ending_of(
    *,
    info: Mapping[str, str],
    log: LogFacts,
    steps: int | None,
    total_steps: int | None,
    system_was_full: bool,
    has_training_end: bool,
) -> Ending:
    """Judge the end by exit code and signal, and where there are none by the log."""
    code, signal = _whole(info.get("exit_code")), _signal(info)
    stopped_by = info.get("stopped_by", "").strip().casefold()
    by_user = stopped_by == "user" or (code is None and log.stopped)
    all_done = _all_steps_done(steps, total_steps, log)
    if stopped_by and not by_user:  # a limit, an anomaly or a stall: whatever signal it got was ours
        completed, failed = False, stopped_by == STALL
    elif code is not None or signal is not None:
        completed = code == 0 and signal is None and all_done and not by_user
        failed = not by_user and (signal is not None or code not in (0, None))
    else:
        completed = log.finished and all_done and not by_user
        failed = not by_user and not completed and (log.failed or log.cause is not None)
    running = info.get("running") == "1"
    unknown = code is None and signal is None and not stopped_by and not by_user and not running
    may_run = info.get("may_run") == "1"
    vanished = (
        unknown
        and not may_run
        and not completed
        and not failed
        and not log.finished
        and not has_training_end
        and log.cut_off
        and bool(steps)
        and total_steps is not None
        and (steps or 0) < total_steps * _ALMOST
    )
    killed = (
        not stopped_by
        and not by_user
        and (
            signal == SIGKILL
            or _KILLED_TEXT.search(log.text) is not None
            or any(error.kind is ErrorKind.KILLED and not error.advanced for error in log.errors)
        )
    )
    killed = killed and not completed
    return Ending(
        completed=completed and not running,
        failed=(failed or vanished or (killed and unknown)) and not running,
        by_user=by_user,
        stalled=stopped_by == STALL,
        exit_code=code,
        signal=signal,
        killed=killed,
        killed_for_memory=killed and system_was_full,
        vanished=vanished,
    )


def _all_steps_done(steps: int | None, total_steps: int | None, log: LogFacts) -> bool:
    if total_steps is None:
        return log.finished or bool(steps)
    if not steps:
        return False
    # Trainers that print a step's index end one below the total.
    return steps >= total_steps - 1 or (log.finished and steps >= total_steps * _ALMOST)


def _signal(info: Mapping[str, str]) -> int | None:
    signal = _whole(info.get("exit_signal"))
    if signal:
        return signal
    code = _whole(info.get("exit_code"))
    if code is not None and (code < 0 or code > 128):
        return -code if code < 0 else code - 128
    return None


def _whole(value: str | None) -> int | None:
    found = number(value)
    return None if found is None else int(found)
