"""What a person's jobs have cost lately and will cost at least."""

from __future__ import annotations

from collections import defaultdict

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import SINGLE_USER, State
from stationmaster.money import MicroDollars
from stationmaster.store.codec import cost_line_from_row, spec_from_text
from stationmaster.store.tables import cost_lines, jobs, removed_jobs

_NOT_AT_WORK = (State.QUEUED.value, State.ENDED.value)


def committed(
    connection: Connection, user: str, *, since: float, now: float, without: str | None = None
) -> MicroDollars:
    """What the person's machines cost since then, those of running jobs counted with their expected cost at least.

    A job that was removed meanwhile has cost what it did.
    """
    costs: dict[str, int] = defaultdict(int)
    recent = sa.or_(cost_lines.c.ended_at.is_(None), cost_lines.c.ended_at > since)
    theirs = sa.union(
        sa.select(jobs.c.id).where(_owned_by(user)), sa.select(removed_jobs.c.id).where(removed_jobs.c.owner == user)
    )
    lines = sa.select(cost_lines).where(recent, cost_lines.c.job_id.in_(theirs))
    for row in connection.execute(lines).mappings():
        costs[row["job_id"]] += cost_line_from_row(row).so_far(now=now)
    working = sa.select(jobs.c.id, jobs.c.spec).where(_owned_by(user), jobs.c.state.not_in(_NOT_AT_WORK))
    for row in connection.execute(working).mappings():
        if row["id"] != without:
            costs[row["id"]] = max(costs[row["id"]], spec_from_text(row["spec"]).quote.cost_expected)
    return MicroDollars(sum(costs.values()))


def _owned_by(user: str) -> sa.ColumnElement[bool]:
    named = jobs.c.owner == user
    return sa.or_(named, jobs.c.owner.is_(None)) if user == SINGLE_USER else named
