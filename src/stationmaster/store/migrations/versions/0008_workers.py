"""Workers announce the providers that they serve."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import Column, Double, Text

revision = "0008"
down_revision = "0007"

metadata = sa.MetaData()

sa.Table(
    "workers",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("version", Text, nullable=False),
    Column("providers", Text, nullable=False),
    Column("until", Double, nullable=False),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=True)
