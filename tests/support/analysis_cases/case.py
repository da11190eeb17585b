"""A case: the files of one simulated training and its label."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any

from trackside.metrics.schema import complete_schema

Label = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """What a run left behind, and the answer."""

    label: Label
    rows: Mapping[str, Sequence[Mapping[str, Any]]]
    info: Mapping[str, Mapping[str, str]]
    """The facts of each job."""
    log: str
    config: str
    config_name: str
    rows_in_wal: int = 0
    """How many of the last rows of each table are still in the write-ahead log."""

    def write(self, folder: Path) -> None:
        """Write run.db, log.txt, the config and label.json."""
        folder.mkdir(parents=True, exist_ok=True)
        self._write_database(folder / "run.db")
        (folder / "log.txt").write_text(self.log, encoding="utf-8", newline="")
        (folder / self.config_name).write_text(self.config, encoding="utf-8")
        (folder / "label.json").write_text(json.dumps(self.label, indent=1), encoding="utf-8")

    def _write_database(self, path: Path) -> None:
        for stale in (path, path.with_name(path.name + "-wal")):
            stale.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("PRAGMA synchronous=OFF")
        if self.rows_in_wal:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA wal_autocheckpoint=0")
        connection.execute("BEGIN")
        complete_schema(connection)
        for table, rows in self.rows.items():
            _insert(connection, table, rows[: len(rows) - self.rows_in_wal])
        for job, facts in self.info.items():
            connection.executemany("INSERT INTO RunInfo VALUES (?, ?, ?)", [(job, *fact) for fact in facts.items()])
        connection.execute("COMMIT")
        if not self.rows_in_wal:
            connection.close()
            return
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for table, rows in self.rows.items():
            _insert(connection, table, rows[len(rows) - self.rows_in_wal :])
        held = [(place, place.read_bytes()) for place in (path, path.with_name(path.name + "-wal"))]
        connection.close()  # folds the log into the file: both are put back as they were
        for place, content in held:
            place.write_bytes(content)


CASES: dict[str, Callable[[], Case]] = {}
"""Every case by its name."""


def case(make: Callable[[], Case]) -> Callable[[], Case]:
    """Enter a case under its function's name."""
    return _enter(make.__name__, make)


def each(**variants: Any) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Enter one case for each variant: its name is added, its value given to the function."""

    def entered(make: Callable[..., Case]) -> Callable[..., Case]:
        for name, value in variants.items():
            _enter(f"{make.__name__}-{name}", partial(make, value))
        return make

    return entered


def _enter(name: str, make: Callable[[], Case]) -> Callable[[], Case]:
    if name in CASES:
        raise ValueError(f"two cases are called {name}")
    CASES[name] = make
    return make


def _insert(connection: sqlite3.Connection, table: str, rows: Sequence[Mapping[str, Any]]) -> None:
    for names, alike in groupby(rows, key=_names):
        statement = f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"
        connection.executemany(statement, [tuple(row.values()) for row in alike])


def _names(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row)
