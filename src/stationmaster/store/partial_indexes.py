"""Indexes over some of a table's rows: by them the database itself refuses what must not be there twice.

Apart from the tables, since SQLAlchemy imports the dialects of both engines to read their conditions, and only whoever
creates or compares tables needs them.
"""

from __future__ import annotations

import sqlalchemy as sa

from stationmaster.store.tables import ledger_entries, metadata, rentals, tickets

whole_metadata = metadata
"""The tables with all their indexes."""


def _unique_among(name: str, *columns: sa.Column[object], where: str) -> None:
    sa.Index(name, *columns, unique=True, sqlite_where=sa.text(where), postgresql_where=sa.text(where))


# One job never uses two machines.
_unique_among("rentals_one_live_per_job", rentals.c.job_id, where="state IN ('REQUESTED', 'HELD')")

_unique_among("ledger_entries_key", ledger_entries.c.key, where="key IS NOT NULL")

# A path has one live ticket at a time.
_unique_among("tickets_live", tickets.c.job_id, tickets.c.attempt, tickets.c.path, where="state IN ('OPEN', 'ISSUED')")
