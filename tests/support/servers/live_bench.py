"""Live streams under test: servers on one store, jobs whose rows a test writes itself, and clients that listen."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from stationmaster.api.app import Service
from stationmaster.api.live.hub import LiveLimits
from stationmaster.config import load_settings
from stationmaster.model import LogChunk, State, StepReading
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.news import LocalNews
from stationmaster.station.local.station import LocalStation
from stationmaster.station.news import News
from stationmaster.station.tokens import NewToken
from stationmaster.station.users import UserChanges
from stationmaster.store.leases import Lease
from stationmaster.store.store import Store
from stationmaster.store.writes import NewEvent, Write
from tests.support.jobs.spine_values import spec
from tests.support.servers.api_server import serving
from tests.support.waiting import until


@dataclass(frozen=True, slots=True)
class Told:
    """A message of a stream."""

    id: str
    kind: str
    data: dict[str, Any]


class Client:
    """Listens in a thread, on a socket of its own. `read` False: connects, and never reads what comes."""

    def __init__(self, url: str, path: str, token: str, *, last_event_id: str | None = None, read: bool = True) -> None:
        self.told: list[Told] = []
        self.comments = 0
        self.status = 0
        self.last_id = ""
        self.is_closed = threading.Event()
        self.is_whole = False  # the answer's end came, it was not cut off
        address = urlsplit(url)
        self._socket = socket.socket()
        if not read:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self._socket.connect((address.hostname, address.port))
        more = "" if last_event_id is None else f"Last-Event-ID: {last_event_id}\r\n"
        self._socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: text/event-stream\r\n{more}"
            f"Authorization: Bearer {token}\r\nConnection: close\r\n\r\n".encode()
        )
        self._thread = threading.Thread(target=self._read, daemon=True)
        if read:
            self._thread.start()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread.ident is not None:
            self._thread.join()
        self._socket.close()

    @property
    def numbers(self) -> list[int]:
        return [int(one.id) for one in self.told if one.kind == "message"]

    def wait_for(self, count: int, *, what: str = "") -> list[Told]:
        until(lambda: len(self.told) >= count, what or f"{count} messages", story=lambda: f"{len(self.told)} came")
        return self.told

    def wait_until_open(self) -> None:
        until(lambda: self.status, "the stream's beginning")

    def wait_for_place(self) -> None:
        """Until it knows where it would continue: what is written from now on must come."""
        until(lambda: self.last_id, "the place where it begins")

    def read_late(self) -> None:
        """Begin to read only now."""
        self._thread.start()

    def _read(self) -> None:
        with suppress(OSError), closing(self._socket.makefile("rb")) as answer:
            status = int(answer.readline().split()[1])
            while answer.readline().strip():
                pass
            self.status = status
            with suppress(ValueError):  # cut off inside a chunk
                for message in _messages(_chunks(answer)):
                    self._take(message)
                self.is_whole = True
        self.is_closed.set()

    def _take(self, lines: list[str]) -> None:
        fields = dict(line.split(": ", 1) for line in lines if not line.startswith(":"))
        self.comments += sum(line.startswith(":") for line in lines)
        self.last_id = fields.get("id", self.last_id)
        if "data" in fields:
            self.told.append(Told(self.last_id, fields.get("event", "message"), json.loads(fields["data"])))


def _chunks(answer: Any) -> Iterator[bytes]:
    while size := int(answer.readline(), 16):
        yield answer.read(size)
        answer.readline()


def _messages(chunks: Iterator[bytes]) -> Iterator[list[str]]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n\n")
        yield from (each.decode().split("\n") for each in whole)


class LiveBench:
    """Servers of one store, each with its `news`. `limits` are those of the live streams."""

    def __init__(
        self,
        folder: Path,
        store_url: str | None = None,
        *,
        servers: int = 1,
        news: Callable[[Store], News] = LocalNews,
        **limits: Any,
    ) -> None:
        environ = {"PATH": "/bin", "HOME": str(folder), "STATIONMASTER_HOME": str(folder / "home")}
        if store_url is not None:
            environ["STATIONMASTER_DATABASE_URL"] = store_url
        settings = load_settings(environ, folder=folder)
        with ExitStack() as opened:
            self.stations = []
            self.urls = []
            for _ in range(servers):
                station = opened.enter_context(closing(LocalStation(settings, environ)))
                service = Service(
                    station=station,
                    doorkeeper=LocalDoorkeeper(station.store),
                    news=opened.enter_context(closing(news(station.store))),
                    live_limits=LiveLimits(**limits),
                )
                self.stations.append(station)
                self.urls.append(opened.enter_context(serving(service)))
            self.url = self.urls[0]
            self.store: Store = self.stations[0].store
            self.token = self.token_of("me")
            self._opened = opened.pop_all()

    def __enter__(self) -> LiveBench:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop the servers."""
        self._opened.close()

    def add_user(self, name: str) -> str:
        """A token of a new user."""
        self.stations[0].users.add(name, UserChanges(inbox=True))
        return self.token_of(name)

    def token_of(self, user: str) -> str:
        return self.stations[0].tokens.create(NewToken(name=f"test of {user}", user=user)).secret

    def listen(self, path: str, token: str | None = None, *, server: int = 0, **how: Any) -> Client:
        return Client(self.urls[server], path, token or self.token, **how)

    def job(self, job_id: str, *, owner: str | None = None) -> WrittenJob:
        return WrittenJob(self.store, job_id, owner)


