"""Waiting for a service that limits how often it may be asked, so that the person at the terminal sees why."""

from __future__ import annotations

import asyncio
import math
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TextIO

_UNNOTICED_SECONDS = 2.0  # shorter waits need no words
_TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VisibleWait:
    """On a terminal a line that counts down and goes away; elsewhere one plain line for each wait."""

    stream: TextIO
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep

    async def __call__(self, seconds: float) -> None:
        if seconds < _UNNOTICED_SECONDS:
            await self.sleep(seconds)
        elif self.stream.isatty():
            await self._count_down(seconds)
        else:
            self._write(f"{waiting_line(seconds)}\n")
            await self.sleep(seconds)

    async def _count_down(self, seconds: float) -> None:
        left = seconds
        try:
            while left > 0:
                self._write(f"\r{waiting_line(left)}\x1b[K")
                await self.sleep(min(left, _TICK_SECONDS))
                left -= _TICK_SECONDS
        finally:
            self._write("\r\x1b[K")

    def _write(self, text: str) -> None:
        self.stream.write(text)
        self.stream.flush()


async def wait_visibly(seconds: float) -> None:
    """Told on standard error: what a command prints for programs stays pure."""
    await VisibleWait(stream=sys.stderr)(seconds)


def waiting_line(seconds: float) -> str:
    """
    >>> waiting_line(11.4)
    'waiting 12 s: Vast.ai limits how often it may be asked'
    """
    return f"waiting {math.ceil(seconds)} s: Vast.ai limits how often it may be asked"
