"""How long trainings that ended well took, for the estimate of the next one."""

from __future__ import annotations

import json
from collections.abc import Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.model import FinishedRun, Outcome, State
from stationmaster.store.codec import spec_from_text
from stationmaster.store.engine import Database
from stationmaster.store.tables import events, jobs, rentals

_ENOUGH = 20


class FinishedRuns:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_recipe(self, reference: str) -> list[FinishedRun]:
        """The latest completed runs of a recipe that needed but one attempt, newest first."""
        ended = (
            sa.select(jobs.c.id, jobs.c.spec, rentals.c.offer)
            .join(rentals, sa.and_(rentals.c.job_id == jobs.c.id, rentals.c.surplus.is_(False)))
            .where(
                jobs.c.outcome == Outcome.COMPLETED.value,
                jobs.c.attempt == 1,
                jobs.c.spec.contains(f'"recipe":{json.dumps(reference)}', autoescape=True),
            )
            .order_by(jobs.c.created_at.desc())
            .limit(_ENOUGH)
        )
        with self._database.read() as connection:
            rows = connection.execute(ended).mappings().all()
            spans = _executing_seconds(connection, [row["id"] for row in rows])
        return [_run(row, spans[row["id"]]) for row in rows if row["id"] in spans]


def _run(row: RowMapping, seconds: float) -> FinishedRun:
    spec = spec_from_text(row["spec"])
    offer = json.loads(row["offer"]) if row["offer"] else {}
    return FinishedRun(parameters=spec.parameters, images=spec.dataset.images, gpu=offer.get("gpu"), seconds=seconds)


def _executing_seconds(connection: Connection, job_ids: Sequence[str]) -> dict[str, float]:
    """How long each of the jobs was in EXECUTING, by the events that tell its beginning and its end."""
    moves = sa.select(events.c.job_id, events.c.payload, events.c.at).where(
        events.c.job_id.in_(job_ids), events.c.kind == "state"
    )
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    for row in connection.execute(moves).mappings():
        move = json.loads(row["payload"])
        if move.get("to") == State.EXECUTING.value:
            began[row["job_id"]] = row["at"]
        elif move.get("from") == State.EXECUTING.value:
            ended[row["job_id"]] = row["at"]
    return {job: ended[job] - began[job] for job in began.keys() & ended.keys()}
