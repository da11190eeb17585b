"""Parking: a machine whose model could not be fetched in time is stopped. Its GPU bills no more, its disk is kept.

It waits for a person: a further `stop` starts it once more and gives the fetch its whole time again, `cancel` gives
the model up. Without either, the machine is destroyed once `sweep.abandon_after` and the job's limit have passed, and
the job explains what was lost.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from stationmaster.control.flow.kept_checkpoints import checkpoint_note
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import failed_try, give_up, go_on, recovered, wait
from stationmaster.control.flow.world import World
from stationmaster.control.machine.adoption import opened_cost
from stationmaster.control.machine.closing_time import closing_forgotten
from stationmaster.control.machine.release import closed_cost
from stationmaster.control.machine.sight import Fate, Sighting, missed
from stationmaster.errors import ProviderError
from stationmaster.lifecycle import PARKED, REASONS, Move
from stationmaster.model import Alert, CostLine, Desired, Job, MachineStatus, Outcome, Parked, Reason, State
from stationmaster.money import ZERO
from stationmaster.providers.base import CanStop
from stationmaster.store.writes import NewEvent, Write

_LOOK_SECONDS = 300.0
_GPU = "gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class Park:
    """Stop the machine; the intent is recorded already."""

    provider_id: str


def parked(job: Job, why: str, policy: Policy, *, now: float) -> Write:
    """The job with its machine to be stopped, and an alert with what the owner can do."""
    note = Parked(at=now, why=why, seq=job.desired_seq)
    marked = replace(job, ending=replace(job.ending, parked=note))
    base = go_on(marked, Move.EXITED, now=now) if job.state is State.EXECUTING else wait(marked, 0.0)
    abandon_seconds = _abandoned_at(marked, note, policy) - now
    event = NewEvent(kind="machine_parked", payload={"problem": why, "abandon_seconds": abandon_seconds})
    return replace(base, events=(event, *base.events), alerts=(_alert(marked, note, policy),))


def is_asked_again(job: Job) -> bool:
    """Whether a person has asked for the model since the machine was parked."""
    return job.desired in (Desired.STOP, Desired.CANCEL_KEEP) and job.desired_seq != _note(job).seq


def taken_up_again(job: Job) -> Job:
    """The job as it fetches once more: with its whole time, and its starts counted from zero."""
    again = closing_forgotten(recovered(job))
    return replace(
        again,
        ending=replace(again.ending, parked=None),
        machine=replace(again.machine, starts=0, started_at=None),
    )


def while_parked(job: Job, sighting: Sighting, policy: Policy, *, can_stop: bool, now: float) -> Write | Park:
    """What to do on a visit to a parked job."""
    note = _note(job)
    left_seconds = _abandoned_at(job, note, policy) - now
    if not can_stop or left_seconds <= 0 or sighting.fate is Fate.GONE:
        gone = "; the provider reports that the machine is gone" if sighting.fate is Fate.GONE else ""
        explanation = f"{note.why}{gone}; its model is lost{checkpoint_note(job)}"
        return replace(give_up(job, _true_reason(job), now=now, explanation=explanation), cleared_alerts=(PARKED,))
    if sighting.fate is Fate.THERE and sighting.machine is not None:
        return Park(provider_id=sighting.machine.provider_id)
    if sighting.fate is Fate.MISSING:
        return wait(missed(job, sighting), policy.provider_look_seconds)
    rental = sighting.rental
    stopped = sighting.fate is Fate.STOPPED and rental is not None and rental.stopped_at is None
    rentals = (replace(rental, stopped_at=now),) if stopped and rental is not None else ()
    return wait(recovered(job), min(_LOOK_SECONDS, left_seconds), rentals=rentals, alerts=(_alert(job, note, policy),))


async def park(action: Park, job: Job, world: World) -> Write:
    """Ask the provider to stop the machine; the next visit checks the listing for the proof."""
    provider = world.provider(job.spec.provider)
    assert isinstance(provider, CanStop), "others are given up"
    try:
        await provider.stop(action.provider_id)
    except ProviderError as problem:
        after, seconds, failures = failed_try(job, world.policy)
        events = () if failures else (NewEvent(kind="stop_failed", payload={"problem": str(problem)}),)
        return wait(after, seconds, events=events)
    return wait(job, world.policy.provider_look_seconds)


def costs_as_seen(lines: Iterable[CostLine], sighting: Sighting, *, now: float) -> tuple[CostLine, ...]:
    """Cost lines that change with the provider's listing: the GPU of a stopped machine costs nothing."""
    rental, machine = sighting.rental, sighting.machine
    if rental is None or machine is None:
        return ()
    of_gpu = [line for line in lines if line.rental_label == rental.label and line.kind.startswith(_GPU)]
    running = [line for line in of_gpu if line.ended_at is None]
    if machine.status is MachineStatus.STOPPED:
        return tuple(closed_cost(line, now=now) for line in running)
    if machine.status is not MachineStatus.RUNNING or running or not of_gpu:
        return ()
    again = opened_cost(rental, machine, now=now)
    return (replace(again, kind=f"{_GPU}-{len(of_gpu) + 1}", started_at=now, amount=ZERO),)


def _true_reason(job: Job) -> Reason:
    """Why the job ends without its model: a reason whose outcome promises one would not be true."""
    ending = job.ending.reason
    if ending is None or REASONS[ending].outcome in (Outcome.COMPLETED, Outcome.INCOMPLETE):
        return Reason.FETCH_FAILED
    return ending


def _abandoned_at(job: Job, note: Parked, policy: Policy) -> float:
    """When the machine is destroyed with the model, unless a person decides: never before the job's own limit."""
    return max(note.at + policy.sweep.abandon_after, job.deadline_at or 0.0)


def _note(job: Job) -> Parked:
    assert job.ending.parked is not None, "the job's machine is parked"
    return job.ending.parked


def _alert(job: Job, note: Parked, policy: Policy) -> Alert:
    goes_at = datetime.fromtimestamp(_abandoned_at(job, note, policy), tz=UTC)
    message = (
        f"{note.why}; the machine is stopped, so that only its disk costs. It is destroyed with the model at "
        f"{goes_at:%Y-%m-%d %H:%M} UTC. `stationmaster stop {job.id}` tries once more, "
        f"`stationmaster cancel {job.id}` gives the model up"
    )
    return Alert(kind=PARKED, job_id=job.id, message=message)
