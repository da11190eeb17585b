"""What belongs to many jobs is read in few queries."""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.station.local.job_views import views_of
from stationmaster.store.store import Store
from tests.support.jobs.stored_jobs import put_trained


def queries_of_views(store: Store) -> int:
    count = 0

    def note(*_: object) -> None:
        nonlocal count
        count += 1

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        views_of(store, store.jobs.listed(with_ended=True))
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)
    return count


def test_a_list_of_views_takes_as_many_queries_as_one_view(store: Store) -> None:
    put_trained(store, "first")
    of_one = queries_of_views(store)
    for number in range(6):
        put_trained(store, f"job{number}")
    assert queries_of_views(store) == of_one
    assert of_one <= 8
