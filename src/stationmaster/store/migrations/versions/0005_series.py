"""Measured values of trainings, and how much of them each job has."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Boolean, Column, Double, Index, Integer, LargeBinary, Text

revision = "0005"
down_revision = "0004"

metadata = sa.MetaData()

sa.Table(
    "series_blocks",
    metadata,
    Column("seq", BigInteger().with_variant(Integer, "sqlite"), primary_key=True, autoincrement=True),
    Column("job_id", Text, nullable=False),
    Column("attempt", Integer, nullable=False),
    Column("name", Text, nullable=False),
    Column("first_id", BigInteger, nullable=False),
    Column("last_id", BigInteger, nullable=False),
    Column("first_at", Double),
    Column("last_at", Double),
    Column("row_count", Integer, nullable=False),
    Column("thinned", Boolean, nullable=False),
    Column("size", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
    Index("series_blocks_of_job", "job_id", "name", "attempt", "seq"),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind(), checkfirst=True)
    present = {column["name"] for column in sa.inspect(op.get_bind()).get_columns("jobs")}
    for name in ("series_bytes", "series_dropped"):
        if name not in present:
            op.add_column("jobs", Column(name, BigInteger, nullable=False, server_default="0"))
