"""How far a transfer is: pace, time left, and who gets to know."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from stationmaster.cli.render import transfer_text
from stationmaster.control.results.transfer_progress import Meter, report_progress
from stationmaster.errors import LeaseLost
from stationmaster.model import Transfer
from stationmaster.store.writes import Write
from tests.support.asynchronous_tests import asynchronous
from tests.support.jobs.spine_values import job, visit


def test_the_pace_counts_only_what_moved_now() -> None:
    meter = Meter(began=0.0)
    meter.moved(600, 1000, now=10.0)
    meter.moved(700, 1000, now=20.0)
    assert meter.reading("sending", now=20.0) == Transfer(
        way="sending", bytes=700, total=1000, bytes_per_second=10.0, eta_seconds=30.0
    )


def test_a_further_file_has_its_own_pace() -> None:
    meter = Meter(began=0.0)
    meter.moved(1000, 1000, now=1.0)
    meter.moved(10, 500, now=100.0)
    meter.moved(20, 500, now=101.0)
    assert meter.reading("sending", now=101.0).bytes_per_second == 10.0


def test_nothing_is_said_of_a_pace_that_is_not_known() -> None:
    reading = Meter(began=5.0).reading("sending", now=5.0)
    assert (reading.bytes_per_second, reading.eta_seconds) == (None, None)
    assert transfer_text(reading) == "sending 0.0 of 0.0 MB"


def test_a_person_reads_bytes_rate_and_time_left() -> None:
    reading = Transfer(way="fetching", bytes=5_000_000, total=25_000_000, bytes_per_second=1e6, eta_seconds=20.0)
    assert transfer_text(reading) == "fetching 5.0 of 25.0 MB, 1.0 MB/s, ETA 20s"


@asynchronous
async def test_progress_is_written_while_the_transfer_goes_on_and_told_now_and_then() -> None:
    written: list[Write] = []
    twice = asyncio.Event()

    async def record(write: Write) -> None:
        written.append(write)
        if len(written) > 1:
            twice.set()

    watched = replace(visit(job()), record=record)
    async with report_progress(watched.job, watched, "sending", look_seconds=0.005, event_seconds=0.0) as progress:
        for done in range(1, 1000):
            progress(done, 1000)
            await asyncio.sleep(0.002)
            if twice.is_set():
                break
    seen = [write.job.machine.transfer.bytes for write in written if write.job.machine.transfer is not None]
    assert len(seen) >= 2
    assert seen == sorted(set(seen))
    assert [event.kind for write in written for event in write.events] == ["transfer"] * len(written)


@asynchronous
async def test_a_lease_that_is_lost_meanwhile_ends_the_transfer_s_visit() -> None:
    lost = asyncio.Event()

    async def record(_write: Write) -> None:
        lost.set()
        raise LeaseLost("taken over")

    watched = replace(visit(job()), record=record)

    async def transfer() -> None:
        async with report_progress(watched.job, watched, "sending", look_seconds=0.001) as progress:
            progress(1, 10)
            await lost.wait()

    with pytest.raises(LeaseLost):
        await transfer()
