"""Reads what is new in the store, once for all who listen: one thread that runs while there are any."""

from __future__ import annotations

import itertools
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.errors import StoreError
from stationmaster.event_log import get_logger
from stationmaster.model import SINGLE_USER, Event, LogChunk, StepReading
from stationmaster.station.news import ALL_EVENTS, Batch, NewsItem, Position, Topic, TopicKind
from stationmaster.store.news import Standing
from stationmaster.store.store import Store

log = get_logger("stationmaster.serve")

_PAGE = 500
_LOG_PAGE = 32  # a piece may have nearly a megabyte
_LOOKBACK = 1000  # numbers below the newest, at the beginning
_LATE_SECONDS = 60.0  # a number that is still missing then belonged to a transaction that was rolled back
_MOST_MISSING = 2000
_INTEREST_SECONDS = 10.0
_LOOK_SECONDS = 1.0  # without any wake-up
_WAIT_SECONDS = 0.25  # between checks whether the thread should end
_PAUSE_SECONDS = 0.02  # after each look: what is written in quick succession is read together
_RETRY_SECONDS = 1.0
_MOST_OWNERS = 10_000

Deliver = Callable[[Batch], None]
_Value = Event | LogChunk | StepReading


class _ReadRows(Protocol):
    def __call__(self, after: Mapping[str, int], *, limit: int) -> Sequence[tuple[str, int, _Value]]: ...


@dataclass(slots=True)
class _Followed:
    number: int
    deliver: Deliver
    position: Position


