"""Training values by step, as read from the logs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import StepReading
from stationmaster.store.codec import known_fields
from stationmaster.store.engine import Database
from stationmaster.store.tables import readings


class Readings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(self, job_id: str) -> list[StepReading]:
        query = sa.select(readings).where(readings.c.job_id == job_id).order_by(readings.c.seq)
        with self._database.read() as connection:
            return [known_fields(StepReading, dict(row)) for row in connection.execute(query).mappings()]


def append(connection: Connection, job_id: str, values: Iterable[StepReading]) -> None:
    rows = [{"job_id": job_id, **dataclasses.asdict(value)} for value in values]
    if rows:
        connection.execute(readings.insert(), rows)
