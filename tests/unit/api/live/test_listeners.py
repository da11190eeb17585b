"""A client's queue is bounded, and one batch is the same bytes for everybody."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from stationmaster.api.live.frames import HEARTBEAT, Encoder
from stationmaster.api.live.listener import Closing, Listener
from stationmaster.model import RIGHTS, Caller, Event, Role
from stationmaster.station.news import ALL_EVENTS, Batch, NewsItem, Position, Topic, TopicKind

CALLER = Caller(user="ann", role=Role.USER, rights=RIGHTS[Role.USER])


def listener(*, most_bytes: int = 100, most_frames: int = 3) -> Listener:
    return Listener(CALLER, most_bytes=most_bytes, most_frames=most_frames)


def event(seq: int, job_id: str = "a") -> Event:
    return Event(seq=seq, job_id=job_id, job_version=seq, kind="note", payload={}, at=0.0)


def test_what_waits_comes_in_order_and_ends() -> None:
    async def listen() -> None:
        one = listener()
        one.put(b"first")
        one.put(b"")
        one.put(b"second")
        one.finish()
        assert [await one.take(), await one.take(), await one.take()] == [b"first", b"second", None]

    asyncio.run(listen())


def test_too_many_bytes_drop_the_client_but_one_large_batch_does_not() -> None:
    async def listen() -> None:
        large = listener()
        large.put(b"x" * 1000)
        assert not large.closing.done()
        large.put(b"y")
        assert large.closing.result() is Closing.TOO_SLOW
        many = listener()
        for _ in range(4):
            many.put(b"x")
        assert many.closing.result() is Closing.TOO_SLOW
        many.put(b"after")  # nothing is kept for who is gone

    asyncio.run(listen())


def test_room_that_was_used_is_free_again() -> None:
    async def listen() -> None:
        one = listener()
        for _ in range(50):
            one.put(b"x" * 90)
            assert await one.take() == b"x" * 90
        assert not one.closing.done()

    asyncio.run(listen())


def test_a_heartbeat_waits_only_where_nothing_else_does() -> None:
    async def listen() -> None:
        one = listener()
        one.beat()
        one.beat()
        one.finish()
        assert [await one.take(), await one.take()] == [HEARTBEAT, None]

    asyncio.run(listen())


def test_events_of_all_jobs_are_encoded_once_for_each_who_may_see_them() -> None:
    items = tuple(
        NewsItem(number=seq, value=event(seq), owner=owner) for seq, owner in ((4, "ann"), (6, None), (7, "bob"))
    )
    frames = Encoder().encode(Batch(topic=ALL_EVENTS, items=items, position=Position(number=7, missing=frozenset({5}))))
    assert frames.seen_by("ann") is frames.of_owner["ann"]
    assert (frames.seen_by("ann").count(b"data:"), frames.seen_by("eve")) == (1, b"")
    assert frames.seen_by(None).count(b"data:") == 3
    numbers = [line for line in frames.seen_by(None).split(b"\n") if line.startswith(b"id:")]
    assert numbers == [b"id: 4"] * 3, "5 may still come: whoever continues must get it"


def test_a_job_s_topic_is_the_same_bytes_for_everybody() -> None:
    topic = Topic(TopicKind.EVENTS, "a")
    told = replace(event(1), payload={"place": "/srv/station/home/jobs/a/out.bin"})
    batch = Batch(topic=topic, items=(NewsItem(number=1, value=told),), position=Position(number=1))
    frames = Encoder().encode(batch)
    assert frames.seen_by(None).startswith(b"id: 1\ndata: {")
    assert frames.seen_by("ann") is frames.seen_by("ben")
    assert (b"/srv/station" in frames.seen_by(None), b"/srv/station" in frames.seen_by("ann")) == (True, False)
