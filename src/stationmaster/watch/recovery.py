"""Whether a flagged run has recovered: only new steps at more than half of the speed before the stall count."""

from __future__ import annotations

from dataclasses import dataclass, field

from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.progress import ProgressTrack, position_at
from stationmaster.watch.trend import Trend

_STANDSTILLS = ("hang", "pause", "repeat")
_PREPARATION_STALLS = ("start", "loading")
_SIGNS_NEEDED = 2
_NOISE_FACTOR = 1.3  # a slow-down flagged above half of the speed has to rise by this much to be over at once


@dataclass(slots=True, kw_only=True)
class Recovery:
    """What has happened since the flag."""

    cause: str
    _usual_pace: float | None
    _pace_at_flag: float | None
    _interval: float
    _active_at_flag: float
    _signs: int = 0
    _looks_in_a_row: int = 0
    _marks: list[tuple[float, float]] = field(default_factory=list)

    @classmethod
    def since_flag(cls, *, cause: str, track: ProgressTrack, usual_pace: float | None, pace: float | None) -> Recovery:
        """A recovery that begins at this moment, when the run is flagged."""
        return cls(
            cause=cause,
            _usual_pace=usual_pace,
            _pace_at_flag=pace,
            _interval=track.line_interval(),
            _active_at_flag=track.active,
            _marks=[track.last_mark] if cause not in _STANDSTILLS and track.last_mark is not None else [],
        )

    def note_sign(self) -> None:
        """Record that something moved in a phase without steps."""
        self._signs += 1

    def note_progress(self, track: ProgressTrack, policy: StallPolicy) -> None:
        assert track.furthest is not None
        self._marks.append((track.active, track.furthest))
        oldest = track.active - 2 * self._window(policy)
        while len(self._marks) > 2 and self._marks[1][0] < oldest:
            self._marks.pop(0)

    def is_coming_back(self, track: ProgressTrack, policy: StallPolicy) -> bool:
        """New steps have just started to arrive at a good pace, or steps are being repeated after a restart."""
        if track.is_repeating:
            is_moving = track.still < policy.resume_span
            return is_moving and self.cause != "repeat" and track.repeating < track.repeat_allowed(self._usual_pace)
        if len(self._marks) == 1 and self.cause in _STANDSTILLS:  # the first new line: wait for the second
            return track.active - self._marks[0][0] <= 1.5 * self._interval + policy.resume_span
        pace, _ = self._pace(track, policy)
        return pace is not None and pace > self._wanted_pace(policy)

    def has_resumed(self, track: ProgressTrack, policy: StallPolicy) -> bool:
        """Whether the flag can be cleared. Call it once per look: it counts the calls."""
        if self.cause in _PREPARATION_STALLS:
            return self._signs >= _SIGNS_NEEDED or bool(self._marks[1:])
        pace, span = self._pace(track, policy)
        if pace is None or pace <= self._wanted_pace(policy):
            self._looks_in_a_row = 0
            return False
        if self.cause in _STANDSTILLS:
            return span >= policy.resume_span
        self._looks_in_a_row += 1
        return self._looks_in_a_row > 1 and span >= policy.resume_window

    def has_settled(self, track: ProgressTrack, trend: Trend, policy: StallPolicy) -> bool:
        """Whether a slow run has kept one pace for a whole window since the flag, above half of the usual."""
        if self.cause in _STANDSTILLS or track.active - self._active_at_flag < track.window(policy):
            return False
        enough = policy.resume_pace * (self._usual_pace or 0.0)
        return trend.has_converged(track, policy) and trend.pace is not None and trend.pace > enough

    def _window(self, policy: StallPolicy) -> float:
        return max(policy.resume_window, 2 * self._interval)

    def _wanted_pace(self, policy: StallPolicy) -> float:
        usual = self._usual_pace or 0.0
        enough = policy.resume_pace * usual
        if self.cause in _STANDSTILLS or self._pace_at_flag is None:
            return enough
        return max(enough, min(_NOISE_FACTOR * self._pace_at_flag, policy.slowdown_floor * usual))

    def _pace(self, track: ProgressTrack, policy: StallPolicy) -> tuple[float | None, float]:
        """Pace over the last minutes since the flag, and the span it was taken over."""
        if len(self._marks) < 2:
            return None, 0.0
        end, last = self._marks[-1]
        end += max(0.0, track.active - end - 1.5 * self._interval)
        begin = max(self._marks[0][0], end - self._window(policy))
        span = end - begin
        return ((last - position_at(self._marks, begin)) / span if span > 0 else None), span
