"""Analyses of trainings."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column, Double, Integer, Text

revision = "0006"
down_revision = "0005"

metadata = sa.MetaData()

sa.Table(
    "analysis_reports",
    metadata,
    Column("job_id", Text, primary_key=True),
    Column("attempt", Integer, primary_key=True),
    Column("created_at", Double, nullable=False),
    Column("health", Text, nullable=False),
    Column("headline", Text),
    Column("summary", Text, nullable=False),
    Column("recommendations", Text, nullable=False),
    Column("log_errors", Text, nullable=False),
    Column("timeline", Text, nullable=False),
    Column("notes", Text, nullable=False),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=True)
