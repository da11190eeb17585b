"""The log says training, the GPU does nothing: data that does not come, or work that landed on the CPU."""

from __future__ import annotations

from statistics import fmean

from stationmaster.durations import format_duration
from stationmaster.watch.anomalies.base import Anomaly, Confidence, Vitals

_SPAN = 600.0
_SAMPLES_AT_LEAST = 6
_BUSY_PERCENT = 10.0


def find_idle_gpu(vitals: Vitals) -> Anomaly | None:
    """While training, every GPU has been below a tenth of its capacity for ten minutes, without exception."""
    if vitals.phase != "training" or not vitals.gpus:
        return None
    used: list[float] = []
    for samples in vitals.gpus:
        recent = [sample for sample in samples if sample.at >= vitals.now - _SPAN]
        known = [sample.utilization_percent for sample in recent if sample.utilization_percent is not None]
        reaches_back = bool(samples) and samples[0].at <= vitals.now - _SPAN
        if len(known) < _SAMPLES_AT_LEAST or not reaches_back or max(known) >= _BUSY_PERCENT:
            return None
        used.append(fmean(known))
    evidence = f"GPU use was {max(used):.0f} % for {format_duration(_SPAN)} while training"
    return Anomaly(kind="gpu_idle", evidence=evidence, confidence=Confidence.HIGH)
