"""Runs that the kernel killed for lack of memory: its counter proves it, even if no sample shows the peak."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.configs.parameters import ParameterConfig
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.analysis.report import Health, Report
from stationmaster.recipes.parameters import resolve
from stationmaster.recipes.registry import find
from stationmaster.series.table import Table, table_of

KILLED = ("oom_error", {"source": "kernel", "message": "the kernel killed 1 of its processes for lack of memory"})


def report_of(parameters: dict[str, Any], *levels: tuple[float, float], by_kernel: bool = True) -> Report:
    """A container of 1 GB; `levels`: what the training and its two workers held, second by second."""
    recipe = find("tiny-lora@1").recipe
    events = [("training_start", {"step": 0, "batch_size": parameters.get("batch_size", 1)}), *([KILLED] * by_kernel)]
    tables: dict[str, Table] = {
        "MetricsSample": table_of(
            "MetricsSample",
            {
                "id": range(len(levels)),
                "timestamp": [100.0 + second for second in range(len(levels))],
                "total_memory_gb": [23.5] * len(levels),
                "available_memory_gb": [20.0] * len(levels),
                "main_process_memory_gb": [main for main, _ in levels],
                "worker_memory_gb": [workers for _, workers in levels],
                "worker_count": [2] * len(levels),
            },
        ),
        "TrainingEvent": table_of(
            "TrainingEvent",
            {
                "id": range(len(events)),
                "timestamp": [100.0, 100.0 + len(levels)][: len(events)],
                "event_type": [kind for kind, _ in events],
                "details": [json.dumps(details) for _, details in events],
            },
        ),
    }
    info = {"platform": "cpu", "memory_limit_gb": "1", "exit_code": "137", "exit_signal": "9", "total_steps": "100"}
    config = ParameterConfig(recipe=recipe, parameters=resolve(recipe, parameters))
    return analyse(RecordedRun(job_id="j", tables=tables, info=info, config=config))


def first_of(report: Report) -> tuple[str, Any]:
    first = report.recommendations[0]
    return first.config_path, first.recommended_value


@pytest.mark.parametrize(
    ("parameters", "levels", "advice"),
    [
        ({"workers": 2}, [(0.1, 0.0), (0.1, 0.5)], ("parameters.workers", 0)),
        ({"batch_size": 16}, [(0.04, 0.0), (0.6, 0.0)], ("parameters.batch_size", 8)),
        ({"batch_size": 1, "ema": True}, [(0.5, 0.0), (0.7, 0.0)], ("parameters.ema", False)),
    ],
)
def test_the_cause_is_found_although_no_sample_is_full(
    parameters: dict[str, Any], levels: list[tuple[float, float]], advice: tuple[str, Any]
) -> None:
    report = report_of(parameters, *levels)
    assert (report.summary.health_score, first_of(report)) == (Health.CRITICAL, advice)


def test_a_kill_that_the_kernel_did_not_count_is_the_host_s() -> None:
    report = report_of({"batch_size": 16}, (0.04, 0.0), (0.6, 0.0), by_kernel=False)
    assert first_of(report)[0] == "machine.host"
