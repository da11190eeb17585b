"""The stall watch of one run: log readings and samples in, looks at intervals, events out. Pure; time is an argument.

Between looks its whole memory is `state()`, small and plain JSON: one worker can store it and another continue.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from stationmaster.saved_state import NOT_STORED, from_json, to_json
from stationmaster.watch.counter import Counter
from stationmaster.watch.escalation import CLEARED, FLAGGED, Escalation, StallEvent
from stationmaster.watch.log_moment import LogMoment
from stationmaster.watch.phases import PhaseBook
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.progress import ProgressTrack
from stationmaster.watch.recovery import Recovery
from stationmaster.watch.stall import StallAnalysis, is_near_end, no_verdict
from stationmaster.watch.stillness import MachineMoment, Stillness
from stationmaster.watch.trend import Trend
from stationmaster.watch.verdict import Run, judge_run, seconds_to_proof

_SAMPLES_LATE = 1 / 40  # of a window: samples of a machine that rests are written two at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one look at the run found."""

    analysis: StallAnalysis
    event: StallEvent | None
    again_in: float | None = None  # seconds until the next look should come, if the usual one is too late


@dataclass(slots=True)
class StallWatch:
    """Follows one run. Pass what the log contains to `observe`, samples to `observe_machine`; `look` at every poll."""

    policy: StallPolicy = field(default_factory=StallPolicy, metadata=NOT_STORED)
    total_steps: float | None = field(default=None, metadata=NOT_STORED)
    gpus: int | None = None  # how many the machine has; None while that is not known
    _counter: Counter = field(default_factory=Counter)
    _track: ProgressTrack = field(default_factory=ProgressTrack)
    _book: PhaseBook = field(default_factory=PhaseBook)
    _trend: Trend = field(default_factory=Trend)
    _stillness: Stillness = field(default_factory=Stillness)
    _escalation: Escalation = field(default_factory=Escalation)
    _recovery: Recovery | None = None
    _flagged_as: StallAnalysis | None = None
    _at: float | None = None
    _idle: float = 0.0  # since anything at all moved
    _is_closing: bool = False  # was healthy and close to its end: slow last steps are no stall

    def __post_init__(self) -> None:
        self._counter.asked_total = self.total_steps

    def observe(self, moment: LogMoment) -> None:
        """Record what the log contains."""
        self._pass_time(moment.at)
        position = self._counter.read(moment)
        moves_counter = position is not None and position.value != self._track.position
        phase = moment.phase or ("training" if moves_counter else None)
        changes_phase = phase is not None and phase != self._book.phase
        self._book.enter(phase, has_started=self._track.has_started)
        if moment.moved or changes_phase or moves_counter:
            self._idle = 0.0
            if self._recovery:
                self._recovery.note_sign()
        if position is None:
            return
        if position.is_new_unit:
            self._trend = Trend()
        if self._track.note(position, self.policy):
            self._book.close(learn=not self._escalation.is_flagged)
            self._stillness.note_progress(learn=not self._escalation.is_flagged)
            if self._recovery:
                self._recovery.note_progress(self._track, self.policy)

    def observe_machine(self, moment: MachineMoment) -> None:
        """Record what a sample shows of the machine."""
        self._stillness.observe(moment, self.policy)

    def look(self, at: float) -> Look:
        """The verdict at this moment, and an event if there is news. Call it only after the log was read."""
        self._pass_time(at)
        if not self.policy.enabled:
            return Look(analysis=no_verdict("Stall detection is off for this job."), event=None)
        self._trend.sample(self._track, self.policy, learn=not self._escalation.is_flagged)
        self._note_closing()
        found = self._still_flagged(self._recovery, at) if self._recovery else self._judge(at)
        self._escalation, kind = self._escalation.next(
            is_stalling=found.is_stalling, is_recovering=self._is_coming_back(), at=at, policy=self.policy
        )
        self._follow(kind, found)
        if self._escalation.grace_is_over(at, self.policy):
            found = found.with_grace_over()
        event = StallEvent(kind=kind, at=at, analysis=found) if kind else None
        return Look(analysis=found, event=event, again_in=self._again_in(at))

    @property
    def steps_per_second(self) -> float | None:
        """Pace over the last window of training time, by when the steps were printed: pauses do not slow it down, and
        a step that is overdue does. None while unknown, or where the log counts epochs only.
        """
        return self._pace() if self._track.counts_steps else None

    @property
    def eta_seconds(self) -> float | None:
        """Training time left at that pace, with the steps that are being repeated; None without a total or a pace."""
        return self._track.seconds_left(self._pace(), since=self._track.position)

    @property
    def is_measured(self) -> bool:
        """Whether enough of the training was seen for conclusions from its pace and ETA."""
        return self._track.is_measured(self.policy)

    def state(self) -> dict[str, Any]:
        """The whole state of the watch, as plain JSON values."""
        return to_json(self)

    @classmethod
    def restore(
        cls, state: Mapping[str, Any], policy: StallPolicy | None = None, *, total_steps: float | None = None
    ) -> StallWatch:
        """A watch that continues exactly where `state` was taken."""
        return from_json(cls, state, policy=policy or StallPolicy(), total_steps=total_steps)

    def _pass_time(self, at: float) -> None:
        """Count the time since the last call. A clock set back counts none; not looking does not prove silence."""
        elapsed = max(0.0, at - self._at) if self._at is not None else 0.0
        self._at = at
        seen_elapsed = min(elapsed, self.policy.blind_gap)
        self._idle += seen_elapsed
        self._book.spend(seen_elapsed)
        self._track.spend(elapsed, seen_seconds=seen_elapsed, is_training=not self._book.stops_clock)

    def _pace(self) -> float | None:
        return self._track.pace(self._track.window(self.policy))

    def _note_closing(self) -> None:
        if self._escalation.is_flagged or self._trend.is_failing or not self._track.has_started:
            return
        eta = self._trend.eta(self._track)
        self._is_closing = is_near_end(self._track.furthest, self._track.total, eta, self.policy)

    def _again_in(self, at: float) -> float | None:
        if self._escalation.is_flagged:
            return None
        missing = seconds_to_proof(self._run(at), self.policy)
        return None if missing is None else missing + _SAMPLES_LATE * self.policy.min_window

    def _judge(self, at: float) -> StallAnalysis:
        return judge_run(self._run(at), self.policy)

    def _run(self, at: float) -> Run:
        return Run(
            track=self._track,
            book=self._book,
            trend=self._trend,
            idle=self._idle,
            is_closing=self._is_closing,
            stillness=self._stillness,
            at=at,
        )

    def _still_flagged(self, recovery: Recovery, at: float) -> StallAnalysis:
        """The flagged verdict, until the run has recovered."""
        assert self._flagged_as is not None
        if (
            self._book.is_over
            or recovery.has_resumed(self._track, self.policy)
            or recovery.has_settled(self._track, self._trend, self.policy)
        ):
            return no_verdict("Progress has resumed.", current_step=self._track.furthest, total_steps=self._track.total)
        if self._flagged_as.is_early and self._stillness.works_again(self.policy):
            self._stillness.refute()
            found = self._judge(at)
            if not found.is_stalling:
                return replace(found, reason="The machine works again.", is_early=True)
            self._flagged_as = found
        return replace(self._flagged_as, current_step=self._track.furthest)

    def _is_coming_back(self) -> bool:
        return self._recovery is not None and self._recovery.is_coming_back(self._track, self.policy)

    def _follow(self, kind: str | None, found: StallAnalysis) -> None:
        if kind == FLAGGED:
            self._flagged_as = found
            self._recovery = Recovery.since_flag(
                cause=found.cause or "",
                track=self._track,
                usual_pace=self._trend.usual_pace,
                pace=self._trend.pace,
            )
        elif kind == CLEARED:
            self._flagged_as = self._recovery = None
            if found.is_early:
                return  # withdrawn, not recovered: the time without progress goes on counting
            self._track.forget_trouble()
            self._trend.forget_samples()
            self._book.close(learn=False)
            self._idle = 0.0
