"""The tables of a run's database, created and completed when it is opened.

The trainer may use the same file for its own tables, so nothing else in it is touched.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sqlite3 import Connection

DEFAULT_NAME = "aitk_db.db"
VERSION = 1

#: Each table's columns with their SQL types, in order. A column that is added later goes last.
TABLES = {
    "MetricsSample": (
        ("id", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        ("job_id", "TEXT NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("total_memory_gb", "REAL"),
        ("used_memory_gb", "REAL"),
        ("available_memory_gb", "REAL"),
        ("swap_used_gb", "REAL"),
        ("main_process_memory_gb", "REAL"),
        ("worker_memory_gb", "REAL"),
        ("worker_count", "INTEGER"),
        ("gpu_memory_used_gb", "REAL"),
        ("gpu_utilization_percent", "REAL"),
        ("cpu_utilization_percent", "REAL"),
    ),
    "TrainingEvent": (
        ("id", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        ("job_id", "TEXT NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("event_type", "TEXT NOT NULL"),
        ("details", "TEXT"),
        ("memory_snapshot_id", "INTEGER REFERENCES MetricsSample(id)"),
    ),
    "StepMetric": (
        ("id", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        ("job_id", "TEXT NOT NULL"),
        ("step", "INTEGER NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("loss", "REAL"),
        ("batch_size", "INTEGER"),
        ("gradient_norm", "REAL"),
        ("learning_rate", "REAL"),
        ("step_time_seconds", "REAL"),
    ),
    "AnalysisReport": (
        ("id", "INTEGER PRIMARY KEY AUTOINCREMENT"),
        ("job_id", "TEXT NOT NULL"),
        ("created_at", "REAL NOT NULL"),
        ("summary", "JSON NOT NULL"),
        ("recommendations", "JSON NOT NULL"),
        ("log_errors", "JSON"),
        ("peak_memory_gb", "REAL"),
        ("health_score", "TEXT"),
    ),
    "GpuSample": (
        ("id", "INTEGER PRIMARY KEY"),
        ("job_id", "TEXT NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("gpu_index", "INTEGER NOT NULL"),
        ("name", "TEXT"),
        ("memory_used_gb", "REAL"),
        ("memory_total_gb", "REAL"),
        ("utilization_percent", "REAL"),
        ("temperature_c", "REAL"),
        ("power_watts", "REAL"),
        ("power_limit_watts", "REAL"),
        ("clock_mhz", "REAL"),
        ("throttle", "TEXT"),
    ),
    "RunInfo": (
        ("job_id", "TEXT NOT NULL"),
        ("key", "TEXT NOT NULL"),
        ("value", "TEXT"),
    ),
    "StepValue": (  # values of a step that StepMetric has no column for
        ("id", "INTEGER PRIMARY KEY"),
        ("job_id", "TEXT NOT NULL"),
        ("step", "INTEGER NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("name", "TEXT NOT NULL"),
        ("value", "REAL"),
    ),
    "ResourceSample": (
        ("id", "INTEGER PRIMARY KEY"),
        ("job_id", "TEXT NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("disk_total_gb", "REAL"),
        ("disk_free_gb", "REAL"),
        ("disk_read_mb_per_second", "REAL"),
        ("disk_write_mb_per_second", "REAL"),
        ("network_received_mb_per_second", "REAL"),
        ("network_sent_mb_per_second", "REAL"),
    ),
    "ProcessSample": (
        ("id", "INTEGER PRIMARY KEY"),
        ("job_id", "TEXT NOT NULL"),
        ("timestamp", "REAL NOT NULL"),
        ("pid", "INTEGER NOT NULL"),
        ("role", "TEXT NOT NULL"),
        ("memory_gb", "REAL"),
        ("cpu_percent", "REAL"),
        ("gpu_memory_gb", "REAL"),
        ("io_mb_per_second", "REAL"),
        ("state", "TEXT"),
    ),
    # How far each journal has been folded: written in the transaction of its rows, so that none is folded twice.
    "TracksideJournal": (
        ("name", "TEXT PRIMARY KEY"),
        ("position", "INTEGER NOT NULL"),
    ),
    "TracksideSchema": (("version", "INTEGER NOT NULL"),),
}

#: The tables whose rows home reads.
SERIES = (
    "StepMetric", "StepValue", "MetricsSample", "GpuSample", "ResourceSample", "ProcessSample", "TrainingEvent",
    "RunInfo",
)  # fmt: skip


def columns_of(table: str) -> tuple[str, ...]:
    """Return the columns that are written to a table: all but a generated id."""
    return tuple(name for name, _ in TABLES[table] if name != "id")


def complete_schema(connection: Connection) -> None:
    """Create the tables and columns that are missing, within the caller's transaction."""
    for table, columns in TABLES.items():
        written = ", ".join("%s %s" % column for column in columns)
        connection.execute("CREATE TABLE IF NOT EXISTS %s (%s)" % (table, written))
        known = _columns(connection, table)
        for name, kind in columns:
            if name not in known:
                # A column that is NOT NULL cannot be added to rows that exist.
                connection.execute("ALTER TABLE %s ADD COLUMN %s %s" % (table, name, kind.split(" NOT")[0]))
    connection.execute("DELETE FROM TracksideSchema WHERE version < ?", (VERSION,))
    connection.execute(
        "INSERT INTO TracksideSchema SELECT ? WHERE NOT EXISTS (SELECT 1 FROM TracksideSchema)", (VERSION,)
    )


def is_complete(connection: Connection) -> bool:
    """Return whether the database has every table and column; a newer version's has more."""
    for table, columns in TABLES.items():
        if not {name for name, _ in columns} <= _columns(connection, table):
            return False
    found = connection.execute("SELECT max(version) FROM TracksideSchema").fetchone()[0]
    return found is not None and found >= VERSION


def _columns(connection: Connection, table: str) -> set[str]:
    return {row[1] for row in connection.execute("PRAGMA table_info(%s)" % table)}
