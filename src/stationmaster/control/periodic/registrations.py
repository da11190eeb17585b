"""Continues registrations with ComfyDeploy that their job left open."""

from __future__ import annotations

from stationmaster.control.flow.world import World
from stationmaster.control.publishing.registering import continue_registration
from stationmaster.event_log import get_logger

log = get_logger("stationmaster.registering")


async def has_registrations(world: World) -> bool:
    return bool(await world.ask_store(world.store.models.to_register))


async def continue_registrations(world: World) -> None:
    """Take every registration that is due one step further."""
    store, ask = world.store, world.ask_store
    for model in await ask(store.models.to_register):
        now = await ask(store.now)
        after = await continue_registration(
            model, world.destinations, retry_seconds=world.policy.comfydeploy.retry, now=now
        )
        log.info("registering.step", model=model.slug, state=after.registration.state, note=after.registration.note)
        await ask(store.models.put, after)
