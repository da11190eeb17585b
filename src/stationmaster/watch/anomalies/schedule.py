"""Rules about what is due when: late checkpoints, and a run that will exceed its hours or its credit."""

from __future__ import annotations

import itertools
from statistics import median

from stationmaster.durations import format_duration
from stationmaster.money import MicroDollars, cost, format_dollars
from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals

_LATE_FACTOR = 1.5
_MIN_CHECKPOINTS = 3
_NEAR_LIMIT = 1.1  # an ETA wobbles: up to 10 % over the limit is only a suspicion


def find_late_checkpoint(vitals: Vitals) -> Anomaly | None:
    """More than 1.5 times the usual (or configured) number of steps have passed since the last checkpoint."""
    if vitals.step is None:
        return None
    saved = [checkpoint.step for checkpoint in vitals.checkpoints]
    every = vitals.checkpoint_every_steps or _usual_distance(saved)
    last = saved[-1] if saved else 0
    if not every or vitals.step - last <= _LATE_FACTOR * every:
        return None
    where = f"the last checkpoint is from step {last}" if saved else "there is no checkpoint yet"
    evidence = f"{where} and the training is at step {vitals.step}; one is due every {every:g} steps"
    is_configured = vitals.checkpoint_every_steps is not None
    confidence = Confidence.HIGH if is_configured else Confidence.MEDIUM
    return Anomaly(kind="checkpoint_cadence", evidence=evidence, confidence=confidence)


def find_eta_beyond_hours(vitals: Vitals) -> Anomaly | None:
    """The time used and the time left add up to more than `max_hours`."""
    if vitals.eta_seconds is None or vitals.max_seconds is None or vitals.started_at is None:
        return None
    needed = vitals.now - vitals.started_at + vitals.eta_seconds
    if needed <= vitals.max_seconds:
        return None
    evidence = f"needs about {format_duration(needed)} in total; the limit is {format_duration(vitals.max_seconds)}"
    return Anomaly(kind="eta_beyond_hours", evidence=evidence, confidence=_confidence(needed / vitals.max_seconds))


def find_eta_beyond_credit(vitals: Vitals) -> Anomaly | None:
    """The money spent and the cost of the rest add up to more than the credit."""
    if vitals.eta_seconds is None or vitals.price_per_hour is None or vitals.credit is None or vitals.spent is None:
        return None
    needed = MicroDollars(vitals.spent + cost(vitals.price_per_hour, vitals.eta_seconds))
    if needed <= vitals.credit:
        return None
    evidence = f"will cost about {format_dollars(needed)} in total; the credit is {format_dollars(vitals.credit)}"
    ratio = needed / vitals.credit if vitals.credit > 0 else float("inf")
    return Anomaly(kind="eta_beyond_credit", evidence=evidence, confidence=_confidence(ratio))


def _usual_distance(steps: list[int]) -> float | None:
    if len(steps) < _MIN_CHECKPOINTS:
        return None
    return median(later - earlier for earlier, later in itertools.pairwise(steps))


def _confidence(ratio: float) -> Confidence:
    return Confidence.MEDIUM if ratio < _NEAR_LIMIT else Confidence.HIGH
