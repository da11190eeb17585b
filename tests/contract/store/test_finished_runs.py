"""How long earlier runs took is read from their jobs, rentals and events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from stationmaster.model import Outcome, Reason, RentalState, State
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent, Write
from stationmaster.watch.baseline import RunFacts
from tests.support.jobs.spine_values import offer, put_past_run, rental, spec


def ran(
    open_store: Callable[..., Store],
    job_id: str,
    *,
    seconds: float,
    outcome: Outcome = Outcome.COMPLETED,
    **fields: Any,
) -> None:
    """A job that was in EXECUTING for so long, by the store's clock."""
    store = open_store()
    store.jobs.submit(spec(job_id, **fields))
    (lease,) = [one for one in store.leases.claim("w", limit=10, seconds=9) if one.job.id == job_id]
    machine = rental(
        label=f"sm-{job_id}", job_id=job_id, state=RentalState.GONE, offer=offer(gpu="RTX 4090"), gone_at=1.0
    )
    begun = NewEvent(kind="state", payload={"from": "TRANSFERRING_DATA", "to": "EXECUTING", "attempt": 1})
    at_work = Write(job=replace(lease.job, state=State.EXECUTING, attempt=1), rentals=(machine,), events=(begun,))
    lease = store.leases.record(lease, at_work)
    over = NewEvent(kind="state", payload={"from": "EXECUTING", "to": "FETCHING_RESULTS", "attempt": 1})
    ended = replace(lease.job, state=State.ENDED, outcome=outcome, reason=Reason.FINISHED)
    open_store(later=seconds).leases.settle(lease, Write(job=ended, due_in=None, events=(over,)))


def test_completed_runs_of_the_recipe_tell_their_gpu_and_how_long_they_took(open_store: Callable[..., Store]) -> None:
    ran(open_store, "first", seconds=100.0, parameters={"steps": 20})
    ran(open_store, "failed", seconds=5.0, outcome=Outcome.FAILED)
    ran(open_store, "other", seconds=5.0, recipe="tiny-lora@10")
    (run,) = open_store().runs.finished("tiny-lora@1")
    assert run.seconds == pytest.approx(100.0, abs=20.0)
    assert (run.gpu, run.images, dict(run.parameters)) == ("RTX 4090", 4, {"steps": 20})


def test_a_run_s_peak_of_gpu_memory_comes_along_where_it_was_remembered(open_store: Callable[..., Store]) -> None:
    for job_id in ("new", "old", "none"):
        ran(open_store, job_id, seconds=100.0)
    store = open_store()
    facts = RunFacts(recipe="tiny-lora@1", gpu="RTX 4090", memory_bytes=20.0 * 1024**3)
    put_past_run(store, "old", facts)  # as older versions wrote it: the peak of the run's last part
    put_past_run(store, "new", replace(facts, peak_gpu_gib=21.5, gpu_gib=24.0))
    found = {(run.peak_gpu_gib, run.gpu_gib) for run in store.runs.finished("tiny-lora@1")}
    assert found == {(21.5, 24.0), (20.0, None), (None, None)}


def test_without_a_run_there_is_nothing_to_learn_from(store: Store) -> None:
    store.jobs.submit(spec("queued"))
    assert store.runs.finished("tiny-lora@1") == []
