"""The machine of a job's current attempt: what it must be, how it is reached, whether it still exists."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from stationmaster.control.fleet import shows_absence
from stationmaster.control.world import World
from stationmaster.errors import ProviderError
from stationmaster.model import (
    LIVE_RENTAL_STATES,
    Access,
    Job,
    LocalAccess,
    MachineStatus,
    Rental,
    Requirements,
    SshAccess,
)
from stationmaster.remote.host import Host

_ABSENCES = 2


class Fate(StrEnum):
    """What the provider says of a machine that does not answer."""

    THERE = "THERE"
    MISSING = "MISSING"  # absent from a complete listing, not yet often enough
    GONE = "GONE"
    UNKNOWN = "UNKNOWN"


def requirements(job: Job, world: World) -> Requirements:
    needs = world.recipe(job.spec.recipe).recipe.needs
    return Requirements(
        gpus=needs.gpus,
        vram_gib=needs.vram_gib,
        disk_gib=needs.disk_gib,
        max_price_per_hour=job.spec.max_price_per_hour,
        hours=job.spec.quote.hours_expected,
    )


async def live_rental(job: Job, world: World) -> Rental | None:
    """The one rental that the job may use; the store lets no second be live."""
    rentals = await world.ask_store(world.store.rentals.of_job, job.id)
    return next((each for each in rentals if each.state in LIVE_RENTAL_STATES), None)


def host_of(job: Job, world: World) -> Host:
    """trackside's caller on the job's machine, by what the login wrote down."""
    return world.host(job, str(job.memory["label"]), access_from_json(job.memory["access"]))


async def drop_connection(job: Job, world: World) -> None:
    await world.forget_remote(str(job.memory["label"]))


async def fate(job: Job, world: World) -> Fate:
    """Whether a machine that does not answer still exists; only the provider's own word makes it GONE."""
    rental = await live_rental(job, world)
    if rental is None or rental.provider_id is None:
        return Fate.GONE
    try:
        listing = await world.fleet.listing(rental.provider)
        machine = next((each for each in listing.machines if each.provider_id == rental.provider_id), None)
        if machine is not None:
            return Fate.GONE if machine.status is MachineStatus.FAILED else Fate.THERE
        if not shows_absence(listing, account=rental.account):
            return Fate.UNKNOWN
        if int(job.memory.get("absences", 0)) + 1 < _ABSENCES:
            return Fate.MISSING
        single = await world.provider(rental.provider).describe(rental.provider_id)
        return Fate.GONE if single is None else Fate.THERE
    except ProviderError:
        return Fate.UNKNOWN


def access_to_json(access: Access) -> dict[str, Any]:
    return {"kind": "ssh" if isinstance(access, SshAccess) else "local", **dataclasses.asdict(access)}


def access_from_json(data: Mapping[str, Any]) -> Access:
    values = {key: value for key, value in data.items() if key != "kind"}
    if data["kind"] == "ssh":
        return SshAccess(**{**values, "host_keys": tuple(values.get("host_keys", ()))})
    environment = tuple((name, value) for name, value in values.get("environment", ()))
    return LocalAccess(root=values["root"], job_root=values["job_root"], environment=environment)
