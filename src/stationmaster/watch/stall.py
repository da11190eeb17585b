"""Whether a training is stalling, judged by its ETA: a healthy one falls about a second per second of training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from stationmaster.durations import format_duration
from stationmaster.watch.policy import StallPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class EtaReading:
    """An ETA at a moment of training time."""

    at: float
    eta_seconds: float
    step: float
    steps_per_second: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StallAnalysis:
    """A verdict with its evidence."""

    is_stalling: bool
    confidence: str | None  # "high": ETA and speed; "medium": ETA alone; "low": speed alone, a warning only
    reason: str
    recommendation: str  # "watch", "alert", "terminate"
    current_step: float | None = None
    total_steps: float | None = None
    cause: str | None = None
    eta_seconds: float | None = None
    steps_per_second: float | None = None
    usual_steps_per_second: float | None = None
    is_early: bool = False  # the machine proves it; the log alone does not yet

    def as_json(self) -> dict[str, Any]:
        """The documented names, as the API, the command line and the event payloads show them."""
        return {
            "isStalling": self.is_stalling,
            "confidence": self.confidence,
            "reason": self.reason,
            "recommendation": self.recommendation,
            "currentStep": _plain(self.current_step),
            "totalSteps": _plain(self.total_steps),
            "cause": self.cause,
            "eta_seconds": None if self.eta_seconds is None else round(self.eta_seconds),
            "steps_per_second": _significant(self.steps_per_second),
            "usual_steps_per_second": _significant(self.usual_steps_per_second),
        }

    def with_grace_over(self) -> StallAnalysis:
        return replace(self, recommendation="terminate") if self.is_stalling else self


def no_verdict(reason: str, **evidence: Any) -> StallAnalysis:
    return StallAnalysis(is_stalling=False, confidence=None, reason=reason, recommendation="watch", **evidence)


def judge(
    history: Sequence[EtaReading],
    policy: StallPolicy,
    *,
    total_steps: float | None = None,
    window: float | None = None,
    peak_speed: float | None = None,
    grace_is_over: bool = False,
) -> StallAnalysis:
    """Whether the ETA failed to converge over the last window of `history`.

    The window is the last three readings and at least `min_window`. Comparisons are strict: an ETA that falls by
    exactly half of the elapsed time still converges, and exactly half of the peak speed is not yet a drop.
    """
    if not policy.enabled:
        return no_verdict("Stall detection is off for this job.")
    begin = _window_begin(history, policy, window or policy.min_window)
    if begin is None:
        return no_verdict("Not enough readings yet.", total_steps=total_steps)
    now = history[-1]
    then = _reading_at(history, begin, max(window or policy.min_window, now.at - history[-policy.window_readings].at))
    evidence: dict[str, Any] = {"current_step": now.step, "total_steps": total_steps, "eta_seconds": now.eta_seconds}
    evidence["steps_per_second"] = now.steps_per_second
    if is_near_end(now.step, total_steps, now.eta_seconds, policy):
        return no_verdict("Close to the end: no verdict.", **evidence)
    has_slowed = _has_slowed(history, policy, peak_speed)
    if convergence(then, now) < policy.eta_convergence_threshold:
        verdict = StallAnalysis(
            is_stalling=True,
            confidence="high" if has_slowed else "medium",
            reason=_describe(then, now, has_slowed=has_slowed),
            recommendation="alert",
            cause="eta",
            **evidence,
        )
        return verdict.with_grace_over() if grace_is_over else verdict
    if has_slowed:
        warning = "Speed is below half of its peak, but the ETA still falls."
        return StallAnalysis(
            is_stalling=False, confidence="low", reason=warning, recommendation="watch", cause="speed", **evidence
        )
    return no_verdict("The ETA falls as it should.", **evidence)


def convergence(then: EtaReading, now: EtaReading) -> float:
    """By how much the ETA fell per second: about 1 when healthy, 0 when flat, negative when rising."""
    return (then.eta_seconds - now.eta_seconds) / (now.at - then.at)


def is_near_end(step: float | None, total: float | None, eta_seconds: float | None, policy: StallPolicy) -> bool:
    """Whether the run is too close to its end for a verdict."""
    if step is not None and total and step / total >= policy.near_end_progress:
        return True
    return eta_seconds is not None and eta_seconds < policy.near_end_eta


def _window_begin(history: Sequence[EtaReading], policy: StallPolicy, window: float) -> int | None:
    if len(history) < max(policy.min_samples, policy.window_readings):
        return None
    now = history[-1].at
    for index in range(len(history) - policy.window_readings, -1, -1):
        if now - history[index].at >= window:
            return index
    return None


def _reading_at(history: Sequence[EtaReading], begin: int, window: float) -> EtaReading:
    """The reading one window ago, interpolated, so that the verdict does not depend on the times of the looks."""
    earlier, later, at = history[begin], history[begin + 1], history[-1].at - window
    part = (at - earlier.at) / (later.at - earlier.at)

    def between(low: float, high: float) -> float:
        return low + part * (high - low)

    return EtaReading(
        at=at, eta_seconds=between(earlier.eta_seconds, later.eta_seconds), step=between(earlier.step, later.step)
    )


def _has_slowed(history: Sequence[EtaReading], policy: StallPolicy, peak_speed: float | None) -> bool:
    now = history[-1].steps_per_second
    if now is None:
        return False
    peak = max([peak_speed or 0.0, *(reading.steps_per_second or 0.0 for reading in history)])
    return peak > 0 and 1 - now / peak > policy.speed_drop_threshold


def _describe(then: EtaReading, now: EtaReading, *, has_slowed: bool) -> str:
    change = then.eta_seconds - now.eta_seconds
    moved = f"fell by only {format_duration(change)}" if change > 0 else "did not fall"
    text = (
        f"ETA {moved} in {format_duration(now.at - then.at)} of training and is now "
        f"{format_duration(now.eta_seconds)}; {now.step - then.step:g} steps were done in that time"
    )
    return f"{text}, at less than half the peak speed." if has_slowed else f"{text}."


def _plain(number: float | None) -> float | int | None:
    return int(number) if number is not None and number == int(number) else number


def _significant(number: float | None) -> float | None:
    return None if number is None else float(f"{number:.4g}")
