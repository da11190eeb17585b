"""Processes die at the worst moment, and several work at once: each message is queued once, and it arrives."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from queue import Queue
from threading import Barrier

from stationmaster.model import User
from stationmaster.store import events
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.notify_bench import FLAGGED, happen, tell
from tests.support.programs import ROOT, program
from tests.support.servers.messenger_server import MessengerServer, Received
from tests.support.servers.postgres import PostgresServer

OpenStore = Callable[..., Store]


def worker(
    url: str, home: Path, environ: Mapping[str, str], name: str, *, lease: float = 60.0
) -> subprocess.Popen[bytes]:
    command = [*program("jobs.notify_bench"), url, str(home), name, str(lease)]
    return subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environ})


def test_a_worker_that_dies_between_sending_and_noting_it_is_followed_by_another(
    open_store: OpenStore, store_url: str, server: MessengerServer, tmp_path: Path
) -> None:
    """Discord knows the message by its nonce: sent twice, it is there once. Our row is one, and says so."""
    store, later = open_store(), open_store(later=120)
    store.users.put(User(name="ann", discord_id="4"))
    happen(store, "job", FLAGGED, owner="ann")
    started: Queue[subprocess.Popen[bytes]] = Queue()

    def kill(_message: Received) -> None:
        """Runs before the server answers: the message is there, and the sender never hears of it."""
        victim = started.get()
        victim.kill()
        victim.wait()

    server.after_receiving = kill
    victim = worker(store_url, tmp_path, server.environ, "victim")
    started.put(victim)
    assert victim.wait(timeout=150) == -signal.SIGKILL
    assert [row["state"] for row in store.outbox.of_job("job")] == ["PENDING"]
    server.after_receiving = lambda _message: None
    _tell(open_store(), tmp_path, server, "too soon")
    assert [row["state"] for row in store.outbox.of_job("job")] == ["PENDING"]
    _tell(later, tmp_path, server, "heir")
    assert [row["state"] for row in store.outbox.of_job("job")] == ["SENT"]
    assert len([path for path in server.calls if path.endswith("/messages")]) == 2
    assert len(server.texts("discord")) == 1


def _tell(store: Store, home: Path, server: MessengerServer, owner: str) -> None:
    asyncio.run(tell(store, home, server.environ, owner=owner))


def test_two_workers_on_postgresql_send_each_message_once(
    postgres_server: PostgresServer, server: MessengerServer, tmp_path: Path
) -> None:
    url = postgres_server.new_store()
    with closing(Store(Database(url))) as store, ThreadPoolExecutor(2) as threads:
        for number in range(4):
            store.users.put(User(name=f"user-{number}", telegram_id=str(number)))
        for number in range(24):
            happen(store, f"job-{number}", FLAGGED, owner=f"user-{number % 4}")
        both = Barrier(2)

        def work(owner: str) -> None:
            """A store of its own: the workers share nothing but the database."""
            with closing(Store(Database(url))) as own:
                both.wait()
                _tell(own, tmp_path, server, owner)

        list(threads.map(work, ("worker-0", "worker-1")))
        rows = [row for number in range(24) for row in store.outbox.of_job(f"job-{number}")]
    assert [row["state"] for row in rows] == ["SENT"] * 24
    assert len(server.texts()) == 24


@asynchronous
async def test_an_event_that_is_committed_late_is_told_all_the_same(
    postgres_server: PostgresServer, server: MessengerServer, tmp_path: Path
) -> None:
    """Numbers are given before commits: the later number may be seen first."""
    environ = {**server.environ, "STATIONMASTER_NOTIFY__TELEGRAM_ID": "17"}
    with closing(Store(Database(postgres_server.new_database()))) as store:
        happen(store, "slow")
        with store.database.write() as transaction:
            events.append(transaction, events.rows("slow", (FLAGGED,), version=2, now=store.now()))
            happen(store, "quick", FLAGGED)
            await tell(store, tmp_path, environ)
            assert len(server.texts()) == 1
        await tell(store, tmp_path, environ)
    assert len(server.texts()) == 2
