"""Opens the database: a SQLite file for one user, PostgreSQL for many workers; the same queries run on both."""

from __future__ import annotations

import os
import select
import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url
from sqlalchemy.exc import (
    ArgumentError,
    DatabaseError,
    DBAPIError,
    DisconnectionError,
    InternalError,
    OperationalError,
    TimeoutError,
)
from sqlalchemy.util import LRUCache

from stationmaster.errors import ConfigInvalid, StoreError

_BUSY_SECONDS = 30
_NETWORK_FILE_SYSTEMS = {
    "nfs",
    "nfs4",
    "cifs",
    "smb3",
    "smbfs",
    "fuse.sshfs",
    "afs",
    "ceph",
    "lustre",
    "fuse.glusterfs",
}
#: Notice within half a minute that the server's computer is gone; the server notices by its own time limits.
_CONNECTION_OPTIONS = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 25_000,  # milliseconds; ignored on sockets of this computer, as the others are
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    """Time limits, in seconds, that the PostgreSQL server applies to each of our sessions; 0 is no limit.

    A process that is stopped or suspended inside a transaction keeps its row locks until the server ends its session,
    and a worker cannot claim a locked job. So `idle_in_transaction` is below a worker's lease: after 20 s the lease has
    expired and the rows have been free for 10 s, and the next look, 2 s later, takes the job over.

    `lock` is above `idle_in_transaction`, so that who waits for such a process gets the row and not an error; and a
    renewal that waits in vain (every 5 s, for 12 s) fails 17 s after the last one, before its handlers must be
    cancelled, 2 s before the lease expires.
    """

    idle_in_transaction: float = 10.0
    lock: float = 12.0
    statement: float = 120.0

    def statement_to_set(self, *, only_this_transaction: bool) -> str:
        """
        >>> SessionLimits(idle_in_transaction=1, lock=2, statement=0).statement_to_set(only_this_transaction=False)[:64]
        "SELECT set_config('idle_in_transaction_session_timeout', '1000',"
        """
        limits = {
            "idle_in_transaction_session_timeout": self.idle_in_transaction,
            "lock_timeout": self.lock,
            "statement_timeout": self.statement,
        }
        scope = "true" if only_this_transaction else "false"
        return "SELECT " + ", ".join(
            f"set_config('{name}', '{round(seconds * 1000)}', {scope})" for name, seconds in limits.items()
        )


_NO_LIMITS = SessionLimits(idle_in_transaction=0, lock=0, statement=0)


