"""The analysis of an attempt that trained: once, when its training is over, off the event loop.

A machine that bills never waits for it: it runs beside the inventory of results or, if there was no time for it then,
once the machine is gone. No error in it fails the job.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.report import Report
from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.results.recorded_job import JobSources, recorded_job
from stationmaster.event_log import get_logger
from stationmaster.model import Job
from stationmaster.model.copying import changed
from stationmaster.store.writes import NewEvent, Write

log = get_logger("stationmaster.analysing")

_LIMIT_SECONDS = 120.0  # then the job ends without an analysis; `analyze JOB` makes one later
_LONGEST_PROBLEM = 500
_LATE_SECONDS = 5.0  # by which it may delay what it runs beside; most runs take a fraction of a second


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyse:
    """Analyse the attempt and store the report; repeating it replaces the report."""


def analysis_is_due(job: Job, visit: Visit) -> bool:
    """Whether this attempt has trained and is still to be analysed."""
    return job.watching.trained and not job.ending.analysed and visit.monitoring.analyze_on_complete


async def analysed(job: Job, visit: Visit, world: World) -> Write:
    """Analyse the attempt; returns the write with the report, or with the event that there is none."""
    try:
        async with asyncio.timeout(_LIMIT_SECONDS):
            report = await _report(job, visit, world)
    except TimeoutError:
        return _without_report(wait(job, 0.0), f"timed out after {_LIMIT_SECONDS:.0f} s")
    except Exception as problem:
        log.warning("analysis.failed", job=job.id, exc_info=True)
        return _without_report(wait(job, 0.0), f"{type(problem).__name__}: {problem}")
    return with_report(wait(job, 0.0), report)


async def analysed_meanwhile(
    work: Awaitable[Write], job: Job, visit: Visit, world: World, *, late_seconds: float = _LATE_SECONDS
) -> Write:
    """Do `work` and analyse the attempt at the same time. A report that is late is left for when the machine is gone.

    The work's result is returned in any case.
    """
    analysis = asyncio.ensure_future(_report(job, visit, world))
    try:
        write = await work
        await asyncio.wait([analysis], timeout=late_seconds)
    finally:
        analysis.cancel()
    if not analysis.done() or analysis.cancelled():
        return write
    if problem := analysis.exception():
        log.warning("analysis.failed", job=job.id, exc_info=problem)
        return _without_report(write, f"{type(problem).__name__}: {problem}")
    return with_report(write, analysis.result())


async def _report(job: Job, visit: Visit, world: World) -> Report:
    lost = await world.lost_machines.of(None)  # a query over all jobs: one for all that end together
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(world.analysis_thread, report_of, job, visit, world, lost)


def report_of(job: Job, visit: Visit, world: World, lost_machines: tuple[int, float]) -> Report:
    """Analyse the job's current attempt. Takes seconds for a long run: call it in a thread."""
    sources = JobSources(
        store=world.store, find_recipe=world.recipe, monitoring=visit.monitoring, lost_machines=lost_machines
    )
    return analyse(recorded_job(job, sources, attempt=job.attempt))


def with_report(write: Write, report: Report) -> Write:
    """The write with a report, the event that records it, and the mark that there is one."""
    first = report.first
    payload = {
        "health": report.health.value,
        "recommendations": len(report.recommendations),
        "first": None if first is None else first.title,
        "severity": None if first is None else first.severity.value,
        "config_path": None if first is None else first.config_path,
    }
    event = NewEvent(kind="analysed", payload=payload)
    return changed(write, job=_marked(write.job), analysis=report, events=(*write.events, event))


def _without_report(write: Write, problem: str) -> Write:
    event = NewEvent(kind="analysis_failed", payload={"problem": problem[:_LONGEST_PROBLEM]})
    return changed(write, job=_marked(write.job), events=(*write.events, event))


def _marked(job: Job) -> Job:
    return changed(job, ending=changed(job.ending, analysed=True))
