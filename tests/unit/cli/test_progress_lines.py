from __future__ import annotations

import io

from stationmaster.cli.progress_lines import VisibleWait
from tests.support.asynchronous_tests import asynchronous


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def waited(stream: io.StringIO, seconds: float) -> tuple[str, list[float]]:
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    await VisibleWait(stream=stream, sleep=sleep)(seconds)
    return stream.getvalue(), slept


@asynchronous
async def test_a_pipe_gets_one_plain_line() -> None:
    said, slept = await waited(io.StringIO(), 11.5)
    assert said == "waiting 12 s for the rate limit of Vast.ai\n"
    assert slept == [11.5]


@asynchronous
async def test_a_terminal_shows_a_line_that_counts_down_and_goes_away() -> None:
    said, slept = await waited(Terminal(), 2.5)
    lines = said.replace("\x1b[K", "").split("\r")[1:]
    assert [line.split(" s ")[0] for line in lines] == ["waiting 3", "waiting 2", "waiting 1", ""]
    assert "\n" not in said
    assert slept == [1.0, 1.0, 0.5]


@asynchronous
async def test_a_short_wait_prints_nothing() -> None:
    assert await waited(Terminal(), 1.0) == ("", [1.0])
