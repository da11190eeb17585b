"""Jobs written into the store as if workers had carried them out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from stationmaster.model import Checkpoint, CostLine, Outcome, Progress, Reason, Rental, RentalState, State
from stationmaster.money import MicroDollars
from stationmaster.store import checkpoints
from stationmaster.store.codec import progress_to_text
from stationmaster.store.store import Store
from stationmaster.store.tables import jobs
from tests.support.jobs.spine_values import label, offer, rental, spec


def change_row(store: Store, job_id: str, **columns: Any) -> None:
    with store.database.write() as connection:
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(**columns))


@contextmanager
def as_failed(store: Store, job_id: str) -> Iterator[None]:
    """A job that was completed has failed, as long as the block lasts."""
    before = store.jobs.get(job_id)
    assert (before.outcome, before.reason) == (Outcome.COMPLETED, Reason.FINISHED)
    change_row(store, job_id, outcome=Outcome.FAILED.value, reason=Reason.STEP_FAILED.value)
    yield
    change_row(store, job_id, outcome=Outcome.COMPLETED.value, reason=Reason.FINISHED.value)


def put_trained(store: Store, job_id: str, *, progress: Progress | None = None, **fields: Any) -> None:
    """An ended job with a machine, its cost and a verified checkpoint; `fields` are those of its specification."""
    store.jobs.submit(spec(job_id, **fields))
    done = progress or Progress(step=20, total_steps=20, loss=0.25, first_loss=1.5, steps_per_second=2.0)
    change_row(
        store,
        job_id,
        state=State.ENDED.value,
        outcome=Outcome.COMPLETED.value,
        reason=Reason.FINISHED.value,
        attempt=1,
        progress=progress_to_text(done),
        ended_at=store.now(),
        due_at=None,
    )
    store.rentals.put_without_lease(machine_of(job_id, held_at=1_000.0, gone_at=4_600.0, state=RentalState.GONE))
    store.costs.put_without_lease(cost_of(job_id, started_at=1_000.0, ended_at=4_600.0))
    path = f"/srv/home/jobs/{job_id}/cats.safetensors"
    model = Checkpoint(
        attempt=1,
        path="output/cats.safetensors",
        kind="checkpoint",
        size=7,
        step=20,
        location=path,
        verified_at=5_000.5,
    )
    with store.database.write() as connection:
        checkpoints.put(connection, checkpoints.rows_of(job_id, [model]))


def machine_of(job_id: str, **fields: Any) -> Rental:
    given = {"label": label(job_id), "job_id": job_id, "provider_id": f"m-{job_id}", "offer": offer(gpu="RTX 4090")}
    return rental(**{**given, **fields})


def cost_of(job_id: str, **fields: Any) -> CostLine:
    values: dict[str, Any] = {
        "rental_label": label(job_id), "job_id": job_id, "kind": "gpu", "rate_per_hour": MicroDollars(360_000),
        "started_at": 1_000.0, "ended_at": None, "amount": MicroDollars(360_000), "source": "estimate",
    }  # fmt: skip
    return CostLine(**{**values, **fields})
