"""The simulator's records, optionally in an SQLite file, so that a simulator can be restarted."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pydantic import TypeAdapter

from stationmaster.simulator.accounts import Account
from stationmaster.simulator.instances import Instance

_ACCOUNT = TypeAdapter(Account)
_INSTANCE = TypeAdapter(Instance)


class Records:
    """Accounts and instances by id, destroyed ones included: they stay on the bill."""

    def __init__(self, path: Path | None = None) -> None:
        self._database = _open(path) if path is not None else None
        self.accounts: dict[int, Account] = {}
        self.instances: dict[int, Instance] = {}
        if self._database is not None:
            for kind, document in self._database.execute("SELECT kind, document FROM records ORDER BY id"):
                self._remember(kind, document)

    def put_account(self, account: Account) -> None:
        self.accounts[account.id] = account
        self._write("account", account.id, _ACCOUNT.dump_json(account))

    def put_instance(self, instance: Instance) -> None:
        self.instances[instance.id] = instance
        self._write("instance", instance.id, _INSTANCE.dump_json(instance))

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _remember(self, kind: str, document: bytes) -> None:
        if kind == "account":
            account = _ACCOUNT.validate_json(document)
            self.accounts[account.id] = account
        else:
            instance = _INSTANCE.validate_json(document)
            self.instances[instance.id] = instance

    def _write(self, kind: str, identifier: int, document: bytes) -> None:
        if self._database is not None:
            self._database.execute("INSERT OR REPLACE INTO records VALUES (?, ?, ?)", (kind, identifier, document))


def _open(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    database.execute("PRAGMA journal_mode=WAL")
    # The file must survive a killed simulator, not a power cut.
    database.execute("PRAGMA synchronous=OFF")
    database.execute(
        "CREATE TABLE IF NOT EXISTS records (kind TEXT, id INTEGER, document BLOB, PRIMARY KEY (kind, id))"
    )
    return database
