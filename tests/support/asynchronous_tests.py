"""Lets a test be a coroutine: each runs in its own event loop, under a limit that ends a hanging one with a trace."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from tests.support.waiting import Pauses

_LIMIT_SECONDS = 200.0


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        async def limited() -> None:
            async with asyncio.timeout(_LIMIT_SECONDS):
                await test(*args, **kwargs)

        asyncio.run(limited())

    return run


async def until(condition: Callable[[], bool], *, what: str, seconds: float = 150.0) -> None:
    """Wait for a condition; fail, saying `what` never came, when it does not."""
    pauses = Pauses()
    while True:
        looked_after = pauses.begin_look()
        if condition():
            return
        assert looked_after < seconds, f"after {seconds:g} s still not: {what}"
        await asyncio.sleep(pauses.next_seconds())


def names_in(folder: Path) -> list[str]:
    """The files of a folder, including hidden ones."""
    return sorted(path.name for path in folder.iterdir())
