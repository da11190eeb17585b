"""Decides on what a visit has seen: at once, or beside the event loop where that takes long. Deciding is pure.

A machine determines how much there is to read. So whatever takes long is done by one thread of its own, one visit after
the other: a job that floods its log delays only itself, never lease renewals or other jobs.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from stationmaster.control.flow.step import Handler, Step
from stationmaster.control.flow.world import World

SeenT = TypeVar("SeenT")
ActionT = TypeVar("ActionT")


async def decided(handler: Handler[SeenT, ActionT], seen: SeenT, world: World) -> Step[ActionT]:
    """What the handler decides. An interrupted visit does not wait for it: nothing is changed by deciding."""
    if not handler.takes_long(seen):
        return handler.decide(seen, world.policy)
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(world.reading_thread, handler.decide, seen, world.policy)
