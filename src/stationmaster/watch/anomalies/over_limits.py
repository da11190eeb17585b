"""At this pace the run will not end within the hours or the credits it was given."""

from __future__ import annotations

from stationmaster.durations import format_duration
from stationmaster.money import MicroDollars, cost, format_dollars
from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals

_NEAR = 1.1  # an ETA wobbles: a tenth over the limit is no more than a suspicion


def find_eta_beyond_hours(vitals: Vitals) -> Anomaly | None:
    """The time used and the time ahead together are more than `max_hours`."""
    if vitals.eta_seconds is None or vitals.max_seconds is None or vitals.started_at is None:
        return None
    needed = vitals.now - vitals.started_at + vitals.eta_seconds
    if needed <= vitals.max_seconds:
        return None
    evidence = f"needs about {format_duration(needed)} in all, the limit is {format_duration(vitals.max_seconds)}"
    return Anomaly(kind="eta_beyond_hours", evidence=evidence, confidence=_confidence(needed / vitals.max_seconds))


def find_eta_beyond_credit(vitals: Vitals) -> Anomaly | None:
    """What was spent and what the rest will cost are more than the credit."""
    if vitals.eta_seconds is None or vitals.price_per_hour is None or vitals.credit is None or vitals.spent is None:
        return None
    needed = MicroDollars(vitals.spent + cost(vitals.price_per_hour, vitals.eta_seconds))
    if needed <= vitals.credit:
        return None
    evidence = f"will cost about {format_dollars(needed)} in all, the credit is {format_dollars(vitals.credit)}"
    ratio = needed / vitals.credit if vitals.credit > 0 else float("inf")
    return Anomaly(kind="eta_beyond_credit", evidence=evidence, confidence=_confidence(ratio))


def _confidence(ratio: float) -> Confidence:
    return Confidence.MEDIUM if ratio < _NEAR else Confidence.HIGH