class LocalNews:
    """Several may run on one store, in one or more processes. See `stationmaster.station.news.News`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._watcher = f"serve-{os.getpid()}-{secrets.token_hex(3)}"
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()  # held while reading and delivering
        self._topics: dict[Topic, _Followed] = {}
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._events = _EventReader(store)
        self._interest_at = 0.0
        self._touched: set[str] = set()  # jobs with events that were read since the last whole look

    def follow(self, topic: Topic, deliver: Deliver) -> int:
        with self._lock:
            if self._thread is None:
                self._events.begin()
            position, is_over = self._begin(topic)
            number = next(self._numbers)
            self._topics[topic] = _Followed(number=number, deliver=deliver, position=position)
            deliver(Batch(topic=topic, items=(), position=position, is_over=is_over))
            if self._thread is None and not self._stopping.is_set():
                self._thread = threading.Thread(target=self._run, name="news", daemon=True)
                self._thread.start()
            return number

    def unfollow(self, topic: Topic, number: int) -> None:
        with self._lock:
            followed = self._topics.get(topic)
            if followed is not None and followed.number == number:
                del self._topics[topic]

    def close(self) -> None:
        self._stopping.set()
        with self._lock:
            self._topics.clear()
            thread = self._thread
        if thread is not None:
            thread.join()

    def _begin(self, topic: Topic) -> tuple[Position, bool]:
        if topic.job_id is None:
            return self._events.position, False
        rows = self._store.news
        standing = rows.standings([topic.job_id]).get(topic.job_id)  # before its rows: an ended job gets no more
        newest = {
            TopicKind.EVENTS: rows.newest_version,
            TopicKind.LOGS: rows.newest_log,
            TopicKind.READINGS: rows.newest_reading,
        }[topic.kind]
        if standing is not None and standing.is_executing and topic.kind is not TopicKind.EVENTS:
            self._store.watchers.register(topic.job_id, self._watcher, seconds=_INTEREST_SECONDS)
        return Position(number=newest(topic.job_id)), standing is None or standing.has_ended

    def _run(self) -> None:
        """Read until there are no listeners; a store that does not answer is asked again."""
        while True:
            try:
                self._follow_store()
            except StoreError as problem:
                log.warning("store.unavailable", problem=str(problem))
            except Exception as problem:
                log.error("news.failed", problem=str(problem), exc_info=True)
            with self._lock:
                if not self._topics:
                    self._thread = None
                    return
            self._stopping.wait(_RETRY_SECONDS)

    def _follow_store(self) -> None:
        """Returns when there are no listeners any more."""
        with self._store.waker() as waker:
            looked = 0.0
            woken = True  # what came before the first wait woke no listener
            while self._topics:
                if woken or time.monotonic() - looked > _LOOK_SECONDS:
                    self._look()
                    looked = time.monotonic()
                    self._stopping.wait(_PAUSE_SECONDS)
                woken = waker.wait(_WAIT_SECONDS)

    def _look(self) -> None:
        with self._lock:
            self._read_events()
            ended = self._ended()
            self._read_rows(TopicKind.LOGS, self._store.news.logs, _LOG_PAGE)
            self._read_rows(TopicKind.READINGS, self._store.news.readings, _PAGE)
            for job_id in ended:
                self._tell_end(job_id)
            self._touched.clear()
            self._show_interest()

    def _read_events(self) -> None:
        is_full = True
        while is_full:
            read = self._events.read()
            is_full = len(read.events) == _PAGE
            by_job: dict[str, list[Event]] = {}
            for event in read.events:
                by_job.setdefault(event.job_id, []).append(event)
            self._touched |= by_job.keys()
            if read.events and (followed := self._topics.get(ALL_EVENTS)):
                followed.position = self._events.position
                items = (NewsItem(number=one.seq, value=one, owner=read.owners.get(one.job_id)) for one in read.events)
                self._deliver(ALL_EVENTS, followed, items)
            for job_id, events in by_job.items():
                topic = Topic(TopicKind.EVENTS, job_id)
                if followed := self._topics.get(topic):
                    self._advance(topic, followed, [(event.job_version, event) for event in events])

    def _ended(self) -> list[str]:
        """Jobs with listeners that have ended; all their events were delivered."""
        listened = {topic.job_id for topic in self._topics}
        asked = [job_id for job_id in self._touched if job_id in listened]
        standings = self._store.news.standings(asked) if asked else {}
        ended = [each for each in asked if each not in standings or standings[each].has_ended]
        if any(self._lags(job_id, standings.get(job_id)) for job_id in ended):
            self._read_events()  # written between the two reads
        return ended

    def _lags(self, job_id: str, standing: Standing | None) -> bool:
        followed = self._topics.get(Topic(TopicKind.EVENTS, job_id))
        return followed is not None and standing is not None and followed.position.number < standing.version

    def _read_rows(self, kind: TopicKind, read: _ReadRows, limit: int) -> None:
        while True:
            after = {
                topic.job_id: each.position.number
                for topic, each in self._topics.items()
                if topic.kind is kind and topic.job_id is not None
            }
            found = read(after, limit=limit)
            for job_id in {job_id for job_id, _, _ in found}:
                topic = Topic(kind, job_id)
                rows = [(number, value) for job, number, value in found if job == job_id]
                self._advance(topic, self._topics[topic], rows)
            if len(found) < limit:
                return

    def _advance(self, topic: Topic, followed: _Followed, rows: Iterable[tuple[int, _Value]]) -> None:
        newer = [NewsItem(number=number, value=value) for number, value in rows if number > followed.position.number]
        if newer:
            followed.position = Position(number=newer[-1].number)
            self._deliver(topic, followed, newer)

    def _deliver(self, topic: Topic, followed: _Followed, items: Iterable[NewsItem]) -> None:
        followed.deliver(Batch(topic=topic, items=tuple(items), position=followed.position))

    def _tell_end(self, job_id: str) -> None:
        for kind in TopicKind:
            topic = Topic(kind, job_id)
            if followed := self._topics.get(topic):
                followed.deliver(Batch(topic=topic, items=(), position=followed.position, is_over=True))

    def _show_interest(self) -> None:
        """Workers stream what a training does while it is being watched."""
        if time.monotonic() - self._interest_at < _INTEREST_SECONDS / 2:
            return
        self._interest_at = time.monotonic()
        followed = {
            topic.job_id for topic in self._topics if topic.job_id is not None and topic.kind is not TopicKind.EVENTS
        }
        standings = self._store.news.standings(followed) if followed else {}
        executing = [job_id for job_id, standing in standings.items() if standing.is_executing]
        if executing:
            self._store.watchers.register_several(executing, self._watcher, seconds=_INTEREST_SECONDS)


class _EventReader:
    """Reads events of all jobs once each, also those that are committed late; see `stationmaster.store.news`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest = 0
        self._missing: dict[int, float] = {}  # by number, when to give up
        self._owners: dict[str, str] = {}

    @property
    def position(self) -> Position:
        return Position(number=self._newest, missing=frozenset(self._missing))

    def begin(self) -> None:
        """From now on. Numbers that are missing among the newest ones may still come."""
        rows = self._store.news
        self._newest = rows.newest_event()
        ages = rows.ages(self._newest - _LOOKBACK, self._newest)
        self._missing = {}
        if ages:
            old = max((number for number, age in ages.items() if age > _LATE_SECONDS), default=min(ages))
            self._miss(number for number in range(old, self._newest) if number not in ages)

    def read(self) -> _Read:
        """The next events, by number. What raises an error changes nothing."""
        now = time.monotonic()
        self._missing = {number: until for number, until in self._missing.items() if until > now}
        page = self._store.news.events(self._newest, missing=self._missing, limit=_PAGE)
        owners = self._owners_of(page)
        for event in page:
            if self._missing.pop(event.seq, None) is None:
                self._miss(range(self._newest + 1, event.seq))
                self._newest = event.seq
        return _Read(events=page, owners=owners)

    def _miss(self, numbers: Iterable[int]) -> None:
        until = time.monotonic() + _LATE_SECONDS
        self._missing |= dict.fromkeys(numbers, until)
        for oldest in sorted(self._missing)[: max(0, len(self._missing) - _MOST_MISSING)]:
            del self._missing[oldest]

    def _owners_of(self, events: list[Event]) -> dict[str, str]:
        """Who owns the jobs of these events; one that is gone has no owner."""
        new = {event.job_id for event in events if event.job_version == 1}  # an id can be used again after a removal
        for job_id in new:
            self._owners.pop(job_id, None)
        if len(self._owners) > _MOST_OWNERS:
            self._owners.clear()
        jobs = {event.job_id for event in events}
        if unknown := jobs - self._owners.keys():
            found = self._store.news.standings(unknown)
            self._owners |= {job_id: standing.owner or SINGLE_USER for job_id, standing in found.items()}
        return {job_id: self._owners[job_id] for job_id in jobs if job_id in self._owners}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    events: list[Event]
    owners: dict[str, str]  # by job
