"""Events, logs and readings of a job, as every face may rely on them."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from stationmaster.errors import NotFound, UserError
from stationmaster.model import State
from tests.support.jobs.local_world import LocalWorld
from tests.support.jobs.station_kinds import every_station
from tests.support.servers.live_bench import WrittenJob
from tests.support.waiting import until


@every_station
def test_history_is_read_from_where_one_left_off(world: LocalWorld) -> None:
    job = WrittenJob(world.store, "told")
    job.write_events(5, kind="odd", losses=[0.5, float("inf")], at={"nested": None})
    job.write_log(
        "grün\n".encode()[:3], "grün\n".encode()[3:], b"\xff\x00 raw\n", b"Traceback (most recent call last)\n"
    )
    job.write_readings(0.5, 0.25, float("inf"))
    station, store = world.station, world.store
    told = station.events.of_job("told")
    assert [event.job_version for event in told] == list(range(1, 7))
    assert told[-1].payload == {"n": 4, "kind": "odd", "losses": [0.5, float("inf")], "at": {"nested": None}}
    assert list(station.events.of_job("told", after_version=2, limit=2)) == list(told[2:4])
    assert list(station.events.after(told[3].seq)) == list(told[4:])
    assert len(station.events.after(0, limit=3)) == 3
    pieces = [piece for after in (0, 2) for piece in station.logs.of_job("told", after_seq=after, limit=2)]
    assert pieces == store.logs.of_job("told")
    assert station.logs.latest("told", limit=2) == pieces[-2:]
    readings = station.readings.numbered("told")
    assert [reading.loss for _, reading in readings] == [0.5, 0.25, float("inf")]
    assert station.readings.numbered("told", after_seq=readings[1][0]) == readings[2:]
    assert station.readings.latest("told", limit=2) == readings[1:]
    assert station.readings.of_job("told") == [reading for _, reading in readings]
    assert [(one.line, one.text) for one in station.logs.search("told", "TRACE")] == [
        (3, "Traceback (most recent call last)")
    ]
    assert [one.number for one in station.logs.search("told", "r", limit=2, after=1)] == [2, 3]
    assert station.logs.search("told", "nowhere") == []
    with pytest.raises(UserError):
        station.logs.search("told", "two\nlines")


@every_station
def test_a_log_is_followed_to_the_end_of_its_job(world: LocalWorld) -> None:
    job = WrittenJob(world.store, "loud")
    job.write_log(b"first\n")
    seen: list[bytes] = []

    def follow() -> None:
        for pieces in world.station.logs.follow("loud"):
            seen.extend(chunk.data for _, chunk in pieces)

    def has(count: int) -> bool:
        return len(seen) == count

    follower = threading.Thread(target=follow)
    follower.start()
    for number in range(3):
        until(partial(has, number + 1), "the line before")
        job.write_log(f"line {number}\n".encode())
    job.end()
    follower.join(60)
    assert seen == [b"first\n", b"line 0\n", b"line 1\n", b"line 2\n"]


@every_station
def test_a_change_is_seen_by_who_watches(world: LocalWorld) -> None:
    job = WrittenJob(world.store, "seen")
    views = world.station.jobs.watch("seen")
    assert next(views).job.state is State.QUEUED
    job.end()
    *_, last = views
    assert last.job.state is State.ENDED


@every_station
def test_the_loss_of_a_long_run_is_a_few_dozen_values_in_which_no_spike_is_lost(world: LocalWorld) -> None:
    job = WrittenJob(world.store, "long")
    job.write_readings(*(9.0 if step == 777 else 1000.0 / (1000 + step) for step in range(2000)), float("nan"))
    with pytest.raises(NotFound):
        world.station.readings.loss_trend("nowhere")
    assert list(world.station.readings.loss_trend("long")) == [], "its progress is not known yet"
    job.write_progress(step=2000)
    trend = list(world.station.readings.loss_trend("long"))
    assert 20 <= len(trend) <= 60
    assert max(trend) == 9.0
    assert trend[0] > trend[-1]
