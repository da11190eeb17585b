"""Deletes records of who used the HTTP service that are no longer needed."""

from __future__ import annotations

from stationmaster.control.flow.world import World
from stationmaster.event_log import get_logger

log = get_logger("stationmaster.leftovers")

AUDIT_SECONDS = 400 * 24 * 3600.0  # a year, and time to look back at it


async def clean_up_access(world: World) -> None:
    """Delete expired sessions and sign-in codes, and old entries of the audit log."""
    gone = await world.ask_store(world.store.access.remove_old, audit_seconds=AUDIT_SECONDS)
    if gone:
        log.info("access.cleaned_up", rows=gone)
