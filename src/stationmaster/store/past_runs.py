"""What finished runs looked like, by recipe and GPU: what is usual is learnt from them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.store.codec import dumps, known_fields, shallow
from stationmaster.store.engine import Database
from stationmaster.store.tables import past_runs
from stationmaster.store.upsert import upsert
from stationmaster.watch.baseline import RunFacts


class PastRuns:
    def __init__(self, database: Database) -> None:
        self._database = database

    def like(self, recipe: str, gpu: str, *, most: int = 30) -> list[RunFacts]:
        """The latest runs of a recipe on a GPU, newest first: what was usual long ago is not."""
        values = {"b_recipe": recipe, "b_gpu": gpu, "b_most": most}
        with self._database.read() as connection:
            return [_facts(text) for text in connection.execute(_LIKE, values).scalars()]


def row_of(job_id: str, facts: RunFacts, *, now: float) -> dict[str, Any]:
    return {"job_id": job_id, "recipe": facts.recipe, "gpu": facts.gpu, "facts": dumps(shallow(facts)), "at": now}


def put(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write down how jobs' runs were; the same job again replaces it."""
    if rows:
        upsert(connection, past_runs, rows, key=("job_id",))


_LIKE = (
    sa.select(past_runs.c.facts)
    .where(past_runs.c.recipe == sa.bindparam("b_recipe"), past_runs.c.gpu == sa.bindparam("b_gpu"))
    .order_by(past_runs.c.at.desc(), past_runs.c.job_id)
    .limit(sa.bindparam("b_most", type_=sa.Integer))
)


def _facts(text: str) -> RunFacts:
    data = json.loads(text)
    curve = tuple((part, loss) for part, loss in data.get("loss_by_progress", ()))
    return known_fields(RunFacts, {**data, "loss_by_progress": curve})
