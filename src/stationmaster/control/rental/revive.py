"""A machine that is there but does not answer: one that was stopped is started, one that has moved is found again.

A machine is stopped by its own guard when nobody came, by the provider when credit ran out, or by a higher bid. Its
training is over then, but the model may still lie on its disk.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stationmaster.control.rental.login import pinned
from stationmaster.control.rental.machine import Fate, Sighting, access_from_json, access_to_json, drop_connection
from stationmaster.control.step import cut_off, wait
from stationmaster.control.world import Visit, World
from stationmaster.errors import ProviderError
from stationmaster.model import Access, Job, MachineStatus, Reason, SshAccess
from stationmaster.providers.base import CanStop
from stationmaster.store.writes import Told, Write


@dataclass(frozen=True, slots=True, kw_only=True)
class Revive:
    """Start the machine, or learn where it is now."""

    sighting: Sighting


def needs_reviving(sighting: Sighting, job: Job) -> bool:
    return sighting.fate is Fate.STOPPED or _has_moved(sighting, job)


def marked_as_stopped(job: Job, sighting: Sighting) -> Job:
    """The training on a stopped machine is over; why is written down before the machine is touched."""
    if sighting.fate is not Fate.STOPPED or "ending" in job.memory:
        return job
    return job.remember(ending=Reason.MACHINE_STOPPED.value)


async def revive(action: Revive, job: Job, visit: Visit, world: World) -> Write:
    sighting = action.sighting
    try:
        if sighting.fate is Fate.STOPPED:
            return await _start(sighting, job, world)
        return await _find_again(sighting, job, visit, world)
    except ProviderError as problem:
        return cut_off(job, now=visit.now, policy=world.policy, problem=str(problem))


async def _start(sighting: Sighting, job: Job, world: World) -> Write:
    """A start that the provider only queues could bill at any time, so it is taken back and tried again later."""
    assert sighting.machine is not None
    provider = world.provider(job.spec.provider)
    if not isinstance(provider, CanStop):
        return wait(job, world.policy.provider_look_seconds)
    if await provider.start(sighting.machine.provider_id):
        told = Told(kind="machine_started", payload={"provider_id": sighting.machine.provider_id})
        return wait(job, world.policy.provider_look_seconds, events=(told,))
    await provider.stop(sighting.machine.provider_id)
    return wait(job, world.policy.queued_start_seconds)


async def _find_again(sighting: Sighting, job: Job, visit: Visit, world: World) -> Write:
    """After a start the address, and the host key, may be others; the provider's word is asked for both."""
    assert sighting.machine is not None
    assert sighting.rental is not None
    failures = int(job.memory.get("failures", 0))
    chosen = sighting.machine.accesses[failures % len(sighting.machine.accesses)]
    access = await pinned(chosen, sighting.rental, sighting.machine, visit, world)
    await drop_connection(job, world)
    if access is None:
        return wait(job, world.policy.provider_look_seconds)
    known = _with_known_job_root(access, access_from_json(job.memory["access"]))
    return wait(job.remember(access=access_to_json(known)), 0.0)


def _has_moved(sighting: Sighting, job: Job) -> bool:
    machine = sighting.machine
    if machine is None or machine.status is not MachineStatus.RUNNING or not machine.accesses:
        return False
    known = access_from_json(job.memory["access"])
    return all(_address(access) != _address(known) for access in machine.accesses)


def _address(access: Access) -> tuple[str, int]:
    return (access.host, access.port) if isinstance(access, SshAccess) else (access.root, 0)


def _with_known_job_root(access: Access, known: Access) -> Access:
    return replace(access, job_root=known.job_root)
