"""Many jobs in one question."""

from __future__ import annotations

from stationmaster.store.store import Store
from tests.support.jobs.spine_values import spec


def test_several_jobs_are_read_at_once_and_those_that_are_not_there_are_left_out(store: Store) -> None:
    for job_id in ("one", "two", "three"):
        store.jobs.submit(spec(job_id))
    assert store.jobs.several({"one", "three", "four"}) == {
        "one": store.jobs.get("one"),
        "three": store.jobs.get("three"),
    }


def test_no_jobs_are_asked_for_and_none_come(store: Store) -> None:
    store.jobs.submit(spec("one"))
    assert store.jobs.several(()) == {}
