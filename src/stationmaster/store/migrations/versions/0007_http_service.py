"""Users' roles, and what the HTTP service stores: tokens, sessions, its audit log, submissions, uploaded datasets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy import BigInteger, Column, Double, Index, Integer, Text

revision = "0007"
down_revision = "0006"

metadata = sa.MetaData()

_Counter = BigInteger().with_variant(Integer, "sqlite")

sa.Table(
    "api_tokens",
    metadata,
    Column("id", Text, primary_key=True),
    Column("secret_sha256", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("rights", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double),
    Column("last_used_at", Double),
    Column("revoked_at", Double),
    Index("tokens_of_user", "owner"),
)

sa.Table(
    "sign_in_codes",
    metadata,
    Column("code_sha256", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("expires_at", Double, nullable=False),
)

sa.Table(
    "browser_sessions",
    metadata,
    Column("secret_sha256", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("token_id", Text),
    Column("csrf_token", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("expires_at", Double, nullable=False),
)

sa.Table(
    "audit_log",
    metadata,
    Column("id", _Counter, primary_key=True, autoincrement=True),
    Column("at", Double, nullable=False),
    Column("actor", Text),
    Column("token_id", Text),
    Column("action", Text, nullable=False),
    Column("subject", Text),
    Column("status", Integer, nullable=False),
    Column("address", Text),
    Index("audit_by_age", "at"),
)

sa.Table(
    "submissions",
    metadata,
    Column("owner", Text, primary_key=True),
    Column("key_sha256", Text, primary_key=True),
    Column("body_sha256", Text, nullable=False),
    Column("job_id", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("submitted_at", Double),
    Index("submissions_by_age", "created_at"),
    Index("submissions_of_job", "job_id"),
)

sa.Table(
    "dataset_uploads",
    metadata,
    Column("id", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("created_at", Double, nullable=False),
    Column("charged_bytes", BigInteger, nullable=False),
    Column("sha256", Text),
    Column("size", BigInteger),
    Index("uploads_of_user", "owner", "created_at"),
)


def upgrade() -> None:
    connection = op.get_bind()
    metadata.create_all(connection, checkfirst=True)
    if "role" not in {column["name"] for column in sa.inspect(connection).get_columns("users")}:
        op.add_column("users", Column("role", Text, nullable=False, server_default="user"))
    for name, table, columns in (
        ("jobs_of_owner", "jobs", ["owner", "created_at"]),
        ("readings_in_order", "readings", ["job_id", "seq"]),
    ):
        if name not in {index["name"] for index in sa.inspect(connection).get_indexes(table)}:
            op.create_index(name, table, columns)