class Database:
    """Opens transactions. Times are the database's own, shifted by `clock_offset` seconds (for tests)."""

    def __init__(
        self,
        url: str,
        *,
        clock_offset: float = 0.0,
        mounts: Path = Path("/proc/mounts"),
        limits: SessionLimits = SessionLimits(),  # noqa: B008 (frozen)
    ) -> None:
        self.url = _checked_url(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self.clock_offset = clock_offset
        if self.is_sqlite:
            _refuse_network_file_system(Path(str(self.url.database)).parent, mounts)
            self._writer, self._reader = _open_sqlite(self.url)
        else:
            self._writer = _open_postgresql(self.url, limits)
            # A read is one statement: without BEGIN and ROLLBACK around it, it takes one round trip instead of three.
            self._reader = self._writer.execution_options(isolation_level="AUTOCOMMIT")

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One writing transaction, committed at the end of the block, rolled back on an exception."""
        with _translated(), self._writer.begin() as connection:
            yield connection

    @contextmanager
    def long_write(self) -> Iterator[Connection]:
        """A writing transaction without time limits, for migrations."""
        with self.write() as connection:
            self._lift_limits(connection)
            yield connection

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A connection for queries; each query sees the data of its own moment."""
        with _translated(), self._reader.connect() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        """A connection for queries that all see the data of one moment, whatever others write meanwhile.

        It has no time limits: it may read the whole store, and it locks nothing.
        """
        if self.is_sqlite:
            with self.read() as connection:
                connection.exec_driver_sql("BEGIN")
                yield connection
            return
        still = self._writer.execution_options(isolation_level="REPEATABLE READ")
        with _translated(), still.connect() as connection:
            self._lift_limits(connection)
            yield connection

    def _lift_limits(self, connection: Connection) -> None:
        if not self.is_sqlite:
            connection.exec_driver_sql(_NO_LIMITS.statement_to_set(only_this_transaction=True))

    @property
    def now(self) -> sa.ColumnElement[float]:
        """The database's clock inside a statement, as seconds since the epoch."""
        text = (
            "((julianday('now') - 2440587.5) * 86400.0)"
            if self.is_sqlite
            else "cast(extract(epoch from clock_timestamp()) as double precision)"
        )
        clock: sa.ColumnElement[float] = sa.literal_column(text, sa.Double)
        return clock + self.clock_offset if self.clock_offset else clock

    @property
    def dialect(self) -> sa.Dialect:
        return self._writer.dialect

    @cached_property
    def _ask_time(self) -> sa.Select[Any]:
        return sa.select(self.now)

    def current_time(self) -> float:
        with self.read() as connection:
            return float(connection.execute(self._ask_time).scalar_one())

    def driver_connection(self) -> Any:
        """A connection of the database driver itself, for waiting on changes; the caller closes it."""
        return self._reader.raw_connection()

    @contextmanager
    def translating(self) -> Iterator[None]:
        """Turn the driver's errors in the block into StoreError, for code that uses a driver's connection."""
        driver = self._reader.dialect.loaded_dbapi
        with _translated():
            try:
                yield
            except driver.Error as exc:
                raise StoreError(f"lost the connection to the store: {first_line(exc)}") from exc

    def close(self) -> None:
        self._writer.dispose()
        self._reader.dispose()


def _checked_url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise ConfigInvalid(
            "the database URL is not valid", hint="write postgresql://user@host/name or sqlite:///path/to/file"
        ) from None
    backend = url.get_backend_name()
    if backend == "postgresql":
        return url.set(drivername="postgresql+psycopg")
    if backend == "sqlite" and url.database:
        return url
    raise ConfigInvalid(
        f"Stationmaster cannot use {backend} as its store", hint="use SQLite (the default) or PostgreSQL"
    )


def _open_sqlite(url: URL) -> tuple[Engine, Engine]:
    writer = _sqlite_engine(url, pool_size=1, max_overflow=0, timeout=_BUSY_SECONDS)
    reader = _sqlite_engine(url, pool_size=4, max_overflow=12)

    @sa.event.listens_for(writer, "connect")
    def _prepare_writer(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA auto_vacuum=INCREMENTAL")  # only has an effect while the file is empty
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.close()

    @sa.event.listens_for(writer, "begin")
    def _begin_immediate(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    @sa.event.listens_for(reader, "connect")
    def _prepare_reader(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA query_only=ON")
        cursor.close()

    return writer, reader


def _sqlite_engine(url: URL, **pool_options: Any) -> Engine:
    dialect = _sqlite_dialect()
    arguments, options = dialect.create_connect_args(url)
    # The driver in autocommit, BEGIN sent by us: a deferred BEGIN that upgrades to a write fails at once with
    # "database is locked" when another process writes, whatever the busy timeout says.
    chosen = {**options, "isolation_level": None, "check_same_thread": False, "timeout": _BUSY_SECONDS}
    pool = sa.pool.QueuePool(lambda: dialect.connect(*arguments, **chosen), dialect=dialect, **pool_options)
    return Engine(pool, dialect, url).execution_options(compiled_cache=_compiled_for_sqlite)


_compiled_for_sqlite: MutableMapping[Any, Any] = LRUCache(1000)


@cache
def _sqlite_dialect() -> sa.Dialect:
    """One for all engines, so that they share compiled statements: compiling takes far longer than running them."""
    engine = sa.create_engine("sqlite://")
    engine.connect().close()  # the dialect learns about the driver
    engine.dispose()
    return engine.dialect


def _open_postgresql(url: URL, limits: SessionLimits) -> Engine:
    try:
        engine = _postgresql_engine(url)
    except ModuleNotFoundError as exc:
        raise ConfigInvalid(
            "PostgreSQL needs the driver psycopg", hint="pip install 'stationmaster[postgres]'"
        ) from exc

    @sa.event.listens_for(engine, "connect")
    def _limit_session(connection: Any, _record: Any) -> None:
        connection.autocommit = True  # one round trip, and a transaction that is rolled back would undo it
        connection.execute(limits.statement_to_set(only_this_transaction=False))
        connection.autocommit = False

    @sa.event.listens_for(engine, "checkout")
    def _drop_if_closed(connection: Any, _record: Any, _proxy: Any) -> None:
        """An idle connection has data to read only if the server closed it. A ping would cost a round trip."""
        if _has_data_to_read(connection.fileno()):
            try:
                engine.dialect.do_ping(connection)
            except engine.dialect.loaded_dbapi.Error as exc:
                raise DisconnectionError from exc  # the pool opens another one

    return engine


def _postgresql_engine(url: URL) -> Engine:
    """An engine that shares dialect and compiled statements with the others on its server, as those of SQLite do."""
    server = url.set(database=None)
    options = {name: value for name, value in _CONNECTION_OPTIONS.items() if name not in url.query}
    dialect = _known_servers.get(server)
    if dialect is None:
        # hstore is a type that each database may have under another number; we do not use it.
        engine = sa.create_engine(url, pool_size=4, max_overflow=12, connect_args=options, use_native_hstore=False)

        @sa.event.listens_for(engine, "connect")
        def _remember(_connection: Any, _record: Any) -> None:
            _known_servers.setdefault(server, engine.dialect)  # which has asked for the server's version just before
    else:
        arguments, given = dialect.create_connect_args(url)
        connect = partial(dialect.connect, *arguments, **given, **options)
        engine = Engine(sa.pool.QueuePool(connect, dialect=dialect, pool_size=4, max_overflow=12), dialect, url)
    return engine.execution_options(compiled_cache=_compiled_for_postgresql)


_compiled_for_postgresql: MutableMapping[Any, Any] = LRUCache(1000)

#: Dialects by the URL of their server, from the first connection to it on.
_known_servers: dict[URL, sa.Dialect] = {}


def _has_data_to_read(descriptor: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (OperationalError, InternalError) as exc:  # InternalError: PostgreSQL is read-only, or ended the session
        raise _no_answer(exc.orig) from exc
    except sqlite3.OperationalError as exc:  # of a statement that went to the driver itself
        raise _no_answer(exc) from exc
    except TimeoutError as exc:
        raise StoreError("the store is busy: no connection became free in time") from exc
    except DBAPIError as exc:
        if exc.connection_invalidated:
            raise StoreError(f"lost the connection to the store: {first_line(exc.orig)}") from exc
        if type(exc) is DatabaseError:  # a damaged or foreign file; its subclasses are our own bugs
            raise StoreError(
                f"the store cannot be used: {first_line(exc.orig)}", hint="restore it from a backup"
            ) from exc
        raise


def _no_answer(error: BaseException | None) -> StoreError:
    return StoreError(f"the store does not answer: {first_line(error)}", hint="run `stationmaster doctor`")


def first_line(error: BaseException | None) -> str:
    """The first line of a driver's error message, or its class name."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def _refuse_network_file_system(folder: Path, mounts: Path) -> None:
    """Raise ConfigInvalid on a network file system: SQLite's locks fail there, and two workers could both write."""
    kind = _file_system_of(folder, mounts)
    if kind in _NETWORK_FILE_SYSTEMS:
        raise ConfigInvalid(
            f"{folder} is on a network file system ({kind}), where SQLite's locks do not work",
            hint="put STATIONMASTER_HOME on a local disk, or set STATIONMASTER_DATABASE_URL to PostgreSQL",
        )


def _file_system_of(folder: Path, mounts: Path) -> str | None:
    if not mounts.exists():
        return None  # not Linux: cannot find out
    real = os.path.realpath(folder)
    best, kind = "", None
    for line in mounts.read_text().splitlines():
        _, mount_point, file_system, *_ = line.split(" ")
        mount_point = mount_point.replace("\\040", " ")
        inside = real == mount_point or real.startswith(mount_point.rstrip("/") + "/")
        if inside and len(mount_point) >= len(best):
            best, kind = mount_point, file_system
    return kind
