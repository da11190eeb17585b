"""What holds after any crash: checked on the store, whatever the machines were."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from stationmaster.lifecycle import MOVES
from stationmaster.model import Event, Outcome, RentalState, State
from stationmaster.store.store import Store

_MOVES = {(source.value, target.value) for (source, _), target in MOVES.items()}


def check_store(store: Store, job_id: str) -> None:
    """The job completed in its first attempt, its story has no hole, and nothing bills any more."""
    job = store.jobs.get(job_id)
    assert (job.state, job.outcome) == (State.ENDED, Outcome.COMPLETED), f"{job.state} {job.outcome}: {job.explanation}"
    assert job.attempt == 1, "a crash of ours cost a further attempt"
    assert store.jobs.count_needing_a_worker() == 0
    _check_events(store, job_id, version=job.version)
    _check_money(store, job_id)
    _check_log(store, job_id)
    models = [one for one in store.checkpoints.of_job(job_id) if one.verified_at is not None]
    assert models, "no model is safe at home"


def _check_events(store: Store, job_id: str, *, version: int) -> None:
    events = store.events.of_job(job_id)
    assert [event.job_version for event in events] == list(range(1, version + 1)), "a hole in the job's story"
    moves = [(event.payload["from"], event.payload["to"]) for event in events if event.kind == "state"]
    assert set(moves) <= _MOVES, f"a move that the table does not know: {moves}"
    assert all(before[1] == after[0] for before, after in pairwise(moves)), f"the job jumped: {moves}"
    assert [event.kind for event in events].count("outcome") == 1, "the outcome was told more than once"
    tries = [(event.payload["step"], event.payload["state"], event.payload["try"]) for event in _of(events, "step")]
    assert len(tries) == len(set(tries)), f"a step's change was told twice: {tries}"
    assert len(_of(events, "analysed")) == 1, "a training is analysed once"
    assert store.analyses.of_job(job_id) is not None
    assert not _of(events, "tripped"), _of(events, "tripped")


def _of(events: Iterable[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


def _check_money(store: Store, job_id: str) -> None:
    rentals = store.rentals.of_job(job_id)
    assert rentals, "a job that ran has rented"
    assert {rental.state for rental in rentals} == {RentalState.GONE}
    assert [rental.surplus for rental in rentals].count(False) == 1, "two machines were rented on purpose"
    lines = store.costs.of_job(job_id)
    assert all(line.ended_at is not None for line in lines), f"a cost line is still open: {lines}"
    named = {rental.label for rental in rentals if rental.provider_id is not None}
    assert {line.rental_label for line in lines} == named, "a machine without a cost line, or the other way round"


def _check_log(store: Store, job_id: str) -> None:
    """Every byte of every stream was taken in once, in order."""
    reached: dict[str, int] = {}
    for _, chunk in store.logs.of_job(job_id, limit=100_000):
        assert chunk.start == reached.get(chunk.stream, 0), f"{chunk.stream} jumps to {chunk.start} in the log"
        reached[chunk.stream] = chunk.end
    assert reached, "no log was kept"
