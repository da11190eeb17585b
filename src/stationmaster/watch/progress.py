"""History of a run from its readings: furthest step, training time, pace and an ETA of our own.

Only a step beyond the furthest so far is progress. Time counts as training time unless a pause was announced or
steps are being repeated after a resume; pace is steps over training time, not what the trainer prints.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median

from stationmaster.watch.counter import Position
from stationmaster.watch.policy import StallPolicy

_GAPS_KEPT = 31
_FIRST_GAP_FACTOR = 2.0
_LATE_FACTOR = 1.5
_MARKS_PER_WINDOW = 60
_MEASURED_AT_LEAST = 1 / 5  # of a window
WINDOWS_KEPT = 4
_REPEAT_FACTOR = 1.5  # repeated steps may take this many times what they took at first ...
_REPEAT_SLACK = 900.0  # ... and this much more, for loading and the first step
_REPEAT_UNKNOWN = 1800.0


@dataclass(slots=True)
class ProgressTrack:
    """Where the counter stands, how long it has stood there, and how fast it went."""

    active: float = 0.0  # training time so far
    still: float = 0.0  # time without movement that nothing explains
    furthest: float | None = None
    position: float | None = None
    total: float | None = None
    counts_steps: bool = True
    moves: int = 0  # readings that were progress
    repeating: float = 0.0  # time since the counter fell behind the furthest step
    repeat_from: float | None = None
    _marks: list[tuple[float, float]] = field(default_factory=list)  # (training time, furthest step) at movements
    _gaps: list[float] = field(default_factory=list)
    _first_gap: float = 0.0

    @property
    def has_started(self) -> bool:
        return self.moves > 0

    @property
    def is_repeating(self) -> bool:
        return self.position is not None and self.furthest is not None and self.position < self.furthest

    def spend(self, seconds: float, *, seen_seconds: float, is_training: bool) -> None:
        """Add elapsed time; `seen_seconds` of it were watched closely enough to count as silence."""
        if self.is_repeating:
            self.repeating += seconds
        elif is_training:
            self.active += seconds
        if is_training:
            self.still += seen_seconds

    def note(self, position: Position, policy: StallPolicy) -> bool:
        """Record a new position; returns True if it is progress."""
        if position.is_new_unit or self.furthest is None:
            self._begin(position)
            return False
        self.total = position.total
        before = self.position if self.position is not None else position.value
        self.position = position.value
        if position.value > self.furthest:
            self._progress(position.value, policy)
            return True
        if position.value < before:
            self.repeat_from = min(position.value, self.repeat_from if self.repeat_from is not None else before)
        if position.value != before:
            self.still = 0.0
        return False

    def line_interval(self) -> float:
        """Usual training time between two lines that show progress; 0 while unknown."""
        return median(self._gaps) if self._gaps else 0.0

    def patience(self, pace: float | None, policy: StallPolicy) -> float:
        """How long the counter may stand still before it is a hang."""
        lines = policy.patience_lines * self.line_interval() if self._gaps else _FIRST_GAP_FACTOR * self._first_gap
        steps = policy.patience_steps / pace if pace and self.counts_steps else 0.0
        return max(policy.min_window, lines, steps)

    def overdue(self) -> float:
        """How late the next line is; that time counts as standing still."""
        if not self._marks:
            return 0.0
        recent = median(self._gaps[-3:]) if self._gaps else 0.0
        expected = _LATE_FACTOR * max(self.line_interval(), recent)
        return max(0.0, self.active - self._marks[-1][0] - expected)

    def repeat_allowed(self, pace: float | None) -> float:
        """How long steps may be repeated after a resume until the furthest is reached again."""
        if self.furthest is None or self.repeat_from is None or not pace:
            return _REPEAT_SLACK + _REPEAT_UNKNOWN
        return _REPEAT_SLACK + _REPEAT_FACTOR * (self.furthest - self.repeat_from) / pace

    def window(self, policy: StallPolicy) -> float:
        """Training time over which a pace is taken: longer only where lines are rarer."""
        return max(policy.min_window, policy.patience_lines * self.line_interval())

    def pace(self, window: float) -> float | None:
        """Steps per second over the last `window` seconds of training; None before there is anything to measure."""
        if len(self._marks) < 2:
            return None
        end, last = self._marks[-1]
        end += self.overdue()
        begin = max(end - window, self._marks[0][0])
        if end - begin <= 0:
            return None
        return (last - position_at(self._marks, begin)) / (end - begin)

    def pace_between(self, begin: float, end: float) -> float | None:
        """Steps per second between two moments of training time, as far as the marks reach."""
        if len(self._marks) < 2:
            return None
        begin, end = max(begin, self._marks[0][0]), min(end, self._marks[-1][0])
        return (
            (position_at(self._marks, end) - position_at(self._marks, begin)) / (end - begin) if end > begin else None
        )

    def seconds_left(self, pace: float | None, *, since: float | None = None) -> float | None:
        """Training time until the end at a pace, from the step `since` on (else the furthest); None while unknown."""
        begin = self.furthest if since is None else since
        if self.total is None or begin is None or not pace:
            return None
        return max(0.0, self.total - begin) / pace

    @property
    def last_mark(self) -> tuple[float, float] | None:
        """Training time and step of the last progress."""
        return self._marks[-1] if self._marks else None

    def measured(self) -> float:
        """Training time that the marks cover."""
        return self.active - self._marks[0][0] if self._marks else 0.0

    def is_measured(self, policy: StallPolicy) -> bool:
        """Whether enough of the training was seen for conclusions from its pace."""
        return self.moves >= policy.min_samples and self.measured() >= _MEASURED_AT_LEAST * policy.min_window

    def forget_trouble(self) -> None:
        """Restart the pace at the last mark: the time before was not training."""
        self._marks = self._marks[-1:]
        if self._marks:
            self._marks = [(self.active, self._marks[0][1])]
        self.still = 0.0
        self.repeating = 0.0

    def _begin(self, position: Position) -> None:
        self.furthest = self.position = position.value
        self.total = position.total
        self.counts_steps = position.counts_steps
        self.moves = 0
        self.still = 0.0
        self._first_gap = 0.0
        self._marks.clear()
        self._gaps.clear()

    def _progress(self, value: float, policy: StallPolicy) -> None:
        if self.moves == 0:
            self._first_gap = self.still  # compilation or a late first line: no part of the pace
        elif self._marks:
            self._gaps = [*self._gaps[1 - _GAPS_KEPT :], self.active - self._marks[-1][0]]
        self.furthest = value
        self.moves += 1
        self.still = self.repeating = 0.0
        self.repeat_from = None
        self._mark(value, policy)

    def _mark(self, value: float, policy: StallPolicy) -> None:
        window = self.window(policy)
        spacing = window / _MARKS_PER_WINDOW
        if len(self._marks) > 2 and self._marks[-1][0] - self._marks[-2][0] < spacing:
            self._marks.pop()
        self._marks.append((self.active, value))
        oldest = self.active - WINDOWS_KEPT * window
        while len(self._marks) > 2 and self._marks[1][0] < oldest:
            self._marks.pop(0)


def position_at(marks: Sequence[tuple[float, float]], active: float) -> float:
    """The furthest step at a moment of training time, evenly between two marks."""
    for (earlier, low), (later, high) in zip(reversed(marks[:-1]), reversed(marks), strict=False):
        if earlier <= active:
            part = min(1.0, (active - earlier) / (later - earlier)) if later > earlier else 1.0
            return low + part * (high - low)
    return marks[0][1]
