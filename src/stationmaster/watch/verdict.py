"""The rules that find a stalled run, in the order they are tried; each names its cause and its evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stationmaster.durations import format_duration
from stationmaster.watch.phases import PhaseBook
from stationmaster.watch.policy import StallPolicy
from stationmaster.watch.progress import ProgressTrack
from stationmaster.watch.stall import StallAnalysis, is_near_end, no_verdict
from stationmaster.watch.stillness import Stillness
from stationmaster.watch.trend import Trend


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything a verdict is based on."""

    track: ProgressTrack
    book: PhaseBook
    trend: Trend
    idle: float  # seconds since anything at all moved
    is_closing: bool  # was healthy and close to its end
    stillness: Stillness
    at: float


def judge_run(run: Run, policy: StallPolicy) -> StallAnalysis:
    """Whether the run is stalled at this moment, and why."""
    if run.book.is_over:
        return no_verdict("Training has finished.", current_step=run.track.furthest, total_steps=run.track.total)
    if run.is_closing or is_near_end(run.track.furthest, run.track.total, run.trend.eta(run.track), policy):
        return _calm(run, "Close to the end: no verdict.")
    for rule in _RULES:
        if found := rule(run, policy):
            return found
    usual = run.trend.judge(run.track, policy)
    if usual.confidence == "low":
        return replace(usual, usual_steps_per_second=run.trend.usual_pace)
    return _calm(run, "Progress is as usual." if run.track.has_started else "Not started yet.")


def _pause_too_long(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    overrun = run.book.overrun(policy, silence=run.track.still if run.track.has_started else 0.0)
    if overrun is None or (not run.track.has_started and overrun.lasted <= policy.start_limit):
        return None  # before the first step a finished pause passes into loading or compiling unannounced
    reason = f"{overrun.phase.capitalize()} has lasted {format_duration(overrun.lasted)}"
    return _stall(run, "pause", "medium", f"{reason}; the limit is {format_duration(overrun.allowed)}.")


def _preparation_stuck(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    idle = format_duration(run.idle)
    if not run.track.has_started:
        if run.idle <= policy.start_limit:
            return None
        doing = f" while {run.book.phase}" if run.book.is_preparation else ""
        return _stall(run, "start", "medium", f"Nothing has moved for {idle}{doing}, before the first step.")
    if not run.book.is_preparation or run.idle <= policy.restart_limit:
        return None
    return _stall(
        run, "loading", "medium", f"Nothing has moved for {idle} while {run.book.phase}, after training had started."
    )


def _repeats_too_long(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    track = run.track
    if not track.is_repeating or track.repeating <= track.repeat_allowed(run.trend.usual_pace):
        return None
    spent = format_duration(track.repeating)
    return _stall(run, "repeat", "medium", f"Steps up to {track.furthest:g} have been repeated for {spent}.")


def _stands_still(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    track = run.track
    patience = track.patience(run.trend.usual_pace, policy)
    still = track.still + run.idle if run.book.has_failed else track.still  # an error needs no patience
    if not track.has_started or (run.book.stops_clock and not run.book.has_failed) or still <= patience:
        return None
    eta = run.trend.eta(track)
    level = f"ETA stands at about {format_duration(eta)}: " if eta is not None else ""
    reason = f"{level}no new step since step {track.furthest:g}, for {format_duration(still)} of training time."
    return _stall(run, "hang", "high", reason)


def _does_nothing(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    """The machine proves what the log alone shows only after a whole window."""
    lasted, needed = _proof(run, policy)
    if lasted <= needed:
        return None
    evidence = f"for {format_duration(lasted)} the machine has done nothing: {run.stillness.describe()}."
    found = _stall(run, _standing_cause(run), "high", f"{_standing(run)}; {evidence}")
    return replace(found, is_early=True)


def seconds_to_proof(run: Run, policy: StallPolicy) -> float | None:
    """How much longer the machine has to do nothing for an early verdict; None while that is far away."""
    lasted, needed = _proof(run, policy)
    return needed - lasted if needed / 2 <= lasted <= needed else None


def _proof(run: Run, policy: StallPolicy) -> tuple[float, float]:
    """For how long neither the machine nor the log has shown anything, and how long is a stall."""
    is_training = run.track.has_started and (not run.book.stops_clock or run.book.has_failed)
    windows = policy.still_windows if is_training else policy.still_pause_windows
    lasted = min(run.stillness.lasted(run.at, policy), run.idle)
    if is_training and not run.book.has_failed:
        lasted = min(lasted, run.track.still)
    return lasted, run.stillness.needed(windows * policy.min_window, policy)


def _standing_cause(run: Run) -> str:
    if not run.track.has_started:
        return "start"
    if run.book.is_pause:
        return "pause"
    return "loading" if run.book.is_preparation and not run.book.has_failed else "hang"


def _standing(run: Run) -> str:
    """What stands still, and for how long."""
    idle = format_duration(run.idle)
    phase = f" while {run.book.phase}" if run.book.is_pause or run.book.is_preparation else ""
    if not run.track.has_started:
        return f"Nothing has moved for {idle}{phase}, before the first step"
    eta = run.trend.eta(run.track)
    level = f"ETA stands at about {format_duration(eta)}: no" if eta is not None else "No"
    return f"{level} new step since step {run.track.furthest:g}{phase}, and nothing has moved for {idle}"


def _slows_down(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    if not run.trend.keeps_failing(run.track, policy):
        return None
    found = run.trend.judge(run.track, policy)
    return replace(found, cause="slow_down", usual_steps_per_second=run.trend.usual_pace)


def _has_collapsed(run: Run, policy: StallPolicy) -> StallAnalysis | None:
    pace, usual = run.trend.pace, run.trend.usual_pace
    if not usual or pace is None or not run.trend.has_collapsed(run.track, policy):
        return None
    eta = run.trend.eta(run.track)
    level = f"; ETA stands at {format_duration(eta)}" if eta is not None else ""
    reason = f"Pace has fallen to {100 * pace / usual:.0f} % of the usual {usual:.3g} steps per second{level}."
    return _stall(run, "collapse", "high", reason)


_RULES = (
    _pause_too_long,
    _preparation_stuck,
    _repeats_too_long,
    _stands_still,
    _does_nothing,
    _slows_down,
    _has_collapsed,
)


def _stall(run: Run, cause: str, confidence: str, reason: str) -> StallAnalysis:
    return StallAnalysis(
        is_stalling=True,
        confidence=confidence,
        reason=reason,
        recommendation="alert",
        cause=cause,
        current_step=run.track.furthest,
        total_steps=run.track.total,
        eta_seconds=run.trend.eta(run.track),
        steps_per_second=run.trend.pace,
        usual_steps_per_second=run.trend.usual_pace,
    )


def _calm(run: Run, reason: str) -> StallAnalysis:
    return no_verdict(
        reason,
        current_step=run.track.furthest,
        total_steps=run.track.total,
        eta_seconds=run.trend.eta(run.track),
        steps_per_second=run.trend.pace,
        usual_steps_per_second=run.trend.usual_pace,
    )
