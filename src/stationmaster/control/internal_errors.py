"""Unexpected errors in a handler: an event, an alert, and retries with growing pauses.

Retries end, because a machine bills meanwhile. Past the job's limit, or when a person asked for the end, the job moves
on without the failing handler: towards the release of its machine, with the model as far as that works.
"""

from __future__ import annotations

from dataclasses import replace

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import give_up, go_on, is_late, outcome_event, recovered, wants_out
from stationmaster.control.machine.parking import parked
from stationmaster.control.states.fetching.handler import finish_incomplete
from stationmaster.control.states.finalizing.handler import final_reason
from stationmaster.lifecycle import Move, concluded, is_parked
from stationmaster.model import Alert, Desired, Job, Reason, State
from stationmaster.store.writes import NewEvent, Write

INTERNAL_ERROR = "internal_error"
_MOST_ERRORS = 3  # in a row before anything is given up: an error that passes is no reason


def after_internal_error(job: Job, problem: str, *, now: float, policy: Policy) -> Write:
    """What is written after the internal error `problem`."""
    errors = job.setbacks.internal_errors + 1
    if errors >= _MOST_ERRORS and (way_out := _way_out(_with_errors(job, 0), problem, now=now, policy=policy)):
        return replace(way_out, cleared_alerts=(*way_out.cleared_alerts, INTERNAL_ERROR))
    return Write(
        job=_with_errors(job, errors),
        due_in=policy.retry_after(errors - 1),
        events=() if errors > 1 else (NewEvent(kind="tripped", payload={"problem": problem}),),
        alerts=(Alert(kind=INTERNAL_ERROR, job_id=job.id, message=f"in {job.state}: {problem}"),),
    )


def with_errors_cleared(write: Write) -> Write:
    """The write of a visit that succeeded, with the alert of earlier internal errors cleared."""
    if not write.job.setbacks.internal_errors:
        return write
    return replace(write, job=_with_errors(write.job, 0), cleared_alerts=(*write.cleared_alerts, INTERNAL_ERROR))


def _with_errors(job: Job, errors: int) -> Job:
    return replace(job, setbacks=replace(job.setbacks, internal_errors=errors))


def _way_out(job: Job, problem: str, *, now: float, policy: Policy) -> Write | None:
    if not (wants_out(job) or is_late(job, now=now)):
        return None
    why = f"Stationmaster itself failed in {job.state}: {problem}"
    match job.state:
        case State.QUEUED | State.PROVISIONING | State.TRANSFERRING_DATA:
            reason = Reason.CANCELLED_BY_USER if wants_out(job) else Reason.INTERNAL_ERROR
            return give_up(job, reason, now=now, explanation=why)
        case State.EXECUTING | State.FETCHING_RESULTS if job.desired is Desired.CANCEL:
            return give_up(job, Reason.CANCELLED_BY_USER, now=now, explanation=why)
        case State.EXECUTING:
            ending = replace(job.ending, reason=_ending_reason(job), explanation=why, unstopped=True)
            return go_on(replace(recovered(job), ending=ending), Move.EXITED, now=now)
        case State.FETCHING_RESULTS if now - job.state_since >= policy.limits.fetch and not is_parked(job):
            if job.has_model_of_attempt:
                return finish_incomplete(job, Reason.INTERNAL_ERROR, why, now=now)
            return parked(job, why, policy, now=now)
        case State.FINALIZING:
            done = concluded(job, final_reason(job), explanation=why)
            return go_on(done, Move.PUBLISHED, now=now, events=(outcome_event(done),))
    return None  # RELEASING: destroy is repeated until the machine is gone, whatever happens


def _ending_reason(job: Job) -> Reason:
    match job.desired:
        case Desired.STOP:
            return Reason.STOPPED_BY_USER
        case Desired.CANCEL_KEEP:
            return Reason.CANCELLED_BY_USER
        case _:
            return Reason.HARD_LIMIT
