"""Goes on after a lost connection to the server or the store, for commands that stay."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain, repeat
from typing import TypeVar

from stationmaster.cli.speaking import note
from stationmaster.errors import ServerError, StationmasterError, StoreError

Item = TypeVar("Item")

_PAUSES = (0.5, 1.0, 2.0, 5.0)  # seconds; the last one again and again


def reconnected(
    items: Callable[[], Iterator[Item]],
    probe: Callable[[], object],
    *,
    tell: Callable[[str], None] = note,
    pause: Callable[[float], None] = time.sleep,
) -> Iterator[Item]:
    """What `items` yields; it is called again, to continue, whenever the connection was lost and `probe` answers again.

    `tell` gets a sentence for each loss, and when the connection is back. Errors of other kinds are raised.
    """
    while True:
        try:
            yield from items()
            return
        except StationmasterError as problem:
            _require_lost(problem)
            tell(f"connection lost, trying again: {problem}")
        _wait_for(probe, pause)
        tell("connection is back")


def _wait_for(probe: Callable[[], object], pause: Callable[[float], None]) -> None:
    for seconds in chain(_PAUSES, repeat(_PAUSES[-1])):
        pause(seconds)
        try:
            probe()
            return
        except StationmasterError as problem:
            _require_lost(problem)


def _require_lost(problem: StationmasterError) -> None:
    """Raise what time does not heal, such as a store of a newer version."""
    if type(problem) not in (ServerError, StoreError):
        raise problem
