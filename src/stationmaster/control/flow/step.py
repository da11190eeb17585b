"""The result of a visit: what to write, and what to do next."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.world import Visit, World
from stationmaster.lifecycle import Move, concluded, counted, may_try_again, moved
from stationmaster.model import Alert, Desired, Job, Reason, State
from stationmaster.model.copying import changed
from stationmaster.model.intake_limits import FALSE_ANSWERS
from stationmaster.store.writes import NewEvent, Write

SeenT = TypeVar("SeenT")
ActionT = TypeVar("ActionT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Generic[ActionT]):
    """`write` is recorded before `then` is performed; without `then` it is all there is to do."""

    write: Write | None = None
    then: ActionT | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler(Generic[SeenT, ActionT]):
    """The handler of one state. `observe` only reads, `decide` is pure, `perform` can be repeated."""

    observe: Callable[[Visit, World], Awaitable[SeenT]]
    decide: Callable[[SeenT, Policy], Step[ActionT]]
    perform: Callable[[ActionT, Job, SeenT, World], Awaitable[Write]]
    takes_long: Callable[[SeenT], bool] = lambda _seen: False  # to decide; then it is done beside the event loop


def wants_out(job: Job) -> bool:
    """Whether the person asked for the end; before a training has started, stop and cancel mean the same."""
    return job.desired is not Desired.RUN


def wants_out_early(job: Job) -> bool:
    """The same in the states before the training; an adopted training runs already, so its stop waits until it can be
    carried out.
    """
    return wants_out(job) and not (job.spec.adopted is not None and job.desired is Desired.STOP)


def is_late(job: Job, *, now: float) -> bool:
    """Whether the hard limit of time or money is reached; it spans all attempts."""
    return job.deadline_at is not None and now >= job.deadline_at


def go_on(job: Job, move: Move, *, now: float, **extra: Any) -> Write:
    """The job in its next state, with the event that records it."""
    after = moved(job, move, now=now)
    if after.unreachable_since is not None:
        after = changed(after, unreachable_since=None)
    events = (*extra.pop("events", ()), state_event(job, after))
    return Write(job=after, events=events, **extra)


def give_up(job: Job, reason: Reason, *, now: float, explanation: str) -> Write:
    """End this attempt: another one follows if limit, reason and count allow it, else the job concludes."""
    again = not wants_out(job) and not is_late(job, now=now) and may_try_again(job, reason)
    after = moved(counted(job, reason), Move.GIVE_UP, now=now)
    events = [NewEvent(kind="attempt_failed", payload={"reason": reason.value, "explanation": explanation})]
    if again:
        ending = changed(after.ending, further=reason, further_explanation=explanation)
        after = changed(after, ending=ending)
    else:
        after = concluded(after, reason, explanation=explanation)
        events.append(outcome_event(after))
    events.append(state_event(job, after))
    return Write(job=after, due_in=None if after.state is State.ENDED else 0.0, events=tuple(events))


def wait(job: Job, seconds: float, **extra: Any) -> Write:
    return Write(job=job, due_in=seconds, **extra)


def failed_try(job: Job, policy: Policy, problem: str | None = None) -> tuple[Job, float, int]:
    """The job with one more failure in a row, how long to wait, and how many failures there were before."""
    failures = job.setbacks.failures
    after = changed(job, setbacks=changed(job.setbacks, failures=failures + 1, problem=problem))
    return after, policy.retry_after(failures), failures


def with_fault(job: Job, problem: str) -> Job:
    """The job with one more false answer of its machine. At the limit it is no accident: the machine is at fault."""
    faults = job.setbacks.faults + 1
    job = changed(job, setbacks=changed(job.setbacks, faults=faults))
    return job if faults < FALSE_ANSWERS else at_fault(job, problem)


def at_fault(job: Job, problem: str) -> Job:
    """The job whose machine is avoided from now on; the first thing that it was caught at is kept."""
    return changed(job, machine=changed(job.machine, fault=job.machine.fault or problem))


def recovered(job: Job) -> Job:
    """The job after a success: failures in a row start from zero."""
    if job.setbacks.failures or job.unreachable_since is not None:
        return changed(job, setbacks=changed(job.setbacks, failures=0, problem=None), unreachable_since=None)
    return job


def cut_off(job: Job, *, now: float, policy: Policy, problem: str) -> Write:
    """The machine did not answer: retry, and raise an alert after a while; nothing else is concluded."""
    since = job.unreachable_since if job.unreachable_since is not None else now
    after, seconds, failures = failed_try(changed(job, unreachable_since=since), policy, problem)
    events = () if failures else (NewEvent(kind="unreachable", payload={"problem": problem}),)
    alerts: tuple[Alert, ...] = ()
    if now - since >= policy.monitoring.silence_alert:
        minutes = int((now - since) // 60)
        alerts = (Alert(kind="silence", job_id=job.id, message=f"no answer for {minutes} min: {problem}"),)
    return wait(after, seconds, events=events, alerts=alerts)


def state_event(before: Job, after: Job) -> NewEvent:
    payload = {"from": before.state.value, "to": after.state.value, "attempt": after.attempt}
    return NewEvent(kind="state", payload=payload if after.spec.adopted is None else {**payload, "adopted": True})


def outcome_event(job: Job) -> NewEvent:
    assert job.outcome is not None
    assert job.reason is not None
    return NewEvent(
        kind="outcome",
        payload={"outcome": job.outcome.value, "reason": job.reason.value, "explanation": job.explanation},
    )
