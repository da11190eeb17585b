"""The highest use of each pool of memory so far, from the samples of a training. Pure.

On a machine with unified memory, or without a GPU, the system's memory is the only pool. In a container whose limit is
below the machine's memory, the limit is the size and only the training's own processes count: the machine's figures
include other people's programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from stationmaster.series.table import Table
from stationmaster.watch.anomalies.base import MemoryPeak

_BROKEN_ABOVE = 1.02  # a reading that is further above its total is broken
_LONGEST_FACT = 32
_SYSTEM = ("total_memory_gb", "available_memory_gb", "main_process_memory_gb", "worker_memory_gb")


def extended_peaks(before: Mapping[str, Any], tables: Iterable[Table]) -> dict[str, Any]:
    """Return what is kept with the job after these rows: facts about the run, and the peak of each pool."""
    by_name = {table.name: table for table in tables}
    kept = {**before, **_facts(by_name.get("RunInfo"))}
    if kept.get("limit") != before.get("limit"):
        kept.pop("system", None)  # it was measured without the limit
    for pool, peak in _uses(by_name, kept):
        if pool not in kept or peak.share > _peak(pool, kept[pool]).share:
            kept[pool] = [peak.used_gb, peak.size_gb, peak.gpu]
    return kept


def memory_peaks(kept: Mapping[str, Any]) -> list[MemoryPeak]:
    """Return the peaks among what was kept; unified memory has no pool of the GPU's."""
    pools = ("system",) if kept.get("platform") in ("unified", "cpu") else ("system", "gpu")
    return [_peak(pool, kept[pool]) for pool in pools if pool in kept]


def _peak(pool: str, row: list[Any]) -> MemoryPeak:
    used, size, gpu = row
    return MemoryPeak(used_gb=used, size_gb=size, gpu=gpu if pool == "gpu" else None)


def _facts(info: Table | None) -> dict[str, Any]:
    """Return the platform and the container's limit where the rows have them."""
    facts: dict[str, Any] = {}
    for row in info.rows() if info is not None else ():
        text = (row["value"] or "")[:_LONGEST_FACT]
        if row["key"] == "platform":
            facts["platform"] = text
        if row["key"] == "memory_limit_gb" and (limit := _positive(text)) is not None:
            facts["limit"] = limit
    return facts


def _positive(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 < number < float("inf") else None


def _uses(tables: Mapping[str, Table], facts: Mapping[str, Any]) -> Iterator[tuple[str, MemoryPeak]]:
    if gpus := tables.get("GpuSample"):
        for gpu, used, size in gpus.tuples("gpu_index", "memory_used_gb", "memory_total_gb"):
            yield from _use("gpu", used, size, gpu=gpu)
    if samples := tables.get("MetricsSample"):
        limit = facts.get("limit")
        for total, available, main, workers in samples.tuples(*_SYSTEM):
            if limit is not None and (total is None or limit < total):
                known = [part for part in (main, workers) if part is not None]
                yield from _use("system", sum(known) if known else None, limit)
            elif total is not None and available is not None:
                yield from _use("system", total - available, total)


def _use(pool: str, used: float | None, size: float | None, gpu: int | None = None) -> Iterator[tuple[str, MemoryPeak]]:
    if used is not None and size and 0 <= used <= _BROKEN_ABOVE * size:
        yield pool, MemoryPeak(used_gb=used, size_gb=size, gpu=gpu)
