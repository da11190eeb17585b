"""Whose the removed jobs were: what they cost goes on counting against their owner's cap of a day."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column, Double, Text

revision = "0002"
down_revision = "0001"

metadata = sa.MetaData()

sa.Table(
    "removed_jobs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("at", Double, nullable=False),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=True)
