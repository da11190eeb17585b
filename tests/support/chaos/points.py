"""The places where a process may die: before and after every call of an edge, and around every commit.

They are found by wrapping what is handed to the worker; the code under test knows nothing of them.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.store.engine import Database

Point = Callable[[str], None]

LEASING = "with rows of jobs locked, before COMMIT"


class Killed(BaseException):
    """This process is dead: no handler may catch it and go on as if it were an error."""


class KillPoints:
    """Counts the points that a worker passes; at the chosen one it dies, and it stays dead."""

    def __init__(self, kill_at: int | None = None) -> None:
        self.names: list[str] = []
        self.dead = False
        self._kill_at = kill_at
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self._lock:
            if not self.dead:
                self.dead = len(self.names) == self._kill_at
                self.names.append(name)
            if self.dead:
                raise Killed(self.names[-1])


_MOST_POINTS_AFTER_SLEEP = 150


class FreezePoints:
    """Counts the points that a worker passes; at the chosen one it sleeps until it is woken, like a stopped process.

    Awake again it should soon find that it has nothing to do: one that goes on and on is ended.
    """

    def __init__(self, freeze_at: int) -> None:
        self.names: list[str] = []
        self.reached = threading.Event()
        self._freeze_at = freeze_at
        self._woken = threading.Event()
        self._lock = threading.Lock()

    def __call__(self, name: str) -> None:
        with self._lock:
            # Never with SQLite's only pen in its hand: all others could only wait.
            sleeps = len(self.names) >= self._freeze_at and not self.reached.is_set() and name != "before COMMIT"
            self.names.append(name)
            if len(self.names) > self._freeze_at + _MOST_POINTS_AFTER_SLEEP:
                raise Killed("it goes on as if the job were still its own")
        if sleeps:
            self.reached.set()
            if not self._woken.wait(60):
                raise Killed(f"never woken at {name}")

    def wake(self) -> None:
        self._woken.set()


def sampled(points: list[str], *, every: int, first: int = 0) -> list[int]:
    """The first point of each name, and every so many of the others; the whole belongs to `make test-slow`.

    >>> sampled(["a", "b", "a", "a", "b", "a"], every=4, first=3)
    [0, 1, 3]
    >>> sampled(["after a", "before b", "after b", "before a"], every=4)
    [0, 2]
    """
    chosen = {*map(points.index, points), *range(first, len(points), every)}
    return sorted({first_of_moment(points, at) for at in chosen})


def first_of_moment(points: list[str], at: int) -> int:
    """The point itself, or the one before it if nothing happens between the two: one call is over, the next to begin.

    >>> [first_of_moment(["before BEGIN", "before COMMIT", "after COMMIT", "before a"], at) for at in range(4)]
    [0, 1, 2, 2]
    """
    same = at > 0 and points[at].startswith("before") and points[at - 1].startswith("after")
    return at - 1 if same else at


class Watched:
    """Any edge, with a point before and after each of its calls."""

    def __init__(self, inner: Any, name: str, point: Point) -> None:
        self._inner = inner
        self._name = name
        self._point = point

    def __getattr__(self, attribute: str) -> Any:
        value = getattr(self._inner, attribute)
        if not inspect.iscoroutinefunction(value):
            return value

        async def call(*args: Any, **kwargs: Any) -> Any:
            self._point(f"before {self._name}.{attribute}")
            try:
                return await value(*args, **kwargs)
            finally:
                self._point(f"after {self._name}.{attribute}")

        return call


class Clock:
    """What is added to the database's own clock, by all who share the store."""

    def __init__(self) -> None:
        self.offset = 0.0

    def advance(self, seconds: float) -> None:
        self.offset += seconds


class WatchedDatabase(Database):
    """A database with a point before BEGIN, before COMMIT and after COMMIT of every write."""

    def __init__(self, url: str, point: Point, clock: Clock | None = None, **options: Any) -> None:
        super().__init__(url, **options)
        self._point = point
        self._clock = clock or Clock()

    def watch(self, point: Point, clock: Clock) -> None:
        """From now on another process's points and another run's clock."""
        self._point = point
        self._clock = clock

    @contextmanager
    def write(self) -> Iterator[Connection]:
        self._point("before BEGIN")
        with super().write() as connection:
            yield connection
            self._point("before COMMIT")
        self._point("after COMMIT")

    @property
    def now(self) -> sa.ColumnElement[float]:
        """Moved by the clock as it is when a statement runs, not when it was built.

        The 0 tells such a statement from one with a fixed offset: compiled, they are shared, and a parameter that is
        called for its value counts there as one without.
        """
        moved = sa.bindparam(None, callable_=lambda: self._clock.offset, type_=sa.Double, unique=True)
        return sa.literal_column("0.0", sa.Double) + super().now + moved


class LeaseWatchedDatabase(WatchedDatabase):
    """A database whose only points are in the transactions that claim and renew leases, before their COMMIT."""

    def __init__(self, url: str, point: Point, **options: Any) -> None:
        super().__init__(url, lambda _name: None, **options)
        self._lease_point = point
        self._write = threading.local()  # each thread writes in its own transaction

        @sa.event.listens_for(self._writer, "after_cursor_execute")
        def _look_for_leases(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
            self._write.has_leased = getattr(self._write, "has_leased", False) or "UPDATE jobs SET lease_" in statement

    @contextmanager
    def write(self) -> Iterator[Connection]:
        with super().write() as connection:
            self._write.has_leased = False
            yield connection
            if self._write.has_leased:
                self._lease_point(LEASING)
