"""Hosts that failed, remembered for a day so that no job rents them again."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import BadMachine
from stationmaster.store.bulk import upsert
from stationmaster.store.engine import Database
from stationmaster.store.tables import bad_machines

_AVOIDED_SECONDS = 24 * 3600.0


class BadMachines:
    def __init__(self, database: Database) -> None:
        self._database = database

    @cached_property
    def _avoided(self) -> sa.Select[Any]:
        recent = bad_machines.c.at > self._database.now - _AVOIDED_SECONDS
        return sa.select(bad_machines.c.machine_id).where(bad_machines.c.provider == sa.bindparam("b_provider"), recent)

    def avoided(self, provider: str) -> frozenset[str]:
        """Ids of the provider's machines to avoid now, whichever of its accounts they failed on."""
        with self._database.read() as connection:
            return frozenset(connection.execute(self._avoided, {"b_provider": _without_account(provider)}).scalars())


def put(connection: Connection, machines: Iterable[BadMachine], *, now: float) -> None:
    rows = [
        {"provider": _without_account(one.provider), "machine_id": one.machine_id, "why": one.why, "at": now}
        for one in machines
    ]
    if rows:
        upsert(connection, bad_machines, rows, key=("provider", "machine_id"))


def _without_account(provider: str) -> str:
    return provider.partition(":")[0]
