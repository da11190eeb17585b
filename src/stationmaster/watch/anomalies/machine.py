"""Rules about the machine: an idle GPU, memory or disk that fills up, a wrong clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import correlation, fmean, linear_regression

from stationmaster.durations import format_duration
from stationmaster.watch.anomalies.base import Anomaly, Confidence, GpuSample, MemoryPeak, Vitals

_IDLE_SECONDS = 600.0
_IDLE_MIN_SAMPLES = 6
_IDLE_PERCENT = 10.0

_CREEP_MIN_SECONDS = 1800.0
_CREEP_MIN_SAMPLES = 12
_CREEP_MIN_FIT = 0.8
_SURE_FIT = 0.95
_UNKNOWN_END_SECONDS = 4 * 3600.0
_WARMUP_SECONDS = 600.0

_CHECKPOINT_ROOM = 1.2
_GIB = 2**30

_WRONG_CLOCK_SECONDS = 120.0
_CLOCK_JUMP_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Slope:
    per_second: float
    fit: float  # 0: a cloud; 1: a line


def find_idle_gpu(vitals: Vitals) -> Anomaly | None:
    """While training, every sample of every GPU in the last ten minutes was below 10 %.

    The causes are data that does not arrive and work that runs on the CPU.
    """
    if vitals.phase != "training" or not vitals.gpus:
        return None
    used: list[float] = []
    for samples in vitals.gpus:
        recent = [sample for sample in samples if sample.at >= vitals.now - _IDLE_SECONDS]
        known = [sample.utilization_percent for sample in recent if sample.utilization_percent is not None]
        reaches_back = bool(samples) and samples[0].at <= vitals.now - _IDLE_SECONDS
        if len(known) < _IDLE_MIN_SAMPLES or not reaches_back or max(known) >= _IDLE_PERCENT:
            return None
        used.append(fmean(known))
    evidence = f"GPU use was {max(used):.0f} % for {format_duration(_IDLE_SECONDS)} while training"
    return Anomaly(kind="gpu_idle", evidence=evidence, confidence=Confidence.HIGH)


def find_memory_creep(vitals: Vitals) -> Anomaly | None:
    """GPU memory grows along a line that reaches the card's limit before the run ends (or within four hours)."""
    horizon = vitals.eta_seconds if vitals.eta_seconds is not None else _UNKNOWN_END_SECONDS
    for index, samples in enumerate(vitals.gpus):
        if found := _memory_creep(samples, vitals, horizon, index):
            return found
    return None


def find_high_memory(vitals: Vitals) -> Anomaly | None:
    """The use of the GPU's or the system's memory reached the warning threshold, but not the critical one."""
    peak = _fullest(vitals)
    if peak is None or not vitals.memory_warning_share <= peak.share < vitals.memory_critical_share:
        return None
    return _memory_used("memory_high", peak, vitals.memory_warning_share)


def find_critical_memory(vitals: Vitals) -> Anomaly | None:
    """The use of the GPU's or the system's memory reached the critical threshold: the run may end out of memory."""
    peak = _fullest(vitals)
    if peak is None or peak.share < vitals.memory_critical_share:
        return None
    return _memory_used("memory_critical", peak, vitals.memory_critical_share)


def find_filling_disk(vitals: Vitals) -> Anomaly | None:
    """The free space, less what is written until then, will not hold a checkpoint as large as the largest so far."""
    if not vitals.disk or not vitals.checkpoints:
        return None
    free = vitals.disk[-1].free_bytes
    needed = _CHECKPOINT_ROOM * max(checkpoint.size_bytes for checkpoint in vitals.checkpoints)
    if free < needed:
        return _disk_filling(free, needed, Confidence.HIGH)
    until_next = _seconds_to_next_checkpoint(vitals)
    last = vitals.checkpoints[-1].at
    slope = fit_slope([(sample.at, sample.free_bytes) for sample in vitals.disk if sample.at > last])
    if until_next is None or slope is None or slope.per_second >= 0:
        return None
    then = free + slope.per_second * until_next
    return _disk_filling(then, needed, Confidence.MEDIUM) if then < needed else None


