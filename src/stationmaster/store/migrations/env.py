"""Run by Alembic; the connection is handed in by `schema.py`, which holds the lock."""

from __future__ import annotations

from alembic import context

context.configure(connection=context.config.attributes["connection"])
with context.begin_transaction():
    context.run_migrations()
