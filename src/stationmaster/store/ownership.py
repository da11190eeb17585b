"""Whose a job is."""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.model import SINGLE_USER
from stationmaster.store.tables import jobs, removed_jobs


def owned_by(user: str) -> sa.ColumnElement[bool]:
    """Whether the job of a row is this user's; jobs of the single user name no owner."""
    named = jobs.c.owner == user
    return sa.or_(named, jobs.c.owner.is_(None)) if user == SINGLE_USER else named


def ids_of_owner(user: str) -> sa.CompoundSelect[tuple[str]]:
    """The ids of this user's jobs, and those that cost lines of their removed jobs have."""
    return sa.union(
        sa.select(jobs.c.id).where(owned_by(user)), sa.select(removed_jobs.c.id).where(removed_jobs.c.owner == user)
    )
