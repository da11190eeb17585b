"""A queue in memory that a thread writes to SQLite in batches: the simplest collector that does not block on disk."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import Finish, Log

IMPORT = "import sqlite3"
_NAME = "steps.db"
_INTERVAL_SECONDS = 0.5


def start(folder: str) -> tuple[Log, Finish]:
    import sqlite3
    import threading
    import time
    from collections import deque

    waiting: deque[tuple[int, float, float, float, float]] = deque()
    ended = threading.Event()
    append, now = waiting.append, time.time

    def write_batches() -> None:
        connection = sqlite3.connect(f"{folder}/{_NAME}", isolation_level=None)
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE IF NOT EXISTS steps (step INTEGER, at REAL, loss REAL, lr REAL, norm REAL)")
        while True:
            last = ended.wait(_INTERVAL_SECONDS)
            batch = [waiting.popleft() for _ in range(len(waiting))]
            connection.execute("BEGIN")
            connection.executemany("INSERT INTO steps VALUES (?, ?, ?, ?, ?)", batch)
            connection.execute("COMMIT")
            if last and not waiting:
                break
        connection.close()

    writer = threading.Thread(target=write_batches, daemon=True)
    writer.start()

    def log(step: int, loss: float, lr: float, grad_norm: float) -> None:
        append((step, now(), loss, lr, grad_norm))

    def finish() -> None:
        ended.set()
        writer.join()

    return log, finish


def stored_steps(folder: str) -> int:
    import sqlite3

    try:
        found = sqlite3.connect(f"{folder}/{_NAME}").execute("SELECT count(DISTINCT step) FROM steps").fetchone()
    except sqlite3.OperationalError:  # killed before the table was created
        return 0
    return int(found[0])
