"""The machine's clock is wrong, or jumps: its times mean nothing beside ours, and certificates may fail."""

from __future__ import annotations

from stationmaster.durations import format_duration
from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals

_WRONG = 120.0
_JUMP = 30.0


def find_clock_skew(vitals: Vitals) -> Anomaly | None:
    """Two minutes or more beside home's clock, or half a minute of difference between two readings."""
    if not vitals.clock:
        return None
    ahead = vitals.clock[-1].ahead_seconds
    if len(vitals.clock) > 1:
        jump = ahead - vitals.clock[-2].ahead_seconds
        if abs(jump) >= _JUMP:
            way = "forward" if jump > 0 else "back"
            return _found(f"the machine's clock was set {way} by {format_duration(abs(jump))}", Confidence.HIGH)
    if abs(ahead) >= _WRONG:
        way = "ahead" if ahead > 0 else "behind"
        return _found(f"the machine's clock is {format_duration(abs(ahead))} {way}", Confidence.HIGH)
    return None


def _found(evidence: str, confidence: Confidence) -> Anomaly:
    return Anomaly(kind="clock_skew", evidence=evidence, confidence=confidence)
