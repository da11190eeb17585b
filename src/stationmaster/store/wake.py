"""Wakes readers after a write. Readers always read the tables, so a lost wake-up only costs time."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Any

from sqlalchemy.engine import Connection

from stationmaster.store.engine import Database

_WORK = "stationmaster_work"
_NEWS = "stationmaster_news"
_SQLITE_POLL_SECONDS = 0.05


def announce(connection: Connection) -> None:
    """Wake workers and viewers when this transaction commits: there is something to do.

    On SQLite this does nothing: its readers poll the data version.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"NOTIFY {_WORK}")


def announce_news(connection: Connection) -> None:
    """Wake only viewers: if every write of a worker woke all workers, itself included, they would never rest."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"NOTIFY {_NEWS}")


class Waker:
    """Waits until another process writes to the store. Use as a context manager, from one thread."""

    def __init__(self, database: Database, *, for_work: bool = False) -> None:
        """`for_work`: wake only when there is something to do for a worker."""
        self._database = database
        self._channels = (_WORK,) if for_work else (_WORK, _NEWS)
        self._pooled: Any = None
        self._seen: int | None = None

    def __enter__(self) -> Waker:
        """Raises StoreError, as `wait` does, when the store does not answer."""
        with self._database.translating():
            self._pooled = self._database.driver_connection()
            if self._database.is_sqlite:
                self._seen = self._data_version()
            else:
                driver = self._pooled.driver_connection
                driver.autocommit = True
                for channel in self._channels:
                    driver.execute(f"LISTEN {channel}")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not returned to the pool: it listens, or has a data version, which no other user of the pool expects.
        driver = self._pooled.driver_connection
        self._pooled.detach()
        driver.close()

    def wait(self, seconds: float) -> bool:
        """True as soon as something was written, False when `seconds` have passed."""
        with self._database.translating():
            if self._database.is_sqlite:
                return self._wait_for_data_version(seconds)
            driver = self._pooled.driver_connection
            return any(True for _ in driver.notifies(timeout=seconds, stop_after=1))

    def _wait_for_data_version(self, seconds: float) -> bool:
        ends = time.monotonic() + seconds
        while (version := self._data_version()) == self._seen:
            left = ends - time.monotonic()
            if left <= 0:
                return False
            time.sleep(min(left, _SQLITE_POLL_SECONDS))
        self._seen = version
        return True

    def _data_version(self) -> int:
        return int(self._pooled.driver_connection.execute("PRAGMA data_version").fetchone()[0])