class WrittenJob:
    """A job of which a test writes the rows, as a worker would."""

    def __init__(self, store: Store, job_id: str, owner: str | None = None) -> None:
        self._store = store
        self.id = job_id
        store.jobs.submit(spec(job_id, owner=owner))
        self._lease: Lease = until(self._claim, "a lease on the job")
        self._bytes = 0
        self._steps = 0

    def _claim(self) -> Lease | None:
        claimed = self._store.leases.claim(f"worker of {self.id}", limit=100, seconds=3600)
        return next((lease for lease in claimed if lease.job.id == self.id), None)

    def write_events(self, count: int = 1, **payload: Any) -> None:
        self._record(events=tuple(NewEvent(kind="note", payload={"n": n, **payload}) for n in range(count)))

    def write_log(self, *texts: bytes, attempt: int = 1, stream: str = "train.1") -> None:
        chunks = []
        for data in texts:
            start, self._bytes = self._bytes, self._bytes + len(data)
            chunks.append(LogChunk(attempt=attempt, stream=stream, start=start, end=self._bytes, data=data))
        self._record(logs=tuple(chunks))

    def write_readings(self, *losses: float) -> None:
        first, self._steps = self._steps + 1, self._steps + len(losses)
        at = self._store.now()
        made = (StepReading(attempt=1, at=at, step=first + n, loss=loss) for n, loss in enumerate(losses))
        self._record(readings=tuple(made))

    def write_progress(self, **values: Any) -> None:
        job = replace(self._lease.job, attempt=1, progress=replace(self._lease.job.progress, **values))
        self._lease = self._store.leases.record(self._lease, Write(job=job, due_in=0.0))

    def begin_executing(self) -> None:
        self._record(state=State.EXECUTING, due_in=3600.0, events=(NewEvent(kind="state", payload={}),))

    def end(self) -> None:
        self._record(state=State.ENDED, due_in=None, events=(NewEvent(kind="state", payload={"to": "ENDED"}),))

    @property
    def version(self) -> int:
        return self._lease.job.version

    def _record(self, *, state: State | None = None, due_in: float | None = 0.0, **rows: Any) -> None:
        job = self._lease.job if state is None else replace(self._lease.job, state=state)
        self._lease = self._store.leases.record(self._lease, Write(job=job, due_in=due_in, **rows))
