"""The highest use of each pool of memory, and the alerts that follow from it."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.control.states.executing.memory_peaks import extended_peaks, memory_peaks
from stationmaster.control.states.executing.status_intake import ExecutingView, status_write
from stationmaster.model import Job, State
from stationmaster.remote.status import Status
from stationmaster.series.table import Table, table_of
from stationmaster.settings import MonitoringSettings
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import job, visit


def system(*used: float | None, total: float = 64.0, main: float = 10.0, workers: float = 5.0) -> Table:
    count = len(used)
    return table_of(
        "MetricsSample",
        {
            "id": list(range(1, count + 1)),
            "timestamp": [float(place) for place in range(count)],
            "total_memory_gb": [total] * count,
            "used_memory_gb": [total] * count,  # with the page cache: never judged
            "available_memory_gb": [None if each is None else total - each for each in used],
            "main_process_memory_gb": [main] * count,
            "worker_memory_gb": [workers] * count,
        },
    )


def gpu(*used: float | None, index: int = 0, total: float = 24.0) -> Table:
    count = len(used)
    return table_of(
        "GpuSample",
        {
            "id": list(range(1, count + 1)),
            "timestamp": [float(place) for place in range(count)],
            "gpu_index": [index] * count,
            "memory_used_gb": list(used),
            "memory_total_gb": [total] * count,
        },
    )


def info(**facts: object) -> Table:
    return table_of(
        "RunInfo",
        {
            "id": list(range(1, len(facts) + 1)),
            "key": list(facts),
            "value": [str(value) for value in facts.values()],
        },
    )


def peaks(*rounds: tuple[Table, ...]) -> list[tuple[float, float, int | None]]:
    kept: dict[str, Any] = {}
    for tables in rounds:
        kept = json.loads(json.dumps(extended_peaks(kept, tables)))  # as it is kept between visits
    return [(peak.used_gb, peak.size_gb, peak.gpu) for peak in memory_peaks(kept)]


def test_the_highest_use_of_each_pool_is_kept_over_all_visits() -> None:
    assert peaks((system(20.0, 30.0, 10.0), gpu(12.0)), (system(25.0), gpu(20.0, 8.0)), ()) == [
        (30.0, 64.0, None),
        (20.0, 24.0, 0),
    ]


def test_of_several_gpus_the_fullest_counts() -> None:
    assert peaks((gpu(12.0, index=0),), (gpu(20.0, index=1),), (gpu(15.0, index=0),)) == [(20.0, 24.0, 1)]


def test_in_a_container_the_limit_is_the_size_and_only_the_training_counts() -> None:
    assert peaks((system(60.0, main=20.0, workers=8.0), info(memory_limit_gb=32))) == [(28.0, 32.0, None)]


def test_a_limit_above_the_machine_s_memory_is_none() -> None:
    assert peaks((system(60.0), info(memory_limit_gb=512))) == [(60.0, 64.0, None)]


def test_a_limit_that_becomes_known_later_replaces_what_was_measured_without_it() -> None:
    assert peaks((system(63.0),), (info(memory_limit_gb=32),), (system(63.0),)) == [(15.0, 32.0, None)]


@pytest.mark.parametrize("platform", ["unified", "cpu"])
def test_unified_memory_is_one_pool(platform: str) -> None:
    assert peaks((system(40.0), gpu(23.9), info(platform=platform))) == [(40.0, 64.0, None)]


def test_broken_and_missing_readings_are_ignored() -> None:
    assert peaks((gpu(12.0, 30.0, -5.0, None), system(None, 20.0, -3.0))) == [(20.0, 64.0, None), (12.0, 24.0, 0)]


@pytest.mark.parametrize("text", ["", "none", "nan", "inf", "-4", "0"])
def test_a_limit_that_makes_no_sense_is_ignored(text: str) -> None:
    assert peaks((system(40.0), info(memory_limit_gb=text))) == [(40.0, 64.0, None)]


def looked(before: Job, *tables: Table, **monitoring: float) -> Write:
    seen = Status(wall=100.0, monotonic=1.0, boot_id="b", started=True, training_alive=True, series=tables)
    at = visit(before, now=100.0)
    at = replace(at, rules=Fixed(MonitoringSettings(**monitoring)))  # type: ignore[arg-type]
    return status_write(ExecutingView(visit=at, status=seen), seen)


class Fixed:
    """The rules of a job with monitoring settings of its own."""

    def __init__(self, monitoring: MonitoringSettings) -> None:
        self.monitoring = monitoring


def test_each_threshold_is_news_once_and_only_the_critical_one_raises_an_alert() -> None:
    training = job(state=State.EXECUTING)
    first = looked(training, gpu(12.0))
    warned = looked(first.job, gpu(21.0))
    again = looked(warned.job, gpu(21.5))
    critical = looked(again.job, gpu(23.5))
    last = looked(critical.job, gpu(23.9))
    looks = (first, warned, again, critical, last)
    assert [[event.payload["anomaly"] for event in write.events if event.kind == "anomaly"] for write in looks] == [
        [], ["memory_high"], [], ["memory_critical"], []
    ]  # fmt: skip
    assert [[alert.kind for alert in write.alerts] for write in looks] == [[], [], [], ["memory_critical"], []]
    assert critical.alerts[0].message == "98 % of the memory of GPU 0 was in use (23.5 of 24.0 GB; threshold 95 %)"


def test_the_job_s_own_thresholds_count() -> None:
    training = job(state=State.EXECUTING)
    assert not [
        event for event in looked(training, gpu(21.0), memory_warning_threshold=0.9).events if event.kind == "anomaly"
    ]
    strict = looked(training, system(40.0), memory_warning_threshold=0.4, memory_critical_threshold=0.6)
    assert [alert.kind for alert in strict.alerts] == ["memory_critical"]


def test_the_job_keeps_the_highest_peak_of_its_gpu_for_later_estimates() -> None:
    training = job(state=State.EXECUTING)
    assert training.watching.gpu_peak_gib is None
    high = looked(training, gpu(21.5))
    later = looked(high.job, gpu(12.0))
    assert later.job.watching.gpu_peak_gib == (21.5, 24.0)


def test_a_gpu_that_shares_the_system_s_memory_has_no_peak_of_its_own() -> None:
    shared = looked(job(state=State.EXECUTING), gpu(21.5), info(platform="unified"))
    assert shared.job.watching.gpu_peak_gib is None