def find_clock_skew(vitals: Vitals) -> Anomaly | None:
    """The machine's clock differs from ours by two minutes or more, or jumped by 30 seconds between two samples.

    Its times then cannot be compared with ours, and certificates may fail.
    """
    if not vitals.clock:
        return None
    ahead = vitals.clock[-1].ahead_seconds
    if len(vitals.clock) > 1:
        jump = ahead - vitals.clock[-2].ahead_seconds
        if abs(jump) >= _CLOCK_JUMP_SECONDS:
            way = "forward" if jump > 0 else "back"
            return _clock_skew(f"the machine's clock jumped {way} by {format_duration(abs(jump))}")
    if abs(ahead) >= _WRONG_CLOCK_SECONDS:
        way = "ahead" if ahead > 0 else "behind"
        return _clock_skew(f"the machine's clock is {format_duration(abs(ahead))} {way}")
    return None


def fit_slope(points: Sequence[tuple[float, float]]) -> Slope | None:
    """The line through (time, value) points; None if there is none.

    >>> fit_slope([(0, 1), (10, 2), (20, 3)])
    Slope(per_second=0.1, fit=1.0)
    """
    times, values = [point[0] for point in points], [point[1] for point in points]
    if len(points) < 3 or max(times) == min(times) or max(values) == min(values):
        return None
    line = linear_regression(times, values)
    return Slope(per_second=line.slope, fit=round(correlation(times, values) ** 2, 6))


def _fullest(vitals: Vitals) -> MemoryPeak | None:
    return max(vitals.memory, key=lambda peak: peak.share, default=None)


def _memory_used(kind: str, peak: MemoryPeak, threshold: float) -> Anomaly:
    whose = "system memory" if peak.gpu is None else f"memory of GPU {peak.gpu}"
    used = f"{100 * peak.share:.0f} % of the {whose} was in use"
    evidence = f"{used} ({peak.used_gb:.1f} of {peak.size_gb:.1f} GB; threshold {100 * threshold:.0f} %)"
    return Anomaly(kind=kind, evidence=evidence, confidence=Confidence.HIGH)


def _memory_creep(samples: Sequence[GpuSample], vitals: Vitals, horizon: float, index: int) -> Anomaly | None:
    begin = (vitals.started_at or 0.0) + _WARMUP_SECONDS
    known = [(s.at, s.memory_used_bytes) for s in samples if s.memory_used_bytes is not None and s.at >= begin]
    total = next((s.memory_total_bytes for s in reversed(samples) if s.memory_total_bytes), None)
    if total is None or len(known) < _CREEP_MIN_SAMPLES or known[-1][0] - known[0][0] < _CREEP_MIN_SECONDS:
        return None
    slope = fit_slope(known)
    if slope is None or slope.per_second <= 0 or slope.fit < _CREEP_MIN_FIT:
        return None
    left = (total - known[-1][1]) / slope.per_second
    if left > horizon:
        return None
    used = f"{100 * known[-1][1] / total:.0f} % of the memory of GPU {index} is in use"
    growth = f"it grows by {slope.per_second * 3600 / 2**20:.0f} MiB per hour and is full in {format_duration(left)}"
    confidence = Confidence.HIGH if slope.fit >= _SURE_FIT else Confidence.MEDIUM
    return Anomaly(kind="memory_creep", evidence=f"{used}; {growth}", confidence=confidence)


def _seconds_to_next_checkpoint(vitals: Vitals) -> float | None:
    every = vitals.checkpoint_every_steps
    if every is None or vitals.step is None or not vitals.steps_per_second:
        return None
    return (every - (vitals.step - vitals.checkpoints[-1].step) % every) / vitals.steps_per_second


def _disk_filling(free: float, needed: float, confidence: Confidence) -> Anomaly:
    room = f"{max(0.0, free) / _GIB:.1f} GiB will be free at the next checkpoint"
    return Anomaly(kind="disk_filling", evidence=f"{room}, which needs {needed / _GIB:.1f} GiB", confidence=confidence)


def _clock_skew(evidence: str) -> Anomaly:
    return Anomaly(kind="clock_skew", evidence=evidence, confidence=Confidence.HIGH)
