"""Live streams: what is new arrives once and in order, also after a lost connection, and only to who may see it."""

from __future__ import annotations

import base64
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path

import httpx
import pytest
import sqlalchemy as sa

from stationmaster.station.local.news import LocalNews
from stationmaster.station.news import Batch, Topic
from stationmaster.store.store import Store
from stationmaster.store.tables import events
from stationmaster.store.wake import announce_news
from tests.support.servers.live_bench import Client, LiveBench
from tests.support.waiting import until


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def bench(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveBench]:
    url = None if request.param == "sqlite" else request.getfixturevalue("postgres_server").new_database()
    with LiveBench(tmp_path_factory.mktemp("live"), url, heartbeat_seconds=0.2, check_seconds=0.2) as opened:
        yield opened


def test_a_job_s_events_come_from_the_first_and_then_as_they_happen_until_its_end(bench: LiveBench) -> None:
    job = bench.job("a1")
    job.write_events(3)
    with bench.listen("/api/jobs/a1/events") as client:
        client.wait_for(4)
        job.write_events(2, text="two\nlines", version="not ours")
        client.wait_for(6)
        job.end()
        assert client.is_closed.wait(30)
    assert [one.kind for one in client.told] == ["message"] * 7 + ["end"]
    assert client.numbers == [one.data["version"] for one in client.told[:-1]] == list(range(1, 8))
    assert (client.told[5].data["text"], client.told[5].data["version_"]) == ("two\nlines", "not ours")
    assert {one.data["job"] for one in client.told[:-1]} == {"a1"}
    assert all(one.data["sentence"] for one in client.told[:-1])
    with bench.listen("/api/jobs/a1/events", last_event_id="6") as again:
        assert again.is_closed.wait(30)
    assert [(one.kind, one.id) for one in again.told] == [("message", "7"), ("end", "7")]


def test_a_log_keeps_its_characters_whole_and_its_bytes_exact(bench: LiveBench) -> None:
    job = bench.job("a2")
    written = ["späte".encode()[:3], "späte".encode()[3:], b"\xff\xfe broken\n", b"end\n"]
    job.write_log(*written[:1])
    with bench.listen("/api/jobs/a2/logs") as client:
        client.wait_for(1)
        job.write_log(written[1])
        client.wait_for(2)
        job.write_log(*written[2:])
        client.wait_for(4)
        job.end()
        assert client.is_closed.wait(30)
    pieces = [one.data for one in client.told[:-1]]
    assert [base64.b64decode(one["data"]) if one["data"] else one["text"].encode() for one in pieces] == written
    assert pieces[-1] == {**pieces[-1], "text": "end\n", "data": None, "stream": "train.1", "attempt": 1}
    whole = httpx.get(
        f"{bench.url}/api/jobs/a2/logs", headers={"Authorization": f"Bearer {bench.token}"}, verify=False
    ).json()
    assert "".join(one["text"] for one in whole["items"]) == b"".join(written).decode(errors="replace")


def test_a_client_never_continues_inside_a_character(bench: LiveBench) -> None:
    job = bench.job("a3")
    job.write_log(b"a", "ä".encode()[:1], "ä".encode()[1:])
    with bench.listen("/api/jobs/a3/logs") as client:
        first, half, _ = client.wait_for(3)
    assert half.id == first.id
    with bench.listen("/api/jobs/a3/logs", last_event_id=half.id) as again:
        again.wait_for(2)
    assert "".join(one.data["text"] for one in again.told) == "ä"


def test_readings_come_as_they_are_read(bench: LiveBench) -> None:
    job = bench.job("a4")
    job.write_readings(0.5)
    with bench.listen("/api/jobs/a4/readings") as client:
        client.wait_for(1)
        job.write_readings(float("inf"), 0.25)  # SQLite stores nan as NULL
        client.wait_for(3)
    assert [(one.data["step"], one.data["loss"]) for one in client.told] == [(1, 0.5), (2, "Infinity"), (3, 0.25)]
    with bench.listen(f"/api/jobs/a4/readings?after={client.told[1].id}") as again:
        again.wait_for(1)
    assert again.told[0].data["step"] == 3


def test_nothing_is_lost_or_doubled_while_events_are_written_and_the_connection_breaks(bench: LiveBench) -> None:
    job = bench.job("a5")
    stopping = threading.Event()

    def write() -> None:
        while not stopping.is_set():
            job.write_events(3)

    writer = threading.Thread(target=write)
    writer.start()
    seen: list[int] = []
    try:
        for _ in range(6):
            last = str(seen[-1]) if seen else None
            with bench.listen("/api/jobs/a5/events", last_event_id=last) as client:
                client.wait_for(20)
            seen += client.numbers
    finally:
        stopping.set()
        writer.join()
    assert seen == list(range(1, len(seen) + 1))


