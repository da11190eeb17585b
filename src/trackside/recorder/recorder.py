"""Records one try of a training: samples, out-of-memory lines of its log, its start and its end.

Everything goes through a journal of its own, so that killing the recorder loses nothing.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import time
from typing import Callable, NamedTuple, Optional

from trackside.metrics.database import open_database
from trackside.metrics.fold import (
    event_record,
    finish_journal,
    fold_journal,
    fold_leftovers,
    info_record,
    sample_record,
)
from trackside.metrics.journal import Journal
from trackside.metrics.locations import journal_folder
from trackside.recorder import events
from trackside.recorder.log_tail import LogTail
from trackside.recorder.memory_errors import find_memory_error
from trackside.recorder.schedule import Schedule
from trackside.records import write_record
from trackside.sampler.sample import Sample
from trackside.sampler.sampler import Sampler
from trackside.sampler.thread_states import ASLEEP

_SAMPLES_AT_ONCE = 10
_RESTING_SAMPLES_AT_ONCE = 2  # of a training that rests: home waits for them, and nothing else needs the machine
_LEFTOVERS_SECONDS = 60.0
_BURST_SECONDS = 10.0  # lines of one error: a trainer prints it more than once
_PATIENCE_SECONDS = 3.0  # for the training's own event: it knows more than its log


class RecordedTry(NamedTuple):
    """What is recorded, and where."""

    job: str
    database: str
    folder: str  # the job's
    log: str
    stream: str  # the log's name
    started: float  # by the wall clock
    interval_seconds: float
    per_process: bool
    newest_sample: str


class TryEnd(NamedTuple):
    """How the training ended, as far as that is known."""

    wall: float
    exit_code: Optional[int]
    signal: Optional[int]
    out_of_memory: bool = False  # as the engine of its container reports it


class _MemoryError(NamedTuple):
    line: str
    wall: float
    moment: float
    log_offset: int
    sample: Sample


class Recorder:
    """Look by look: `look` every second or so, `finish` once. Only `finish` may take longer than a sample does."""

    def __init__(
        self,
        recorded: RecordedTry,
        *,
        moment: float,
        note: Callable[[str], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._try = recorded
        self._now = now
        self._note = note
        self._noted: set[str] = set()
        self._folder = journal_folder(recorded.database)
        self._journal = Journal(self._folder, recorded.job)
        self._connection: sqlite3.Connection | None = None
        self._schedule = Schedule(recorded.interval_seconds, start=moment)
        self._leftovers = Schedule(_LEFTOVERS_SECONDS, start=moment)
        self._sampler: Sampler | None = None
        self._pid: int | None = None
        self._unfolded = _SAMPLES_AT_ONCE - 1  # the first sample is folded at once
        self._snapshot: Sample | None = None
        self._tail: LogTail | None = None
        self._error: _MemoryError | None = None
        self._error_seen_at: float | None = None

    def look(self, *, wall: float, moment: float, pid: int | None) -> None:
        """Take a sample if one is due, and read the log. `pid` is the training's first process, once it is known."""
        if self._leftovers.take_turn(moment):
            self._write(self._fold_leftovers)
        if self._schedule.take_turn(moment):
            self._record_sample(self._sample(wall, pid))
        self._look_at_log(wall, moment, is_last=False)
        if self._error is not None and moment - self._error.moment >= _PATIENCE_SECONDS:
            self._write(self._report_error)

    def finish(self, end: TryEnd, *, wall: float, moment: float) -> None:
        """Record the end, fold everything and remove the journals of processes that are gone."""
        self._write(self._fold_leftovers)  # the training's own events count
        self._look_at_log(wall, moment, is_last=True)
        if self._error is not None:
            self._write(self._report_error)
        last = self._sample(wall, self._pid)
        self._show(last)
        if not self._write(lambda connection: self._record_end(connection, end, last)):
            self._journal.append(sample_record(last))
        if not self._write(self._finish_journal):
            for segment in self._journal.close():
                segment.release()
        self.close()

    def seconds_left(self, moment: float) -> float:
        """Return the seconds until the next sample is due."""
        return self._schedule.seconds_left(moment)

    def close(self) -> None:
        if self._sampler is not None:
            self._sampler.close()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _sample(self, wall: float, pid: int | None) -> Sample:
        if self._sampler is None or pid != self._pid:
            if self._sampler is not None:
                self._sampler.close()
            recorded = self._try
            self._pid = pid
            self._sampler = Sampler(
                pid, folder=recorded.folder, per_process=recorded.per_process, note=self._note_once, now=self._now
            )
            self._journal.append(info_record(dict(self._sampler.facts())))
        return self._sampler.take(wall)

    def _record_sample(self, sample: Sample) -> None:
        self._journal.append(sample_record(sample))
        self._show(sample)
        self._unfolded += 1
        at_once = _RESTING_SAMPLES_AT_ONCE if _rests(sample) else _SAMPLES_AT_ONCE
        if self._unfolded >= at_once and self._write(self._fold):
            self._unfolded = 0

    def _show(self, sample: Sample) -> None:
        """Leave the sample for the status, which needs no database for it."""
        try:
            write_record(self._try.newest_sample, sample.as_record())
        except OSError as problem:
            self._note_once("the newest sample cannot be written: %s" % problem)

    def _look_at_log(self, wall: float, moment: float, *, is_last: bool) -> None:
        if self._tail is None:
            self._tail = LogTail(self._try.log, position=self._position_in_log())
        line = find_memory_error(self._tail.read(is_last=is_last))
        if line is None:
            return
        is_new = self._error_seen_at is None or moment - self._error_seen_at > _BURST_SECONDS
        self._error_seen_at = moment
        if is_new:
            # The sample now, the event a little later: by then the training may have written its own.
            sample = self._sample(wall, self._pid)
            self._error = _MemoryError(line, wall, moment, self._tail.position, sample)

    def _position_in_log(self) -> int:
        """Return where a recorder that died had found the last line, so that it is not reported twice."""
        found: list[int] = []
        self._write(lambda connection: found.append(events.log_position(connection, self._try.job, self._try.stream)))
        return found[0] if found else 0

    def _report_error(self, connection: sqlite3.Connection) -> None:
        error = self._error
        assert error is not None
        if not events.has_own_memory_error(connection, self._try.job, wall=error.wall):
            details = {
                "step": events.last_step(connection, self._try.job),
                "message": error.line,
                **events.from_log(self._try.stream, error.log_offset),
            }
            self._record_event(connection, "oom_error", error.wall, details, error.sample)
        else:
            self._journal.append(sample_record(error.sample))
        self._error = None

    def _record_end(self, connection: sqlite3.Connection, end: TryEnd, last: Sample) -> None:
        job, started = self._try.job, self._try.started
        during = {"since": started, "until": end.wall}
        details = {"step": events.last_step(connection, job), **events.BY_RECORDER}
        if not events.has_event(connection, job, "training_start", **during):
            self._record_event(connection, "training_start", started, {**details, "step": None}, None)
        self._record_memory_kill(connection, end)
        if is_orderly(end) and not events.has_event(connection, job, "training_end", **during):
            self._record_event(connection, "training_end", end.wall, details, last)
        else:
            self._journal.append(sample_record(last))
        facts = exit_facts(end)
        known = {
            key: value for key, value in facts.items() if value is not None or events.has_info(connection, job, key)
        }
        self._journal.append(info_record(known))

    def _record_memory_kill(self, connection: sqlite3.Connection, end: TryEnd) -> None:
        """Record that the kernel killed the training or a part of it: nothing in its log tells why it ended.

        Only for a training that did not end well: where jobs share a control group the kill may be another's.
        """
        killed = self._sampler.memory_kills() if self._sampler is not None else 0
        if end.exit_code == 0 or not (killed or end.out_of_memory):
            return
        details = {
            "step": events.last_step(connection, self._try.job),
            "message": "the kernel killed %d of its processes for lack of memory" % max(killed, 1),
            **events.BY_KERNEL,
        }
        self._record_event(connection, "oom_error", end.wall, details, None)

    def _record_event(
        self,
        connection: sqlite3.Connection,
        kind: str,
        wall: float,
        details: dict[str, object],
        snapshot: Sample | None,
    ) -> None:
        self._snapshot = snapshot
        self._journal.append(event_record(kind, wall, details))
        try:
            self._fold(connection)
        finally:
            self._snapshot = None

    def _fold(self, connection: sqlite3.Connection) -> None:
        fold_journal(connection, self._journal, snapshot=lambda: self._snapshot)

    def _fold_leftovers(self, connection: sqlite3.Connection) -> None:
        fold_leftovers(connection, self._folder)

    def _finish_journal(self, connection: sqlite3.Connection) -> None:
        finish_journal(connection, self._journal, snapshot=lambda: None)
        fold_leftovers(connection, self._folder)
        try:
            os.rmdir(self._folder)
        except OSError:
            pass  # a process of the training that is still alive has its journal there

    def _write(self, act: Callable[[sqlite3.Connection], object]) -> bool:
        """Do something with the database; False if that is impossible now: the journal keeps what there is."""
        try:
            if self._connection is None:
                self._connection = open_database(self._try.database)
            act(self._connection)
        except (sqlite3.Error, OSError) as problem:
            self._note_once("the metrics cannot be written: %s" % problem)
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            return False
        return True

    def _note_once(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._note(text)


def _rests(sample: Sample) -> bool:
    return bool(sample.processes) and all(process.state == ASLEEP for process in sample.processes)


def is_orderly(end: TryEnd) -> bool:
    """Return whether the training ended through its own exit, with or without an error; False if a signal ended it.

    >>> [is_orderly(TryEnd(0.0, code, None)) for code in (0, 1, 137, None)]
    [True, True, False, False]
    """
    return end.exit_code is not None and end.signal is None and end.exit_code not in _CODES_OF_SIGNALS


def exit_facts(end: TryEnd) -> dict[str, int | None]:
    """Return exit code and signal for RunInfo, both whether a process or a container reported the end.

    >>> exit_facts(TryEnd(0.0, None, 9)) == exit_facts(TryEnd(0.0, 137, None)) == {"exit_code": 137, "exit_signal": 9}
    True
    """
    if end.signal is not None:
        return {"exit_code": 128 + end.signal, "exit_signal": end.signal}
    if end.exit_code is not None and end.exit_code in _CODES_OF_SIGNALS:
        return {"exit_code": end.exit_code, "exit_signal": end.exit_code - 128}
    return {"exit_code": end.exit_code, "exit_signal": None}


#: What shells and containers return for a process that KILL, or a fault of its own, ended.
_CODES_OF_SIGNALS = frozenset(
    128 + getattr(signal, "SIG" + name) for name in ("ILL", "ABRT", "BUS", "FPE", "KILL", "SEGV")
)
