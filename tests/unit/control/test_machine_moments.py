"""Samples of a status become moments of the stall watch; what is missing for one process is missing for all."""

from __future__ import annotations

from typing import Any

from stationmaster.control.states.executing.machine_moments import gpu_count, machine_moments
from stationmaster.series.table import Table, table_of
from stationmaster.watch.stillness import MachineMoment


def processes(*rows: tuple[float, int, float | None, str | None]) -> Table:
    at, pids, cpu, states = zip(*rows, strict=True)
    count = len(rows)
    columns: dict[str, Any] = {
        "id": list(range(count)),
        "timestamp": at,
        "pid": pids,
        "role": ["main"] * count,
        "cpu_percent": cpu,
        "memory_gb": [1.0] * count,
        "io_mb_per_second": [0.25] * count,
        "state": states,
    }
    return table_of("ProcessSample", columns)


def gpus(*rows: tuple[float, int, float | None]) -> Table:
    at, index, percent = zip(*rows, strict=True)
    count = len(rows)
    columns: dict[str, Any] = {
        "id": list(range(count)),
        "timestamp": at,
        "gpu_index": index,
        "utilization_percent": percent,
        "power_watts": [70.0] * count,
        "power_limit_watts": [700.0] * count,
        "memory_used_gb": [2.0] * count,
    }
    return table_of("GpuSample", columns)


def network(at: float, received: float | None) -> Table:
    name = "network_received_mb_per_second"
    columns: dict[str, Any] = {"id": [1], "timestamp": [at], name: [received], "network_sent_mb_per_second": [0.5]}
    return table_of("ResourceSample", columns)


def info(**facts: str) -> Table:
    columns: dict[str, Any] = {"id": list(range(len(facts))), "key": list(facts), "value": list(facts.values())}
    return table_of("RunInfo", columns)


def only(*tables: Table, known: int | None = None) -> MachineMoment:
    (found,) = machine_moments(tables, gpus=gpu_count(tables, known=known))
    return found


def test_the_rows_of_one_time_are_one_moment() -> None:
    rows = processes((5.0, 7, 1.0, "asleep"), (5.0, 8, 0.5, "running"))
    found = only(rows, gpus((5.0, 0, 3.0), (5.0, 1, 40.0)), network(5.0, 0.125), info(gpu_count="2"))
    assert found == MachineMoment(
        at=5.0,
        gpus=2,
        gpu_percent=40.0,
        gpu_power_part=0.1,
        gpu_memory_gb=4.0,
        cpu_percent=1.5,
        memory_gb=2.0,
        io_mb_per_second=0.5,
        network_mb_per_second=0.625,
        processes=(7, 8),
        states=("asleep", "running"),
    )


def test_a_value_that_one_process_or_gpu_lacks_is_unknown() -> None:
    rows = processes((5.0, 7, None, "asleep"), (5.0, 8, 0.5, None))
    found = only(rows, gpus((5.0, 0, None), (5.0, 1, 0.0)), network(5.0, None))
    assert (found.cpu_percent, found.gpu_percent, found.network_mb_per_second) == (None, None, None)
    assert found.states == ("asleep", None)
    assert found.memory_gb == 2.0


def test_a_gpu_that_gives_no_answer_is_not_idle() -> None:
    rows = processes((5.0, 7, 1.0, "asleep"))
    assert only(rows, gpus((5.0, 0, 0.0)), info(gpu_count="2")).gpu_percent is None
    assert only(rows, gpus((5.0, 0, 0.0)), known=2).gpu_percent is None
    assert only(rows, gpus((5.0, 0, 0.0))).gpu_percent == 0.0
    assert only(rows, gpus((6.0, 0, 0.0)), known=1).gpu_percent is None


def test_whether_there_are_gpus_at_all_is_a_fact_of_the_run() -> None:
    rows = processes((5.0, 7, 1.0, "asleep"))
    assert only(rows).gpus is None
    assert only(rows, info(gpu_count="0")).gpus == 0
    assert only(rows, info(gpu_count="many"), known=4).gpus == 4
    assert only(rows, gpus((5.0, 0, 0.0)), info(gpu_count="0")).gpus == 1


def test_moments_come_in_order_and_only_with_processes() -> None:
    rows = processes((9.0, 7, 1.0, "asleep"), (5.0, 7, 1.0, "asleep"))
    assert [moment.at for moment in machine_moments([rows], gpus=None)] == [5.0, 9.0]
    assert list(machine_moments([gpus((5.0, 0, 0.0))], gpus=1)) == []


def test_the_number_of_gpus_is_kept_from_a_status_without_samples() -> None:
    assert gpu_count([info(gpu_count="0")], known=None) == 0
    assert gpu_count([], known=0) == 0
    assert gpu_count([], known=None) is None
