"""The thread of a training process that folds its journal into the database and, if wanted, samples the machine."""

from __future__ import annotations

import os
import sys
import threading
import time

from trackside.metrics.journal import Journal
from trackside.metrics.locations import journal_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from typing import Any

    from trackside.sampler.sample import Sample
    from trackside.sampler.sampler import Sampler

# sqlite3, json and the sampler are imported by the thread: a training's own imports must not wait for them.

_FOLD_SECONDS = 1.0
_SAMPLES_AT_ONCE = 10
_LEFTOVERS_SECONDS = 60.0
_PAUSE_SECONDS = 1.0  # how long a fork waits for the current transaction
_CLOSE_SECONDS = 10.0  # how long an exit waits for a database that another process keeps locked


class BackgroundWriter:
    """A journal and the thread behind it. Problems are noted once on standard error and tried again."""

    def __init__(self, database: str, job: str, *, sample_seconds: float, pid: int | None = None) -> None:
        """`sample_seconds`: interval between samples; 0 takes none. `pid`: whose memory is sampled, if not ours."""
        self._database = database
        self._pid = pid
        self._job = job
        self._folder = journal_folder(database)
        self._sample_seconds = sample_seconds
        self._sampler: Sampler | None = None
        self._sample_at = self._leftovers_at = 0.0
        self._samples = self._sample_bytes = self._folded_bytes = self._reported_drops = 0
        self._due = threading.Event()
        self._is_stopping = self._is_closing = False
        self.journal = Journal(self._folder, job)
        self.start()

    def start(self) -> None:
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="trackside", daemon=True)
        self._thread.start()

    def append(self, record: dict[str, Any], *, at_once: bool) -> None:
        """Append a record; `at_once` also has it folded now."""
        self.journal.append(record)
        if at_once:
            self._due.set()

    def pause(self) -> None:
        """Stop the thread and close its connection before a fork: the child must not inherit either while in use."""
        self._is_stopping = True
        self._due.set()
        self._thread.join(_PAUSE_SECONDS)

    def close(self) -> None:
        """Fold everything, remove the journal and end the thread; what cannot be folded now stays for the next run."""
        self._is_closing = True
        self.pause()
        self._thread.join(_CLOSE_SECONDS)

    def abandon(self) -> None:
        """Close the child's copies of the journal after a fork."""
        self.journal.abandon()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while True:
            is_last = self._is_stopping
            try:
                connection = self._work(connection)
            except Exception as problem:  # noqa: BLE001 - a traceback of ours in the log would look like the training's
                note_once("the metrics cannot be written now: %s" % problem)
                _close(connection)
                connection = None
            if is_last:
                break
            self._due.wait(_FOLD_SECONDS)
            self._due.clear()
        if self._is_closing:
            self._finish(connection)
        _close(connection)

    def _work(self, connection: sqlite3.Connection | None) -> sqlite3.Connection:
        from trackside.metrics.database import open_database, put_info
        from trackside.metrics.fold import fold_journal, fold_leftovers

        now = time.monotonic()
        if self._sample_seconds and now >= self._sample_at:
            self._sample_at = now + self._sample_seconds
            self._append_sample()
        self.journal.prepare()
        if not self.journal.is_safe:
            note_once("%s cannot be written to, so a killed training loses its last steps" % self._folder)
        connection = connection or open_database(self._database)
        if self._is_fold_due():
            appended = self.journal.appended_bytes
            fold_journal(connection, self.journal, snapshot=self._take_sample)
            self._folded_bytes, self._samples, self._sample_bytes = appended, 0, 0
        if now >= self._leftovers_at:
            self._leftovers_at = now + _LEFTOVERS_SECONDS
            fold_leftovers(connection, self._folder)
        if self.journal.dropped > self._reported_drops:
            self._reported_drops = self.journal.dropped
            put_info(connection, self._job, {"records_dropped": self._reported_drops})
        return connection

    def _is_fold_due(self) -> bool:
        """Whether there is something new; samples alone wait until there are several."""
        waiting = self.journal.appended_bytes - self._folded_bytes
        return waiting > self._sample_bytes or self._samples >= _SAMPLES_AT_ONCE

    def _finish(self, connection: sqlite3.Connection | None) -> None:
        from trackside.metrics.fold import finish_journal, fold_leftovers

        if self._sample_seconds:
            self._append_sample()
        try:
            if connection is None:
                for segment in self.journal.close():
                    segment.release()
            else:
                finish_journal(connection, self.journal, snapshot=self._take_sample)
                fold_leftovers(connection, self._folder)
                os.rmdir(self._folder)
        except Exception as problem:  # noqa: BLE001 - the training ends well whatever happens here
            if not isinstance(problem, OSError):  # the folder still holds journals of other processes
                note_once("the metrics cannot be written now: %s" % problem)
        if self._sampler is not None:
            self._sampler.close()

    def _append_sample(self) -> None:
        from trackside.metrics.fold import info_record, sample_record

        is_first = self._sampler is None
        sample = self._take_sample()
        if is_first and self._sampler is not None:
            self.journal.append(info_record(dict(self._sampler.facts())))
        if sample is not None:
            before = self.journal.appended_bytes
            self.journal.append(sample_record(sample))
            self._samples += 1
            self._sample_bytes += self.journal.appended_bytes - before

    def _take_sample(self) -> Sample | None:
        try:
            if self._sampler is None:
                from trackside.sampler.sampler import Sampler

                folder = os.path.dirname(self._database)
                self._sampler = Sampler(self._pid or os.getpid(), folder=folder, quick=True, note=note_once)
            return self._sampler.take(time.time())
        except Exception as problem:  # noqa: BLE001 - an event without its sample is better than none
            note_once("the machine cannot be sampled: %s" % problem)
            return None


def note_once(text: str) -> None:
    """Write a line to standard error, unless it was written before."""
    if text not in _NOTED:
        _NOTED.add(text)
        _write_to_stderr("trackside: %s\n" % text)


def _write_to_stderr(line: str) -> None:
    """Write past Python's buffer: it would keep a line for which a full disk has no room, and exit with 120 over it."""
    try:
        descriptor = sys.stderr.fileno()
    except (OSError, ValueError, AttributeError):
        descriptor = -1  # no file, as in a notebook
    try:
        if descriptor >= 0:
            os.write(descriptor, line.encode("utf-8", "backslashreplace"))
        else:
            sys.stderr.write(line)
    except (OSError, ValueError, AttributeError):
        pass  # a full disk, or a closed stream


_NOTED: set[str] = set()


def _close(connection: sqlite3.Connection | None) -> None:
    if connection is not None:
        try:
            connection.close()
        except Exception as problem:  # noqa: BLE001 - nothing more can be done with it
            note_once(str(problem))
