"""When a machine is cleaned before it goes, and when it goes all the same."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stationmaster.control.machine.login import preflight_problem
from stationmaster.control.machine.release import Judgement, Next
from stationmaster.control.states.executing.training_events import health_news, health_problem
from stationmaster.control.states.releasing.cleanup import needs_cleanup, with_cleanup_begun
from stationmaster.model import Cleanup, RentedMachine, Watching
from stationmaster.recipes.schema import Needs
from stationmaster.remote.status import HealthReport
from tests.support.jobs.spine_values import MACHINE, job, rental

THERE = [Judgement(rental=rental(), next=Next.DESTROY)]


def begun(seconds_ago: float, state: str | None = None) -> RentedMachine:
    return replace(MACHINE, cleanup=Cleanup(since=100.0 - seconds_ago, state=state))


@pytest.mark.parametrize(
    ("used", "judgements", "limit", "expected"),
    [
        (MACHINE, THERE, 60.0, True),
        (begun(59.0), THERE, 60.0, True),
        (begun(61.0), THERE, 60.0, False),
        (begun(1.0, state="done"), THERE, 60.0, False),
        (begun(1.0, state="unreachable"), THERE, 60.0, False),
        (MACHINE, THERE, None, False),
        (MACHINE, [Judgement(rental=rental(), next=Next.LOOK_AGAIN)], 60.0, False),
        (replace(MACHINE, label="sm-another"), THERE, 60.0, False),
        (MACHINE, [], 60.0, False),
    ],
)
def test_a_machine_that_is_there_is_cleaned_once_and_within_its_time(
    used: RentedMachine, judgements: list[Judgement], limit: float | None, expected: bool
) -> None:
    assert needs_cleanup(job(machine=used), judgements, limit=limit, now=100.0) is expected


def test_the_time_of_a_cleanup_counts_from_its_beginning_whoever_goes_on_with_it() -> None:
    first = with_cleanup_begun(job(machine=MACHINE), now=10.0)
    assert with_cleanup_begun(first, now=50.0).machine.cleanup == Cleanup(since=10.0)


def report(ok: bool) -> HealthReport:
    return HealthReport(ok=ok, at=1.0, failure=None if ok else "exit", exit_code=4, tail="a\nb")


def test_health_is_told_when_it_changes_and_only_then() -> None:
    ill = health_news(job(), report(False))
    assert [event.kind for event in ill.events] == ["health_failed"]
    assert [alert.kind for alert in ill.alerts] == ["health"]
    assert ill.job.watching.health_ok is False
    known = job(watching=Watching(health_ok=False))
    for again in (report(False), None):
        assert health_news(known, again).events == ()
        assert health_news(known, again).alerts == ()
    well = health_news(known, report(True))
    assert ([event.kind for event in well.events], well.cleared_alerts) == (["health_well"], ("health",))
    assert well.job.watching.health_ok
    assert health_news(job(), report(True)).events == (), "a run that was never ill is not called well"


@pytest.mark.parametrize(
    ("failure", "tail", "said"),
    [
        ("exit", "one\nlast", "the health check failed with exit code 4: last"),
        ("timeout", "", "the health check timed out"),
        ("could_not_start", "no such file", "the health check could not be started: no such file"),
    ],
)
def test_a_failed_check_is_one_line(failure: str, tail: str, said: str) -> None:
    assert health_problem(HealthReport(ok=False, at=1.0, failure=failure, exit_code=4, tail=tail)) == said


@pytest.mark.parametrize(("cuda", "problem"), [(12.1, "CUDA 12.1, 12.4 is needed"), (12.4, None), (None, None)])
def test_a_driver_that_is_too_old_is_named_before_data_is_sent(cuda: float | None, problem: str | None) -> None:
    facts = {"gpus": [{"memory_total_mib": 24_000}], "cuda": cuda, "driver": "550", "allocation": "ok"}
    found = preflight_problem(facts, Needs(gpus=1, cuda=12.4), bytes_per_second=None)
    assert (found is None) if problem is None else (found is not None and problem in found)
