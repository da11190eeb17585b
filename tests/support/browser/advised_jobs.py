"""Ended trainings in the store of a served installation, with analyses as real runs give them."""

from __future__ import annotations

import dataclasses
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from stationmaster.analysis.analyse import analyse
from stationmaster.analysis.levers import Lever
from stationmaster.analysis.report import Report, Severity
from stationmaster.model import StepReading
from stationmaster.store import readings
from tests.support.analysis_cases.catalogue import CASES
from tests.support.analysis_cases.reading import recorded_run
from tests.support.jobs.advice import advice
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld
from tests.support.jobs.stored_jobs import put_trained

FULL_MEMORY = "workers_fill_unified_memory_and_one_is_killed-ai_toolkit"


def report_of(case: str, folder: Path) -> Report:
    """The analysis of a simulated run."""
    CASES[case]().write(folder)
    with closing(sqlite3.connect(folder / "run.db")) as connection:
        (job,) = connection.execute("SELECT job_id FROM TrainingEvent LIMIT 1").fetchone()
    return analyse(recorded_run(folder, job=job))


def full_memory(folder: Path) -> Report:
    """Six workers filled the memory and one was killed; and advice that no parameter of tiny-lora follows."""
    report = report_of(FULL_MEMORY, folder)
    first, *others = report.recommendations
    shared = advice(Lever.MACHINE_SHM, 8, severity=Severity.WARNING, title="Shared memory is small")
    return dataclasses.replace(report, recommendations=(first, shared, *others))


@contextmanager
def trained_like_anns(
    world: PeopledWorld, job_id: str, *, report: Report | None = None, losses: Sequence[float] = (), **parameters: Any
) -> Iterator[str]:
    """A job on the dataset of ann's, which has ended; its log showed the losses, `report` is its analysis.

    It is removed afterwards.
    """
    like = world.store.jobs.get(ANNS_JOB).spec
    put_trained(
        world.store,
        job_id,
        name=job_id,
        owner="ann",
        recipe=like.recipe,
        provider=like.provider,
        dataset=like.dataset,
        parameters={**like.parameters, **parameters},
    )
    with world.store.database.write() as connection:
        shown = [StepReading(attempt=1, at=1_000.0 + step, step=step, loss=loss) for step, loss in enumerate(losses, 1)]
        readings.append(connection, readings.rows(job_id, shown))
    if report is not None:
        assert world.store.analyses.put(job_id, 1, dataclasses.replace(report, job_id=job_id))
    try:
        yield job_id
    finally:
        world.local.jobs.remove(job_id)