def test_all_jobs_events_go_only_to_who_may_see_them(bench: LiveBench) -> None:
    ann, bob = bench.add_user("ann"), bench.add_user("bob")
    jobs = {"anns1": "ann", "bobs1": "bob", "mine1": None}

    def all_told() -> list[int] | None:
        """Of these jobs alone: the bench is shared, and another test's last events may still be on their way."""
        seqs = [one.data["seq"] for one in all_seen.told if one.data["job"] in jobs]
        return seqs if len(seqs) >= 9 else None

    with ExitStack() as opened:
        clients = [opened.enter_context(bench.listen("/api/events", token)) for token in (bench.token, ann, bob)]
        for client in clients:
            client.wait_for_place()
        for job_id, owner in jobs.items():
            bench.job(job_id, owner=owner).write_events(2)
        all_seen, anns, bobs = clients
        seqs = until(all_told, "nine events")
        anns.wait_for(3)
        bobs.wait_for(3)
    assert {one.data["job"] for one in anns.told} == {"anns1"}
    assert {one.data["job"] for one in bobs.told} == {"bobs1"}
    assert (len(set(seqs)), seqs) == (9, sorted(seqs))
    with bench.listen("/api/events?after=0", ann) as history:
        history.wait_for(3)
    assert {one.data["job"] for one in history.told} == {"anns1"}


@pytest.mark.parametrize("noun", ["events", "logs", "readings"])
def test_another_s_job_does_not_exist_for_a_stream_either(bench: LiveBench, noun: str) -> None:
    if bench.store.jobs.matching("secret1") == []:
        bench.job("secret1", owner=None)
    token = bench.add_user(f"eve-{noun}")
    with bench.listen(f"/api/jobs/secret1/{noun}", token) as client, bench.listen("/api/jobs/none/logs", token) as none:
        client.wait_until_open()
        none.wait_until_open()
    assert (client.status, none.status, client.told) == (404, 404, [])


def test_a_revoked_token_ends_its_streams_and_no_others(bench: LiveBench) -> None:
    job = bench.job("a6")
    token = bench.token_of("me")
    (stored, *_) = bench.stations[0].tokens.listed()
    with bench.listen("/api/jobs/a6/events", token) as client, bench.listen("/api/jobs/a6/events") as other:
        client.wait_for(1)
        other.wait_for(1)
        bench.stations[0].tokens.revoke(stored.id)
        assert client.is_closed.wait(30)
        job.write_events()
        other.wait_for(2)
    assert len(client.told) == 1


def test_a_silent_stream_sends_comments(bench: LiveBench) -> None:
    bench.job("a7")
    with bench.listen("/api/jobs/a7/logs") as client:
        until(lambda: client.comments >= 3, "comments")
    assert client.told == []


def test_who_listens_to_a_log_has_its_training_streamed(bench: LiveBench) -> None:
    job = bench.job("a8")
    job.begin_executing()
    with bench.listen("/api/jobs/a8/logs"):
        until(lambda: bench.store.watchers.is_watched("a8"), "that somebody watches")


def numbers_from(client: Client, first: int) -> list[int]:
    """The numbers that came, in order; events of other tests may come before."""
    return [one.data["seq"] for one in client.told if one.data["seq"] >= first]


def test_an_event_that_is_committed_late_is_neither_lost_nor_doubled(bench: LiveBench) -> None:
    """PostgreSQL gives numbers before the commit; SQLite has one writer at a time."""
    if bench.store.database.is_sqlite:
        return
    job = bench.job(f"a9-{secrets.token_hex(3)}")
    with bench.listen("/api/events") as client:
        client.wait_for_place()
        with bench.store.database.write() as late:
            row = {"job_id": "elsewhere", "job_version": 1, "kind": "note", "payload": "{}", "at": bench.store.now()}
            number = late.execute(sa.insert(events).values(row).returning(events.c.seq)).scalar_one()
            job.write_events(2)
            until(lambda: numbers_from(client, number) == [number + 1, number + 2], "the two that were committed")
            place = client.last_id
            assert int(place) < number
            announce_news(late)
        until(lambda: len(numbers_from(client, number)) >= 3, "the late one")
        assert numbers_from(client, number) == [number + 1, number + 2, number]
        assert int(client.last_id) >= number + 2
    with bench.listen("/api/events", last_event_id=place) as again:
        until(lambda: len(numbers_from(again, number)) >= 3, "all of them")
    assert numbers_from(again, number) == [number, number + 1, number + 2]


class HeldNews(LocalNews):
    """Reads what is new and hands it over only when told."""

    def __init__(self, may_go: threading.Event, store: Store) -> None:
        super().__init__(store)
        self._may_go = may_go

    def follow(self, topic: Topic, deliver: Callable[[Batch], None]) -> int:
        def when_told(batch: Batch) -> None:
            assert not batch.items or self._may_go.wait(30), "nobody told it to go on"
            deliver(batch)

        return super().follow(topic, when_told)


@pytest.mark.parametrize("noun", ["events", "logs", "readings"])
def test_what_a_late_client_finds_in_the_store_does_not_come_again_as_news(tmp_path: Path, noun: str) -> None:
    may_go = threading.Event()
    with LiveBench(tmp_path, news=partial(HeldNews, may_go)) as bench:
        job = bench.job("busy")
        ways: dict[str, Callable[[], None]] = {
            "events": job.write_events,
            "logs": partial(job.write_log, b"line\n"),
            "readings": partial(job.write_readings, 0.5),
        }
        write = ways[noun]
        write()
        with bench.listen(f"/api/jobs/busy/{noun}") as first:
            first.wait_for(1)
            write()
            with bench.listen(f"/api/jobs/busy/{noun}") as late:
                late.wait_for(1)
                may_go.set()
                write()
                job.end()
                for client in (first, late):
                    assert client.is_closed.wait(30)
    assert (
        len(first.numbers) == {"events": 5, "logs": 3, "readings": 3}[noun]
    )  # a job's first and last events are its own
    assert late.numbers == first.numbers == sorted(set(first.numbers))
