"""Live streams under pressure: many clients, slow ones, several servers, a store that is away, and the end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import psycopg
from sqlalchemy import make_url

from stationmaster.errors import StoreError
from tests.support.servers.live_bench import LiveBench, WrittenJob
from tests.support.servers.postgres import PostgresServer
from tests.support.waiting import until


def test_fifty_clients_get_every_event_once(tmp_path: Path) -> None:
    with LiveBench(tmp_path) as bench, ExitStack() as opened:
        jobs = [bench.job(f"job{n}") for n in range(3)]
        clients = [opened.enter_context(bench.listen("/api/events?after=0")) for _ in range(25)]
        clients += [opened.enter_context(bench.listen("/api/jobs/job1/events")) for _ in range(25)]
        for number in range(40):
            jobs[number % 3].write_events(2)
        for client in clients:
            client.wait_for(83 if client in clients[:25] else 27)
        for client in clients[:25]:
            assert [one.data["seq"] for one in client.told] == list(range(1, 84))
        for client in clients[25:]:
            assert client.numbers == list(range(1, 28))


def test_a_client_that_does_not_read_is_dropped_and_others_do_not_wait_for_it(tmp_path: Path) -> None:
    with LiveBench(tmp_path, most_bytes=300_000) as bench:
        job = bench.job("loud")
        with bench.listen("/api/jobs/loud/logs") as quick, bench.listen("/api/jobs/loud/logs", read=False) as slow:
            line = b"x" * 199_999 + b"\n"
            written = 0
            while written < 40:  # more than the kernel holds for a connection
                job.write_log(line)
                written += 1
                quick.wait_for(written)
            slow.read_late()
            assert slow.is_closed.wait(30)
            assert len(slow.told) < written
            with bench.listen("/api/jobs/loud/logs", last_event_id=slow.last_id) as back:
                back.wait_for(written - len(slow.numbers))
            assert slow.numbers + back.numbers == quick.numbers


def test_a_user_has_a_limited_number_of_streams(tmp_path: Path) -> None:
    with LiveBench(tmp_path, streams_per_user=2) as bench:
        bench.job("one")
        ann = bench.add_user("ann")
        with bench.listen("/api/jobs/one/events") as first, bench.listen("/api/jobs/one/events") as second:
            first.wait_for(1)
            second.wait_for(1)
            with bench.listen("/api/events") as third, bench.listen("/api/events", ann) as hers:
                third.wait_until_open()
                hers.wait_until_open()
            assert (third.status, hers.status) == (429, 200)

        def is_open_again() -> bool:
            with bench.listen("/api/jobs/one/events") as again:
                again.wait_until_open()
                return again.status == 200

        until(is_open_again, "room again")


def test_a_server_stops_at_once_while_streams_are_open(tmp_path: Path) -> None:
    with ExitStack() as opened:
        bench = opened.enter_context(LiveBench(tmp_path))
        bench.job("one")
        clients = [opened.enter_context(bench.listen("/api/jobs/one/events")) for _ in range(5)]
        for client in clients:
            client.wait_for(1)
        bench.close()
        for client in clients:
            assert client.is_closed.wait(30)
            assert client.is_whole, "uvicorn waits some seconds, then cuts it off"
            assert [one.kind for one in client.told] == ["message"]


def test_what_one_server_changes_is_seen_by_the_listeners_of_another(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    with LiveBench(tmp_path, postgres_server.new_database(), servers=2) as bench:
        bench.job("shared")
        with bench.listen("/api/jobs/shared/events", server=1) as client, bench.listen("/api/events", server=1) as all_:
            client.wait_for(1)
            all_.wait_for_place()
            headers = {"Authorization": f"Bearer {bench.token}"}
            assert (
                httpx.post(f"{bench.urls[0]}/api/jobs/shared/cancel", headers=headers, verify=False).status_code == 200
            )
            client.wait_for(2)
            all_.wait_for(1)
        assert client.told[-1].data["kind"] == all_.told[0].data["kind"] == "desired"
        with bench.listen("/api/jobs/shared/events", server=0, last_event_id=client.told[0].id) as moved:
            moved.wait_for(1)
        assert moved.told[0] == client.told[1]


def can_write(job: WrittenJob) -> bool:
    try:
        job.write_events()
    except StoreError:
        return False
    return True


@contextmanager
def away(url: str) -> Iterator[None]:
    """In the block the database of this address cuts every connection and takes no new ones."""
    name = make_url(url).database
    with psycopg.connect(make_url(url).set(database="postgres").render_as_string(), autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS false")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [str(name)])
        try:
            yield
        finally:
            connection.execute(f"ALTER DATABASE {name} WITH ALLOW_CONNECTIONS true")


def test_streams_outlive_a_store_that_is_away(tmp_path: Path, postgres_server: PostgresServer) -> None:
    url = postgres_server.new_database()
    with LiveBench(tmp_path, url, heartbeat_seconds=0.1) as bench:
        job = bench.job("one")
        with bench.listen("/api/jobs/one/events") as client:
            client.wait_for(1)
            with away(url):
                assert not can_write(job)
                beats = client.comments
                until(lambda: client.comments > beats + 2, "comments while the store is away")
            until(lambda: can_write(job), "a store that answers again")
            client.wait_for(2)
        assert client.numbers == list(range(1, len(client.numbers) + 1))
