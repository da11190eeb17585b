"""The run's pace and own ETA from look to look: usual pace, peak, and whether the ETA keeps failing to converge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median
from typing import NamedTuple

from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.progress import WINDOWS_KEPT, ProgressTrack
from stationmaster.watch.stall import EtaReading, StallAnalysis, judge

# Parts of `min_window`, so that a policy for short trainings is the same one on another scale.
_SPACING = 1 / 30  # a stream looks far more often than a trend needs
_STANDING_AT_LEAST = 1 / 5
_BRISK_SPAN = 1 / 10
_USUAL_KEPT = 40
_COLLAPSE_SHARE = 0.75
_UNDISTURBED_QUANTILE = 0.8
_LINES_PER_HALF = 2.5
_STEPS_OF_NOISE = 1.0


class _Sample(NamedTuple):
    at: float  # training time
    step: float
    pace: float  # over a window
    brisk: float  # over a tenth of a window
    is_failing: bool


@dataclass(slots=True)
class Trend:
    """Samples of the pace, one per look while training goes on."""

    _samples: list[_Sample] = field(default_factory=list)
    _usual: list[float] = field(default_factory=list)
    _usual_undisturbed: list[float] = field(default_factory=list)
    _peak: float = 0.0

    @property
    def pace(self) -> float | None:
        return self._samples[-1].pace if self._samples else None

    @property
    def usual_pace(self) -> float | None:
        """Median of the paces while all was well."""
        return median(self._usual) if self._usual else None

    @property
    def is_failing(self) -> bool:
        return bool(self._samples) and self._samples[-1].is_failing

    def sample(self, track: ProgressTrack, policy: StallPolicy, *, learn: bool) -> None:
        """Sample the pace at this moment, unless there was no training since the last sample."""
        if track.furthest is None or not track.is_measured(policy):
            return
        if self._samples and track.active - self._samples[-1].at < _SPACING * policy.min_window:
            return
        pace = track.pace(track.window(policy))
        if pace is None:
            return
        brisk = track.pace(max(_BRISK_SPAN * policy.min_window, policy.patience_lines * track.line_interval())) or 0.0
        self._samples.append(_Sample(track.active, track.furthest, pace, brisk, False))
        is_failing = self.judge(track, policy).is_stalling
        self._samples[-1] = _Sample(track.active, track.furthest, pace, brisk, is_failing)
        is_standing = track.overdue() > _STANDING_AT_LEAST * policy.min_window
        if learn and not is_failing and not is_standing:
            self._usual = [*self._usual[1 - _USUAL_KEPT :], pace]
            self._usual_undisturbed = [*self._usual_undisturbed[1 - _USUAL_KEPT :], self._undisturbed(track, policy)]
        self._peak = max(self._peak, pace)
        self._drop_before(track.active - WINDOWS_KEPT * track.window(policy))

    def judge(self, track: ProgressTrack, policy: StallPolicy) -> StallAnalysis:
        """The verdict over the last window alone; it is a stall only if it stays the same."""
        return judge(
            self._eta_readings(track, policy),
            policy,
            total_steps=track.total,
            window=track.window(policy),
            peak_speed=self._peak,
        )

    def eta(self, track: ProgressTrack) -> float | None:
        """Remaining steps over the pace of the last minutes of training; None without a total or a pace."""
        return track.seconds_left(self.pace)

    def keeps_failing(self, track: ProgressTrack, policy: StallPolicy) -> bool:
        """The ETA has failed to converge for longer than a single drop explains, and even the best minutes are slow.

        The best minutes distinguish a slow-down from a shared machine, where slow spells come and go.
        """
        if not self.is_failing or not self._usual_undisturbed:
            return False
        if self._undisturbed(track, policy) >= policy.slowdown_floor * median(self._usual_undisturbed):
            return False
        since = self._since(lambda sample: sample.is_failing, share=policy.sustain_share)
        windows = (track.active - since) / track.window(policy)
        return windows >= policy.trend_windows and _slows_on(track, since, ratio=_needed_ratio(windows, policy))

    def has_collapsed(self, track: ProgressTrack, policy: StallPolicy) -> bool:
        """The pace is about a sixth of the usual or less, and has been for a while."""
        if not self._is_below(policy.collapse_threshold):
            return False
        limit = policy.collapse_threshold * (self.usual_pace or 0.0)
        since = self._since(lambda sample: sample.pace < limit, share=_COLLAPSE_SHARE)
        return track.active - since >= policy.collapse_hold

    def has_converged(self, track: ProgressTrack, policy: StallPolicy) -> bool:
        """Over a whole window, every look found the ETA converging."""
        if not self._samples:
            return False
        since = self._since(lambda sample: not sample.is_failing, share=1.0)
        return not self.is_failing and track.active - since >= track.window(policy)

    def forget_samples(self) -> None:
        """Drop the samples, but keep what is usual."""
        self._samples.clear()

    def _eta_readings(self, track: ProgressTrack, policy: StallPolicy) -> list[EtaReading]:
        last = self._samples[-1] if self._samples else None
        if last is None:
            return []
        if track.total is not None:
            end = track.total
        else:  # without a total, assume a fixed amount of work ahead
            end = last.step + policy.unknown_total_horizon * (self.usual_pace or last.pace)
        return [
            EtaReading(
                at=sample.at,
                eta_seconds=(end - sample.step) / max(sample.pace, 1e-9),
                step=sample.step,
                steps_per_second=sample.pace,
            )
            for sample in self._samples
        ]

    def _undisturbed(self, track: ProgressTrack, policy: StallPolicy) -> float:
        """Pace of the better minutes of the last window."""
        since = track.active - track.window(policy)
        recent = sorted(sample.brisk for sample in self._samples if sample.at >= since)
        return recent[int(_UNDISTURBED_QUANTILE * (len(recent) - 1))] if recent else 0.0

    def _since(self, holds: Callable[[_Sample], bool], *, share: float) -> float:
        """The time since which it holds for at least this share of the samples."""
        since, holding = self._samples[-1].at, 0
        for count, sample in enumerate(reversed(self._samples), start=1):
            if not holds(sample):
                continue
            holding += 1
            if holding / count >= share:
                since = sample.at
        return since

    def _is_below(self, part: float) -> bool:
        return self.pace is not None and self.usual_pace is not None and self.pace < part * self.usual_pace

    def _drop_before(self, oldest: float) -> None:
        while len(self._samples) > 2 and self._samples[1].at < oldest:
            self._samples.pop(0)


def _needed_ratio(windows: float, policy: StallPolicy) -> float:
    """How much slower the later half must be: the longer it lasts, the less."""
    if windows >= policy.sustain_windows:
        return policy.sustain_ratio
    part = (windows - policy.trend_windows) / (policy.sustain_windows - policy.trend_windows)
    return policy.trend_ratio + part * (policy.sustain_ratio - policy.trend_ratio)


def _slows_on(track: ProgressTrack, since: float, *, ratio: float) -> bool:
    """Whether the later half of the time was slower than the earlier one: a drop that goes on, not one that is over."""
    since += track.line_interval()  # the first line may report on the time before
    half = (track.active - since) / 2
    if half < _LINES_PER_HALF * track.line_interval():
        return False
    earlier, later = track.pace_between(since, since + half), track.pace_between(since + half, track.active)
    if earlier is None or later is None:
        return False
    noise = _STEPS_OF_NOISE / half if track.counts_steps else 0.0  # of few steps one counts for much
    return later + noise < ratio * earlier
