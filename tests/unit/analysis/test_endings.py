"""How a run ended, by exit code, signal, log and who stopped it."""

from __future__ import annotations

import pytest

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.analysis.report import Health, Report
from stationmaster.series.table import table_of

BAR = "name:  30%|███       | 300/1000 [05:00<11:40,  1.00it/s, lr: 1.0e-04 loss: 3.000e-01]"


def report_of(*, steps: int, log: str = "", **info: str) -> Report:
    times = [100.0 + step for step in range(1, steps + 1)]
    rows = {"id": range(steps), "step": range(1, steps + 1), "timestamp": times, "loss": [0.3] * steps}
    tables = {"StepMetric": table_of("StepMetric", rows)} if steps else {}
    facts = {"framework": "ai-toolkit", "platform": "discrete", "total_steps": "1000", **info}
    return analyse(RecordedRun(job_id="j", tables=tables, info=facts, log=log))


def first_path(report: Report) -> str | None:
    return report.recommendations[0].config_path if report.recommendations else None


def test_all_steps_and_exit_code_0_are_a_completed_run() -> None:
    report = report_of(steps=1000, exit_code="0")
    assert (report.summary.training_completed, report.health) == (True, Health.GOOD)


def test_steps_that_are_missing_are_not() -> None:
    assert not report_of(steps=300, exit_code="0").summary.training_completed
    assert not report_of(steps=0, exit_code="0").summary.training_completed


@pytest.mark.parametrize(
    ("code", "health"), [("1", Health.CRITICAL), ("137", Health.CRITICAL), ("-11", Health.CRITICAL)]
)
def test_an_error_or_a_signal_is_critical_and_not_completed(code: str, health: Health) -> None:
    report = report_of(steps=1000, exit_code=code)
    assert (report.summary.training_completed, report.health, first_path(report)) == (False, health, "machine.host")


@pytest.mark.parametrize("code", ["130", "143", "137", "0"])
def test_a_run_that_a_user_stopped_is_not_completed_and_blames_nothing(code: str) -> None:
    report = report_of(steps=300, exit_code=code, stopped_by="user")
    assert (report.summary.training_completed, report.health) == (False, Health.GOOD)
    assert report.recommendations == ()


@pytest.mark.parametrize("why", ["limit", "anomaly"])
def test_our_own_signal_is_not_the_hosts(why: str) -> None:
    report = report_of(steps=300, exit_code="143", exit_signal="15", stopped_by=why)
    assert (report.summary.training_completed, first_path(report)) == (False, None)


def test_a_stall_is_named() -> None:
    report = report_of(steps=300, exit_code="143", exit_signal="15", stopped_by="stall")
    assert report.health is Health.CRITICAL
    assert report.recommendations[0].rule == "crash_stalled"


def test_a_machine_that_vanished_leaves_a_log_that_ends_in_a_bar() -> None:
    report = report_of(steps=300, log=BAR)
    assert (report.health, first_path(report)) == (Health.CRITICAL, "machine.host")


def test_a_run_that_goes_on_is_not_judged_by_its_end() -> None:
    report = report_of(steps=300, log=BAR, running="1")
    assert (report.health, report.recommendations) == (Health.GOOD, ())


def test_nothing_at_all_is_unknown() -> None:
    assert analyse(RecordedRun(job_id="j", tables={}, info={})).health is Health.UNKNOWN
