"""What was proposed to people and waits for their yes."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column, Double, Index, Text

revision = "0004"
down_revision = "0003"

metadata = sa.MetaData()

sa.Table(
    "proposals",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text),
    Column("job_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
    Column("dataset_sha256", Text, nullable=False),
    Column("spec", Text, nullable=False),
    Column("terms", Text, nullable=False),
    Index("proposals_expire", "expires_at"),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=True)
