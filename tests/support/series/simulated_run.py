"""The rows of a made-up training on one GPU. Its values are as fine as real ones: that decides how well they pack.

One step per second, a sample of the machine every 5 seconds with six processes, pictures every 250 steps.
"""

from __future__ import annotations

import math
import random
import struct

from stationmaster.series.table import Table, table_of

_BEGIN = 1_790_000_000.0
_SAMPLE_SECONDS = 5.0
_PROCESSES = ("main", "worker", "worker", "worker", "worker", "other")


def simulated_run(hours: float, *, seed: int = 1) -> list[Table]:
    """Return all tables of such a training."""
    chance = random.Random(seed)
    steps = int(hours * 3600)
    samples = int(hours * 3600 / _SAMPLE_SECONDS)
    times = [_BEGIN + place * _SAMPLE_SECONDS + chance.random() * 0.02 for place in range(samples)]
    return [
        _steps(steps, chance),
        _memory(times, chance),
        _gpu(times, chance),
        _resources(times, chance),
        _processes(times, chance),
        _events(steps),
        table_of("RunInfo", {"id": [1, 2], "key": ["platform", "total_steps"], "value": ["discrete", str(steps)]}),
    ]


def _steps(count: int, chance: random.Random) -> Table:
    ids = list(range(1, count + 1))
    seconds = [1.0 + chance.gauss(0, 0.02) for _ in ids]
    clock, at = _BEGIN, []
    for each in seconds:
        clock += each
        at.append(clock)
    return _table(
        "StepMetric",
        id=ids,
        step=ids,
        timestamp=at,
        loss=[_single(0.1 + 0.4 * math.exp(-step / 3000) + chance.gauss(0, 0.02)) for step in ids],
        batch_size=[4] * count,
        gradient_norm=[_single(chance.lognormvariate(-1, 0.3)) for _ in ids],
        learning_rate=[1e-4 * (1 + math.cos(math.pi * step / count)) / 2 for step in ids],
        step_time_seconds=seconds,
    )


def _memory(times: list[float], chance: random.Random) -> Table:
    total = _gb(131_900_000 * 1024)
    available = [_gb(chance.randrange(90_000_000, 91_000_000) * 1024) for _ in times]
    return _table(
        "MetricsSample",
        id=_ids(times),
        timestamp=times,
        total_memory_gb=[total] * len(times),
        used_memory_gb=[total - each + 2.0 for each in available],
        available_memory_gb=available,
        swap_used_gb=[0.0] * len(times),
        main_process_memory_gb=[_gb(chance.randrange(14_000_000, 14_010_000) * 1024) for _ in times],
        worker_memory_gb=[_gb(chance.randrange(8_000_000, 8_010_000) * 1024) for _ in times],
        worker_count=[4] * len(times),
        gpu_memory_used_gb=[_gb(chance.randrange(20_000, 20_100) * 2**20) for _ in times],
        gpu_utilization_percent=[float(chance.randrange(90, 101)) for _ in times],
        cpu_utilization_percent=[round(chance.uniform(10, 14), 1) for _ in times],
    )


def _gpu(times: list[float], chance: random.Random) -> Table:
    return _table(
        "GpuSample",
        id=_ids(times),
        timestamp=times,
        gpu_index=[0] * len(times),
        name=["NVIDIA GeForce RTX 4090"] * len(times),
        memory_used_gb=[_gb(chance.randrange(20_000, 20_100) * 2**20) for _ in times],
        memory_total_gb=[_gb(24_564 * 2**20)] * len(times),
        utilization_percent=[float(chance.randrange(90, 101)) for _ in times],
        temperature_c=[float(chance.randrange(60, 68)) for _ in times],
        power_watts=[chance.randrange(380_000, 430_000) / 1000 for _ in times],
        power_limit_watts=[450.0] * len(times),
        clock_mhz=[float(chance.randrange(2400, 2700, 15)) for _ in times],
        throttle=["sw_power_cap" if chance.random() < 0.05 else None for _ in times],
    )


def _resources(times: list[float], chance: random.Random) -> Table:
    return _table(
        "ResourceSample",
        id=_ids(times),
        timestamp=times,
        disk_total_gb=[200.0] * len(times),
        disk_free_gb=[_gb(chance.randrange(30_000_000, 30_010_000) * 4096) for _ in times],
        disk_read_mb_per_second=[chance.randrange(0, 40_000_000) / 5.01e6 for _ in times],
        disk_write_mb_per_second=[chance.randrange(0, 4_000_000) / 5.01e6 for _ in times],
        network_received_mb_per_second=[chance.randrange(0, 50_000) / 5.01e6 for _ in times],
        network_sent_mb_per_second=[chance.randrange(0, 50_000) / 5.01e6 for _ in times],
    )


def _processes(times: list[float], chance: random.Random) -> Table:
    rows = [(at, place) for at in times for place in range(len(_PROCESSES))]
    return _table(
        "ProcessSample",
        id=_ids(rows),
        timestamp=[at for at, _ in rows],
        pid=[4000 + place for _, place in rows],
        role=[_PROCESSES[place] for _, place in rows],
        memory_gb=[_gb(chance.randrange(2_000_000, 2_000_200) * 1024) for _ in rows],
        cpu_percent=[round(chance.uniform(80, 100), 1) for _ in rows],
        gpu_memory_gb=[_gb(20_050 * 2**20) if place == 0 else None for _, place in rows],
    )


def _events(steps: int) -> Table:
    kinds = ("sampling_start", "sampling_end", "save_start", "save_end")
    rows = [(step, kind) for step in range(250, steps, 250) for kind in kinds]
    config = '"config": {"batch_size": 4, "lr": 0.0001, "resolution": [512, 768, 1024], "optimizer": "adamw8bit"}'
    return _table(
        "TrainingEvent",
        id=_ids(rows),
        timestamp=[_BEGIN + step for step, _ in rows],
        event_type=[kind for _, kind in rows],
        details=[f'{{"step": {step}, {config}}}' for step, _ in rows],
        memory_snapshot_id=[step // 5 for step, _ in rows],
    )


def _table(
    name: str, /, **columns: list[float] | list[int] | list[str] | list[str | None] | list[float | None]
) -> Table:
    return table_of(name, columns)


def _ids(rows: list[float] | list[tuple[float, int]] | list[tuple[int, str]]) -> list[int]:
    return list(range(1, len(rows) + 1))


def _gb(count: float) -> float:
    return count / 2**30


def _single(value: float) -> float:
    """Return the value in single precision, as tensors hold it."""
    return float(struct.unpack("f", struct.pack("f", value))[0])
