"""Queries that go straight to the driver answer as SQLAlchemy does."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from stationmaster.model import RentalState
from stationmaster.store.bulk import read_rows
from stationmaster.store.store import Store
from stationmaster.store.tables import rentals
from tests.support.jobs.spine_values import label, rental, spec

_OF_JOBS = (
    sa.select(rentals)
    .where(
        rentals.c.job_id.in_(sa.bindparam("jobs", expanding=True)),
        rentals.c.state == sa.bindparam("state"),
    )
    .order_by(rentals.c.label)
)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5])
def test_rows_are_those_of_sqlalchemy_whatever_the_length_of_a_list(store: Store, count: int) -> None:
    names = [f"job{number}" for number in range(6)]
    for number, name in enumerate(names):
        store.jobs.submit(spec(name))
        store.rentals.put_without_lease(rental(label=label(name), job_id=name, surplus=number % 2 == 1))
    asked = {"jobs": names[:count], "state": rental().state.value}
    with store.database.read() as connection:
        expected = [dict(row) for row in connection.execute(_OF_JOBS, asked).mappings()]
        assert len(expected) == count
        for _ in range(2):  # compiled, then kept
            found = read_rows(connection, _OF_JOBS, asked)
            assert [repr(row) for row in found] == [repr(row) for row in expected]  # True is not 1
        assert read_rows(connection, _OF_JOBS, {**asked, "state": RentalState.GONE.value}) == []
