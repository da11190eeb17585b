"""What the recipe's own health check says while the training runs: told when it changes, and an alert until it is well.

Pure: the last answer that was told is kept with the attempt.
"""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.model import Alert, Job
from stationmaster.remote.host import HealthReport, Status
from stationmaster.store.writes import NewEvent

HEALTH_ALERT = "health"
_LONGEST_SAYING = 200
_FAILURES = {"timeout": "did not answer in time", "could_not_start": "could not be started"}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthNews:
    is_well: bool
    events: tuple[NewEvent, ...] = ()
    alerts: tuple[Alert, ...] = ()
    cleared_alerts: tuple[str, ...] = ()


def health_news(job: Job, status: Status) -> HealthNews:
    """A check that fails is told once, and once more when all is well again."""
    was_well = job.watching.health_ok is not False
    report = status.health
    if report is None or report.ok == was_well:
        return HealthNews(is_well=was_well)
    if report.ok:
        return HealthNews(
            is_well=True, events=(NewEvent(kind="health_well", payload={}),), cleared_alerts=(HEALTH_ALERT,)
        )
    said = health_words(report)
    return HealthNews(
        is_well=False,
        events=(NewEvent(kind="health_failed", payload={"problem": said, "exit_code": report.exit_code}),),
        alerts=(Alert(kind=HEALTH_ALERT, job_id=job.id, message=f"{said}; the training goes on"),),
    )


def health_words(report: HealthReport) -> str:
    """One line on a failed check, with the last thing that it printed."""
    how = _FAILURES.get(report.failure or "", f"ended with exit code {report.exit_code}")
    lines = report.tail.splitlines()
    return f"the health check {how}" + (f": {lines[-1][:_LONGEST_SAYING]}" if lines else "")
