"""GPU memory grows from step to step and will reach the limit before the run ends."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.durations import format_duration
from stationmaster.watch.anomalies.base import Anomaly, Confidence, GpuSample, Vitals
from stationmaster.watch.anomalies.slope import fit_slope

_SPAN_AT_LEAST = 1800.0
_SAMPLES_AT_LEAST = 12
_FIT = 0.8
_SURE_FIT = 0.95
_UNKNOWN_END = 4 * 3600.0
_WARMUP = 600.0


def find_memory_creep(vitals: Vitals) -> Anomaly | None:
    """Memory rises along a line that meets the card's limit before the run's end (or within four hours)."""
    horizon = vitals.eta_seconds if vitals.eta_seconds is not None else _UNKNOWN_END
    for index, samples in enumerate(vitals.gpus):
        if found := _creep(samples, vitals, horizon, index):
            return found
    return None


def _creep(samples: Sequence[GpuSample], vitals: Vitals, horizon: float, index: int) -> Anomaly | None:
    begin = (vitals.started_at or 0.0) + _WARMUP
    known = [(s.at, s.memory_used_bytes) for s in samples if s.memory_used_bytes is not None and s.at >= begin]
    total = next((s.memory_total_bytes for s in reversed(samples) if s.memory_total_bytes), None)
    if total is None or len(known) < _SAMPLES_AT_LEAST or known[-1][0] - known[0][0] < _SPAN_AT_LEAST:
        return None
    slope = fit_slope(known)
    if slope is None or slope.per_second <= 0 or slope.fit < _FIT:
        return None
    left = (total - known[-1][1]) / slope.per_second
    if left > horizon:
        return None
    used = f"{100 * known[-1][1] / total:.0f} % of GPU {index}'s memory in use"
    evidence = f"{used}, growing {slope.per_second * 3600 / 2**20:.0f} MiB per hour: full in {format_duration(left)}"
    confidence = Confidence.HIGH if slope.fit >= _SURE_FIT else Confidence.MEDIUM
    return Anomaly(kind="memory_creep", evidence=evidence, confidence=confidence)
