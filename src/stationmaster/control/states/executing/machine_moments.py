"""What the samples of a status show of the machine, moment by moment, for the stall watch. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from stationmaster.series.table import Table
from stationmaster.watch.stillness import MachineMoment

_PROCESS = ("timestamp", "pid", "cpu_percent", "memory_gb", "io_mb_per_second", "state")
_GPU = ("timestamp", "utilization_percent", "power_watts", "power_limit_watts", "memory_used_gb")
_NETWORK = ("timestamp", "network_received_mb_per_second", "network_sent_mb_per_second")
_MOST_GPUS = 1024

Rows = Mapping[float, Sequence[tuple[Any, ...]]]


def gpu_count(tables: Iterable[Table], *, known: int | None) -> int | None:
    """Return how many GPUs the machine has, by these rows or by earlier ones; None if neither show it."""
    counts = [] if known is None else [known]
    for table in tables:
        if table.name == "RunInfo":
            facts = [value for key, value in table.tuples("key", "value") if key == "gpu_count" and value]
            counts += [min(int(value), _MOST_GPUS) for value in facts if value.isdecimal() and len(value) < 5]
        if table.name == "GpuSample":
            counts += [len(rows) for rows in _by_time(table, _GPU).values()]
    return max(counts, default=None)


def machine_moments(tables: Iterable[Table], *, gpus: int | None) -> Iterator[MachineMoment]:
    """Yield a moment for each sample of the training's processes, in their order; the machine has `gpus` GPUs.

    A value that is missing for one process or one GPU is missing for all of them: it could be the busy one.
    """
    by_name = {table.name: table for table in tables}
    processes, on_gpus = _by_time(by_name.get("ProcessSample"), _PROCESS), _by_time(by_name.get("GpuSample"), _GPU)
    network = _by_time(by_name.get("ResourceSample"), _NETWORK)
    for at, rows in processes.items():
        pids, cpu, memory, io, states = zip(*rows, strict=True)
        here = on_gpus.get(at, ())
        busy, used = [row[0] for row in here], [row[3] for row in here]
        is_whole = bool(here) and len(here) == gpus
        yield MachineMoment(
            at=at,
            gpus=gpus,
            gpu_percent=max(busy) if is_whole and None not in busy else None,
            gpu_power_part=max((watts / limit for _, watts, limit, _ in here if watts and limit), default=None),
            gpu_memory_gb=_sum(used) if is_whole else None,
            cpu_percent=_sum(cpu),
            memory_gb=_sum(memory),
            io_mb_per_second=_sum(io),
            network_mb_per_second=_sum(network[at][0]) if at in network else None,
            processes=pids,
            states=states,
        )


def _by_time(table: Table | None, columns: Sequence[str]) -> Rows:
    """Return the rows of each sample, without their time."""
    if table is None:
        return {}
    rows = sorted(table.tuples(*columns), key=lambda row: float(row[0]))
    return {at: [row[1:] for row in same] for at, same in groupby(rows, key=lambda row: float(row[0]))}


def _sum(values: Sequence[float | None]) -> float | None:
    """Return the sum; None if a part of it is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if values and len(known) == len(values) else None
