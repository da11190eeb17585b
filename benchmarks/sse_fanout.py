"""Live streams of 500 clients on one `serve` process: its memory, and the time from a commit to the clients' sockets.

The server is a real process on a SQLite store; this process writes events at a steady rate, and a third one listens.
Each event contains the time just before its commit; all clocks are this computer's. Then the same for lines of a log,
which a single client follows.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from urllib.parse import urlsplit

from _process import resident_megabytes
from _report import print_figure, report
from stationmaster.config import load_settings
from stationmaster.datasets.sample_set import write_sample_set
from stationmaster.model import LogChunk
from stationmaster.station.local.station import LocalStation
from stationmaster.station.proposals import TrainRequest
from stationmaster.station.tokens import NewToken
from stationmaster.store.leases import Lease
from stationmaster.store.writes import NewEvent, Write

BUDGET_MEGABYTES = 300.0
BUDGET_MILLISECONDS = 500.0
BUDGET_LOG_MILLISECONDS = 300.0
CLIENTS = 500
EVENTS = 200
LINES = 200
_PER_SECOND = 10.0
_PATIENCE_SECONDS = 120.0
_STAMP = re.compile(rb'"?(?:stamp"?:|stamp )"?(\d{19})')


def main() -> int:
    with tempfile.TemporaryDirectory() as temporary:
        environ = _environ(Path(temporary))
        with closing(LocalStation(load_settings(environ, folder=Path(temporary)), environ)) as station:
            token = station.tokens.create(NewToken(name="benchmark", user="me")).secret
            lease = _leased_job(station, Path(temporary))
            with _server(environ) as (server, url):
                before = resident_megabytes(server.pid)
                with _listening(url, "/api/events", token, CLIENTS, EVENTS) as answers:
                    lease = _write_events(station, lease)
                    delays = _answer(answers)
                    after = resident_megabytes(server.pid)
                with _listening(url, f"/api/jobs/{lease.job.id}/logs", token, 1, LINES) as answers:
                    _write_lines(station, lease)
                    of_lines = _answer(answers)
    if len(delays) != CLIENTS * EVENTS or len(of_lines) != LINES:
        raise SystemExit(f"{len(delays)} events and {len(of_lines)} lines came: the measure is worthless")
    report(f"resident memory of serve with {CLIENTS} live streams", after, "MB", at_most=BUDGET_MEGABYTES)
    print_figure("resident memory of serve without any", before, "MB")
    report("from commit to a client's socket: p99", _p99(delays), "ms", at_most=BUDGET_MILLISECONDS)
    report("from commit to a follower of the log: p99", _p99(of_lines), "ms", at_most=BUDGET_LOG_MILLISECONDS)
    return 0


def _p99(milliseconds: list[float]) -> float:
    return sorted(milliseconds)[int(0.99 * len(milliseconds))]


def _environ(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "STATIONMASTER_HOME": str(folder / "home"),
        "STATIONMASTER_SERVE__STREAMS_PER_USER": str(CLIENTS),
        "STATIONMASTER_SERVE__CONNECTIONS_PER_ADDRESS": "0",
    }


def _leased_job(station: LocalStation, folder: Path) -> Lease:
    write_sample_set(folder / "pictures")
    request = TrainRequest(recipe="tiny-lora@1", dataset=folder / "pictures", id="job")
    station.proposals.submit(station.proposals.propose(request).id)
    ends = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < ends:
        if claimed := station.store.leases.claim("benchmark", limit=1, seconds=3600):
            return claimed[0]
    raise SystemExit("the job cannot be leased")


@contextmanager
def _server(environ: dict[str, str]) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [str(Path(sys.executable).with_name("stationmaster")), "serve", "--port", "0"]
    server = subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server, server.stdout.readline().split()[-1]
    finally:
        server.terminate()
        server.wait()


@contextmanager
def _listening(url: str, path: str, token: str, clients: int, messages: int) -> Iterator[Connection]:
    """Clients in a process of their own; all are connected when the block begins."""
    ours, theirs = multiprocessing.Pipe()
    listener = multiprocessing.get_context("spawn").Process(
        target=_listen, args=(theirs, url, path, token, clients, messages)
    )
    listener.start()
    try:
        _answer(ours)
        yield ours
    finally:
        listener.terminate()
        listener.join()


def _answer(connection: Connection) -> list[float]:
    if not connection.poll(_PATIENCE_SECONDS):
        raise SystemExit("the clients take too long")
    found: list[float] = connection.recv()
    return found


def _listen(pipe: Connection, url: str, path: str, token: str, clients: int, messages: int) -> None:
    async def run() -> None:
        connected = asyncio.Semaphore(0)
        jobs = [asyncio.create_task(_client(url, path, token, messages, connected)) for _ in range(clients)]
        for _ in range(clients):
            await connected.acquire()
        pipe.send([])
        pipe.send([delay for found in await asyncio.gather(*jobs) for delay in found])

    asyncio.run(run())


async def _client(url: str, path: str, token: str, messages: int, connected: asyncio.Semaphore) -> list[float]:
    """Milliseconds from each event's stamp until its bytes were here."""
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    head = f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAccept: text/event-stream\r\n"
    writer.write(f"{head}Authorization: Bearer {token}\r\n\r\n".encode())
    rest = await reader.readuntil(b"retry: ")
    if b" 200 " not in rest[:20]:
        raise RuntimeError(rest.decode())
    if path.endswith("/events"):
        await reader.readuntil(b"id: ")  # from here on nothing is missed
    connected.release()
    found: list[float] = []
    text = b""
    while len(found) < messages:
        text += await reader.read(1 << 16)
        now = time.time_ns()
        stamps = list(_STAMP.finditer(text))
        found += [(now - int(stamp[1])) / 1e6 for stamp in stamps]
        text = text[stamps[-1].end() :] if stamps else text[-4096:]
    writer.close()
    return found


def _write_events(station: LocalStation, lease: Lease) -> Lease:
    for _ in _paced(EVENTS):
        event = NewEvent(kind="milestone", payload={"stamp": str(time.time_ns()), "step": 100, "total_steps": 400})
        lease = station.store.leases.record(lease, Write(job=lease.job, events=(event,)))
    return lease


def _write_lines(station: LocalStation, lease: Lease) -> None:
    for number in _paced(LINES):
        data = f"stamp {time.time_ns()} steps: 12% 120/1000 loss=0.093\n".encode()
        chunk = LogChunk(attempt=1, stream="train.1", start=number * 100, end=number * 100 + len(data), data=data)
        lease = station.store.leases.record(lease, Write(job=lease.job, logs=(chunk,)))


def _paced(count: int) -> Iterator[int]:
    began = time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, began + number / _PER_SECOND - time.monotonic()))
        yield number


if __name__ == "__main__":
    sys.exit(main())
