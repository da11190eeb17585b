"""The clocks of the monitor as an argument, so that days can pass in minutes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """`clock` tells the time of day, `monotonic` measures intervals and never jumps."""

    clock: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


REAL_TIME = Timing()


def accelerated(factor: float) -> Timing:
    """A time that passes `factor` times as fast from now on: with 1000, fifty hours pass in three minutes."""
    began, began_at = time.monotonic(), time.time()

    def passed() -> float:
        return (time.monotonic() - began) * factor

    return Timing(
        clock=lambda: began_at + passed(),
        monotonic=passed,
        sleep=lambda seconds: asyncio.sleep(seconds / factor),
    )
