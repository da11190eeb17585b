"""The feed: a reader in another thread gets the newest look, loses no warning, and ends it within seconds."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from stationmaster.control.monitoring.feed import BackgroundFeed
from stationmaster.control.monitoring.fleet import Fleet
from stationmaster.control.monitoring.look import MonitorLook
from stationmaster.control.monitoring.monitor import Monitor, Warnings
from stationmaster.control.monitoring.sources import LogPiece, LogPosition, Sighting
from stationmaster.errors import AccessRefused
from tests.support.monitoring.scripted_source import LOG, ONE, TWO, ScriptedSource, listed


class Stubborn(ScriptedSource):
    """Does not end when it is told to."""

    async def close(self) -> None:
        await asyncio.sleep(60.0)


@contextmanager
def feed_of(source: ScriptedSource, *, every_seconds: float = 0.02) -> Iterator[BackgroundFeed]:
    @asynccontextmanager
    async def open_monitor(publish: Callable[[MonitorLook], None]) -> AsyncIterator[Monitor]:
        warnings = Warnings()
        try:
            yield Monitor(
                listing=source,
                logs=source,
                fleet=Fleet(warn=warnings.add),
                warnings=warnings,
                publish=publish,
                every_seconds=every_seconds,
                list_every_seconds=every_seconds,
            )
        finally:
            await source.close()

    feed = BackgroundFeed(open_monitor, groups=("a", "b"))
    try:
        yield feed
    finally:
        feed.close()


def complete(feed: BackgroundFeed) -> MonitorLook:
    while True:
        look = feed.next(seconds=30.0)
        assert look is not None
        if look.complete:
            return look


def test_the_newest_look_is_returned_once() -> None:
    with feed_of(ScriptedSource(seen=listed(ONE)), every_seconds=3600.0) as feed:
        assert complete(feed).snapshot.instances[0].step == 100
        assert feed.next(seconds=0.3) is None
        assert feed.groups == ("a", "b")
        feed.clear_logs()
        assert complete(feed).snapshot.instances[0].logs == ()
        feed.refresh()
        assert complete(feed).snapshot.instances[0].step == 100


def test_a_slow_reader_gets_the_newest_state_and_every_warning() -> None:
    source = ScriptedSource(seen=listed(ONE, unreadable=("instance 7 skipped",)))
    with feed_of(source) as feed:
        _wait(lambda: source.list_calls > 3)
        source.seen = listed(ONE, TWO)
        calls = source.list_calls
        _wait(lambda: source.list_calls > calls + 20)
        look = feed.next(seconds=30.0)
        assert look is not None
        assert (len(look.snapshot.instances), look.warnings) == (2, ("instance 7 skipped",))


def test_while_paused_no_look_comes() -> None:
    source = ScriptedSource(seen=listed(ONE))
    with feed_of(source) as feed:
        complete(feed)
        feed.set_paused(True)
        while feed.next(seconds=0.5) is not None:
            pass  # those that were under way
        calls = source.list_calls
        assert feed.next(seconds=0.3) is None
        assert source.list_calls == calls
        feed.set_paused(False)
        assert feed.next(seconds=30.0) is not None


def test_what_it_cannot_go_on_with_is_raised_every_time() -> None:
    with feed_of(ScriptedSource(seen=AccessRefused("invalid key"))) as feed:
        for _ in range(2):
            with pytest.raises(AccessRefused, match="invalid key"):
                feed.next(seconds=30.0)


class Broken(ScriptedSource):
    async def read(self, machine: Sighting, since: LogPosition | None) -> LogPiece:
        raise ZeroDivisionError("a bug")


def test_a_bug_in_reading_one_log_is_a_problem_of_that_machine() -> None:
    with feed_of(Broken(seen=listed(ONE))) as feed:
        assert "ZeroDivisionError" in (complete(feed).snapshot.instances[0].problem or "")


@pytest.mark.parametrize("source", [Stubborn(seen=listed(ONE)), ScriptedSource(seen=None)])
def test_it_ends_within_seconds_whatever_does_not_answer(source: ScriptedSource) -> None:
    source.silent = {"1"}
    with feed_of(source) as feed:
        feed.next(seconds=0.5)
        began = time.monotonic()
        feed.close()
        assert time.monotonic() - began < 30.0, "it waited for a source that needs a minute, or for ever"
        feed.close()
        feed.refresh()
        assert feed.next(seconds=0.0) is None or source.seen is not None


_BLOCKED = """
import asyncio, threading
from contextlib import asynccontextmanager
from stationmaster.control.monitoring.feed import BackgroundFeed

class Blocked:
    async def run(self):
        await asyncio.to_thread(entered.set)
        await asyncio.to_thread(threading.Event().wait)

@asynccontextmanager
async def open_monitor(publish):
    yield Blocked()

entered = threading.Event()
feed = BackgroundFeed(open_monitor)
entered.wait()
feed.close()
"""


def test_a_call_that_never_returns_does_not_keep_the_program_from_ending() -> None:
    subprocess.run([sys.executable, "-c", _BLOCKED], timeout=60.0, check=True)


def test_nothing_is_left_running() -> None:
    before = threading.active_count()
    with feed_of(ScriptedSource(seen=listed(ONE), logs={"1": LOG})) as feed:
        complete(feed)
    _wait(lambda: threading.active_count() == before)


def _wait(condition: Callable[[], bool]) -> None:
    ends = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.01)
