"""Past runs: what completed trainings took, for the next estimate, and what a usual run looks like.

`finished` reads jobs, so it knows a job until that is removed; `facts` reads a table that outlives its jobs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.model import FinishedRun, Outcome, Reason, State
from stationmaster.store.bulk import upsert
from stationmaster.store.codec import known_fields, shallow, spec_from_text
from stationmaster.store.engine import Database
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.tables import events, jobs, past_runs, rentals
from stationmaster.watch.baseline import RunFacts

_ENOUGH = 20


class Runs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def finished(self, recipe: str) -> list[FinishedRun]:
        """The latest completed runs of a recipe (`name@version`) that needed only one attempt, newest first."""
        ended = (
            sa.select(jobs.c.id, jobs.c.spec, rentals.c.offer, past_runs.c.facts)
            .join(rentals, sa.and_(rentals.c.job_id == jobs.c.id, rentals.c.surplus.is_(False)))
            .join(past_runs, past_runs.c.job_id == jobs.c.id, isouter=True)
            .where(
                jobs.c.outcome == Outcome.COMPLETED.value,
                jobs.c.attempt == 1,
                # The recipe has no column: it is only in the JSON of `spec`, which `dumps` writes without spaces. This
                # runs once per proposal over completed jobs only, so it does not justify a column and a migration yet.
                jobs.c.spec.contains(f'"recipe":{dumps(recipe)}', autoescape=True),
            )
            .order_by(jobs.c.created_at.desc())
            .limit(_ENOUGH)
        )
        with self._database.read() as connection:
            rows = connection.execute(ended).mappings().all()
            spans = _executing_seconds(connection, [row["id"] for row in rows])
        return [_run(row, spans[row["id"]]) for row in rows if row["id"] in spans]

    def lost_machines(self) -> tuple[int, float]:
        """How many attempts were lost after login, and for how many hours machines were held, over all stored jobs."""
        with self._database.read() as connection:
            failures, seconds = connection.execute(self._lost_machines).one()
        return int(failures or 0), float(seconds or 0.0) / 3600

    @cached_property
    def _lost_machines(self) -> sa.Select[Any]:
        # The attempt that a user cancelled is counted as a failed one too.
        cancelled = sa.case((jobs.c.reason == Reason.CANCELLED_BY_USER.value, 1), else_=0)
        lost = sa.func.sum(
            sa.case((jobs.c.failed_after_login > cancelled, jobs.c.failed_after_login - cancelled), else_=0)
        )
        held = sa.func.sum(sa.func.coalesce(rentals.c.gone_at, self._database.now) - rentals.c.held_at)
        return sa.select(
            sa.select(lost).scalar_subquery(), sa.select(held).where(rentals.c.held_at.is_not(None)).scalar_subquery()
        )

    def facts(self, recipe: str, gpu: str, *, limit: int = 30) -> list[RunFacts]:
        """The latest runs of a recipe on a GPU, newest first; older ones no longer show what is usual."""
        values = {"b_recipe": recipe, "b_gpu": gpu, "b_limit": limit}
        with self._database.read() as connection:
            return [_facts(text) for text in connection.execute(_FACTS, values).scalars()]


def row_of(job_id: str, facts: RunFacts, *, now: float) -> dict[str, Any]:
    return {"job_id": job_id, "recipe": facts.recipe, "gpu": facts.gpu, "facts": dumps(shallow(facts)), "at": now}


def put(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the facts of jobs' runs; a second write for a job replaces the first."""
    if rows:
        upsert(connection, past_runs, rows, key=("job_id",))


_FACTS = (
    sa.select(past_runs.c.facts)
    .where(past_runs.c.recipe == sa.bindparam("b_recipe"), past_runs.c.gpu == sa.bindparam("b_gpu"))
    .order_by(past_runs.c.at.desc(), past_runs.c.job_id)
    .limit(sa.bindparam("b_limit", type_=sa.Integer))
)


def _facts(text: str) -> RunFacts:
    data = loads(text)
    curve = tuple((part, loss) for part, loss in data.get("loss_by_progress", ()))
    return known_fields(RunFacts, {**data, "loss_by_progress": curve})


def _run(row: RowMapping, seconds: float) -> FinishedRun:
    spec = spec_from_text(row["spec"])
    offer = loads(row["offer"]) if row["offer"] else {}
    facts = _facts(row["facts"]) if row["facts"] else None
    return FinishedRun(
        parameters=spec.parameters,
        images=spec.dataset.images,
        gpu=offer.get("gpu"),
        seconds=seconds,
        peak_gpu_gib=None if facts is None else _peak_gib(facts),
        gpu_gib=None if facts is None else facts.gpu_gib,
    )


def _peak_gib(facts: RunFacts) -> float | None:
    """The run's peak of GPU memory; in rows of older versions, that of its last part."""
    if facts.peak_gpu_gib is not None or facts.memory_bytes is None:
        return facts.peak_gpu_gib
    return facts.memory_bytes / 1024**3


def _executing_seconds(connection: Connection, job_ids: Sequence[str]) -> dict[str, float]:
    """How long each of the jobs was in EXECUTING, by the `state` events that mark its start and end."""
    moves = sa.select(events.c.job_id, events.c.payload, events.c.at).where(
        events.c.job_id.in_(job_ids), events.c.kind == "state"
    )
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    for row in connection.execute(moves).mappings():
        move = loads(row["payload"])
        if move.get("to") == State.EXECUTING.value:
            began[row["job_id"]] = row["at"]
        elif move.get("from") == State.EXECUTING.value:
            ended[row["job_id"]] = row["at"]
    return {job: ended[job] - began[job] for job in began.keys() & ended.keys()}
