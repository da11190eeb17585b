"""The machine's GPUs and memory: from the recorder's newest sample, else read now."""

from __future__ import annotations

from typing import Any

from trackside.machine.gpu import GpuProbe, read_gpus
from trackside.machine.readings import read_memory
from trackside.records import read_record
from trackside.root import Root
from trackside.sampler.sample import GB, GpuReading, MemoryReading, Sample, sample_from_record
from trackside.steps.plan import Plan

_FRESH_SECONDS = 15.0
_MOST_FRESH_SECONDS = 120.0
_MIB_PER_GB = 1024


def read_machine(root: Root, plan: Plan, *, wall: float) -> dict[str, Any]:
    """Return `gpu` and `memory` of a status; either is None where it cannot be read."""
    newest = _newest_sample(root, plan, wall)
    if newest is None:
        return {"gpu": _read_gpus(root, wall), "memory": read_memory()}
    gpus = [gpu_record(gpu) for gpu in newest.gpus]
    return {"gpu": gpus or None, "memory": _memory_record(newest.memory) or read_memory()}


def _newest_sample(root: Root, plan: Plan, wall: float) -> Sample | None:
    record = read_record(root.newest_sample)
    if record is None:
        return None
    fresh = min(_MOST_FRESH_SECONDS, max(_FRESH_SECONDS, 2 * plan.monitoring.interval_seconds))
    try:
        newest = sample_from_record(record)
        return newest if abs(wall - newest.timestamp) <= fresh else None
    except (KeyError, TypeError, ValueError):
        return None


def gpu_record(gpu: GpuReading) -> dict[str, Any]:
    return {
        "index": gpu.gpu_index,
        "name": gpu.name,
        "memory_used_mib": _rounded(gpu.memory_used_gb, _MIB_PER_GB),
        "memory_total_mib": _rounded(gpu.memory_total_gb, _MIB_PER_GB),
        "utilization_percent": _rounded(gpu.utilization_percent, 1),
    }


def _memory_record(memory: MemoryReading) -> dict[str, int] | None:
    if memory.total_gb is None or memory.available_gb is None:
        return None
    return {
        "total_bytes": round(memory.total_gb * GB),
        "available_bytes": round(memory.available_gb * GB),
        "swap_used_bytes": round((memory.swap_used_gb or 0.0) * GB),
    }


def _rounded(value: float | None, factor: int) -> int | None:
    return None if value is None else round(value * factor)


def _read_gpus(root: Root, wall: float) -> list[dict[str, Any]] | None:
    """Return the supervisor's last reading, or take one where it has none."""
    found = read_gpus(root.gpu, wall=wall)
    if found is None:
        try:
            GpuProbe(root.gpu).ask_and_wait()
        except OSError:
            return None
        found = read_gpus(root.gpu, wall=wall)
    return found
