"""Revives a machine that exists but does not answer: starts a stopped one, finds one whose address changed.

A machine is stopped by its own guard when no worker visited, by the provider when credit ran out, or by a higher bid.
Its training is over then, but the model may still be on its disk. The provider does not report who stopped a bid's
machine, so it is started like any other: only a start that is refused or queued shows that it was outbid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from stationmaster.control.flow.kept_checkpoints import checkpoint_note
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import cut_off, give_up, wait
from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.access import access_of, drop_connection
from stationmaster.control.machine.login import pinned
from stationmaster.control.machine.parking import parked
from stationmaster.control.machine.sight import Fate, Sighting
from stationmaster.errors import AccessRefused, AnswerLost, ProviderBusy, ProviderError, ProviderFault
from stationmaster.model import Access, Job, MachineStatus, Reason, SshAccess
from stationmaster.providers.base import CanStop
from stationmaster.store.writes import NewEvent, Write

STOPPED_ENDINGS = frozenset({Reason.MACHINE_STOPPED, Reason.OUTBID})
"""Reasons of a training whose machine was stopped; one that was complete by then has finished all the same."""

_MOST_STARTS = 3  # of one machine: each may bill, and something stops it every time
# Errors of a start after which it may work later: the provider's state, or its credit and key, which people mend.
_PASSING = (ProviderBusy, AnswerLost, ProviderFault, AccessRefused)


@dataclass(frozen=True, slots=True, kw_only=True)
class Revive:
    """Start the machine, or find its new address."""

    sighting: Sighting


def needs_reviving(sighting: Sighting, job: Job) -> bool:
    return sighting.fate is Fate.STOPPED or _has_moved(sighting, job)


def marked_as_stopped(job: Job, sighting: Sighting) -> Job:
    """The job with the reason noted why its training ended, before the machine is touched."""
    if sighting.fate is not Fate.STOPPED or job.ending.reason is not None:
        return job
    reason = Reason.OUTBID if _may_be_outbid(sighting) else Reason.MACHINE_STOPPED
    return replace(job, ending=replace(job.ending, reason=reason))


async def revive(action: Revive, job: Job, visit: Visit, world: World) -> Write:
    sighting = action.sighting
    try:
        if sighting.fate is Fate.STOPPED:
            return await _start(sighting, job, visit, world)
        return await _find_again(sighting, job, visit, world)
    except _PASSING as problem:
        return cut_off(job, now=visit.now, policy=world.policy, problem=str(problem))
    except ProviderError as problem:
        if _is_bid_to_leave(job) and sighting.fate is Fate.STOPPED:
            return _outbid(job, visit, str(problem))
        return cut_off(job, now=visit.now, policy=world.policy, problem=str(problem))


def _may_be_outbid(sighting: Sighting) -> bool:
    """Whether a bid's machine was stopped, and not by our own sweep, which stops machines to keep their disk."""
    if sighting.machine is None or sighting.rental is None:
        return False
    return sighting.machine.interruptible and sighting.rental.stopped_at is None


def _is_bid_to_leave(job: Job) -> bool:
    """Whether the machine may be left to the higher bidder; one whose training had ended by then is waited for."""
    return job.ending.reason is Reason.OUTBID


async def _start(sighting: Sighting, job: Job, visit: Visit, world: World) -> Write:
    """Start the machine. A start that is only queued could bill at any time, so it is revoked and retried later."""
    assert sighting.machine is not None
    provider, policy = world.provider(job.spec.provider), world.policy
    if not isinstance(provider, CanStop) or _was_started_just_now(job, visit, policy.queued_start_seconds):
        return wait(job, policy.provider_look_seconds)
    starts = job.machine.starts
    if starts >= _MOST_STARTS:
        why = f"it was stopped again after {starts} starts"
        return _outbid(job, visit, why) if _is_bid_to_leave(job) else _left(job, visit, why, policy)
    if await provider.start(sighting.machine.provider_id):
        event = NewEvent(kind="machine_started", payload={"provider_id": sighting.machine.provider_id})
        started = replace(job, machine=replace(job.machine, starts=starts + 1, started_at=visit.now))
        return wait(started, policy.provider_look_seconds, events=(event,))
    await provider.stop(sighting.machine.provider_id)
    if _is_bid_to_leave(job):
        return _outbid(job, visit, "a start would have to wait until its GPU is free")
    return wait(job, policy.queued_start_seconds)


def _was_started_just_now(job: Job, visit: Visit, seconds: float) -> bool:
    """A listing may show a machine as stopped for a while after its start."""
    started_at = job.machine.started_at
    return started_at is not None and visit.now - started_at < seconds


def _outbid(job: Job, visit: Visit, why: str) -> Write:
    explanation = f"a higher bid took the machine: {why}{checkpoint_note(job)}"
    return give_up(job, Reason.OUTBID, now=visit.now, explanation=explanation)


def _left(job: Job, visit: Visit, why: str, policy: Policy) -> Write:
    problem = f"the model could not be fetched from the stopped machine: {why}"
    return parked(job, problem, policy, now=visit.now)


async def _find_again(sighting: Sighting, job: Job, visit: Visit, world: World) -> Write:
    """Find the machine's new address and host key, which may change with a start; both come from the provider."""
    assert sighting.machine is not None
    assert sighting.rental is not None
    chosen = sighting.machine.accesses[job.setbacks.failures % len(sighting.machine.accesses)]
    access = await pinned(chosen, sighting.rental, sighting.machine, visit, world)
    await drop_connection(job, world)
    if access is None:
        return wait(job, world.policy.provider_look_seconds)
    known = _with_known_job_root(access, access_of(job))
    return wait(replace(job, machine=replace(job.machine, access=known)), 0.0)


def _has_moved(sighting: Sighting, job: Job) -> bool:
    machine = sighting.machine
    if machine is None or machine.status is not MachineStatus.RUNNING or not machine.accesses:
        return False
    known = access_of(job)
    return all(_address(access) != _address(known) for access in machine.accesses)


def _address(access: Access) -> tuple[str, int]:
    return (access.host, access.port) if isinstance(access, SshAccess) else (access.root, 0)


def _with_known_job_root(access: Access, known: Access) -> Access:
    return replace(access, job_root=known.job_root)
