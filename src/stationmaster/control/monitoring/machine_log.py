"""The log of one machine as it grows: the values in it, its last lines, and how far it was read. Bounded for days."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from stationmaster.control.monitoring.instance_metrics import LOG_LINES, InstanceMetrics
from stationmaster.control.monitoring.sources import LogPiece, LogPosition
from stationmaster.parsers.base import Scope, Summary
from stationmaster.parsers.budget import Budget
from stationmaster.parsers.patterns import UserPattern
from stationmaster.parsers.reader import LogReader

Value = TypeVar("Value")
_LONGEST_LINE = 16 * 1024
"""More bytes without a line's end are cut: a file that is no text must not fill the memory."""
_LONGEST_SHOWN = 1000


class MachineLog:
    def __init__(self, patterns: Sequence[UserPattern] = ()) -> None:
        self._patterns = patterns
        self._reader = LogReader(patterns=patterns)
        self._lines: deque[str] = deque(maxlen=LOG_LINES)
        self._unended = b""
        self._unended_bytes = 0
        self._line_count = 0
        self.position: LogPosition | None = None

    def add(self, piece: LogPiece, metrics: InstanceMetrics) -> InstanceMetrics:
        """Read the piece; returns the machine with the values in its log. Values that are not there stay as they were,
        unless the log is another file."""
        if self.position is not None and not piece.continues:
            self._reader = LogReader(patterns=self._patterns)
            self._end_line()
            if self.position.file != piece.position.file:
                metrics = _without_training(metrics)
        self.position = piece.position
        if piece.data:
            self._read(piece.data)
        elif metrics.problem is None:
            return metrics
        return self._merged(metrics)

    def clear(self) -> None:
        """Forget the lines shown so far; a line that is still written continues."""
        self._lines.clear()
        self._unended = b""

    def _read(self, data: bytes) -> None:
        whole, newline, rest = data.rpartition(b"\n")
        if newline:
            for line in whole.split(b"\n"):
                self._unended += line
                self._end_line()
        self._reader.feed(data, budget=Budget())  # however much a machine prints, others are looked at too
        self._unended = _last_drawing(self._unended + rest)
        self._unended_bytes += len(rest)
        if self._unended_bytes > _LONGEST_LINE and b"\r" not in rest:
            self._reader.feed(b"\n")
            self._end_line()

    def _end_line(self) -> None:
        text = _as_shown(self._unended)
        self._unended, self._unended_bytes = b"", 0
        if text:
            self._lines.append(text)
            self._line_count += 1

    def _merged(self, metrics: InstanceMetrics) -> InstanceMetrics:
        read = self._reader.summary()
        unended = _as_shown(self._unended)
        shown = [*self._lines, *([unended] if unended else [])]
        return replace(
            metrics,
            logs=tuple(shown[-LOG_LINES:]),
            logged_lines=self._line_count + bool(unended),
            epoch=_either(read.epoch, metrics.epoch),
            total_epochs=_either(read.total_epochs, metrics.total_epochs),
            step=_either(read.step, metrics.step),
            total_steps=_either(read.total_steps, metrics.total_steps),
            counts_epoch=read.step_scope is Scope.EPOCH or (metrics.counts_epoch and _same_total(read, metrics)),
            loss=_either(read.loss, metrics.loss),
            steps_per_second=read.steps_per_second,
            told_eta_seconds=read.eta_seconds,
            problem=None,
        )


def _without_training(metrics: InstanceMetrics) -> InstanceMetrics:
    return replace(metrics, epoch=None, total_epochs=None, step=None, total_steps=None, counts_epoch=False, loss=None)


def _last_drawing(line: bytes) -> bytes:
    """The end of a line that redraws itself for hours; only its last drawing is ever shown."""
    drawn, _, last = line.rstrip(b"\r").rpartition(b"\r")
    return last if drawn else line[-_LONGEST_LINE:]


def _as_shown(line: bytes) -> str:
    """What a terminal shows of a line that redraws itself."""
    return line.decode(errors="replace").rstrip("\r").rpartition("\r")[2].rstrip()[:_LONGEST_SHOWN]


def _same_total(read: Summary, metrics: InstanceMetrics) -> bool:
    """Whether the counter is the same, although the line with the epoch may have left the end of the log."""
    return read.total_steps in (None, metrics.total_steps)


def _either(new: Value | None, old: Value | None) -> Value | None:
    return new if new is not None else old
