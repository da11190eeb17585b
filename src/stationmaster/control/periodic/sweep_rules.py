"""What the sweep may do to a machine: destroy what is not needed, stop what no worker handles. One table of rules.

The sweep never destroys a machine whose model is not safe before the job's limit and `sweep.abandon_after` have passed:
it stops it, which ends the GPU's bill and keeps the disk, and leaves it for a worker to start, download from and
destroy.
"""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.control.flow.policy import Policy
from stationmaster.control.machine.closing_time import closing_is_over, last_counted
from stationmaster.control.periodic.sweep_report import Act, Verdict
from stationmaster.model import Job, Label, Machine, MachineStatus, Rental, RentalState, State


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A machine as the provider lists it, with what the store knows of it."""

    machine: Machine
    installation: str
    rental: Rental | None = None
    job: Job | None = None
    known_since: float | None = None  # when a sweep first raised an alert about it


def judge_machine(subject: Subject, *, now: float, policy: Policy) -> Verdict:
    """What the sweep may do to one machine: the first rule that matches."""
    label = Label.parse(subject.machine.label)
    if label is None:
        return Verdict(act=Act.LEAVE, why="not one of Stationmaster's")
    if label.installation != subject.installation:
        return Verdict(act=Act.LEAVE, why=f"belongs to installation {label.installation}")
    if subject.rental is None:
        return _without_rental(subject, now=now, policy=policy)
    if subject.rental.surplus:
        return Verdict(act=Act.DESTROY, why="surplus: created by a request whose answer was lost")
    if subject.job is None:
        return Verdict(act=Act.DESTROY, why="its job is unknown")
    if subject.job.state is State.ENDED:
        return Verdict(act=Act.DESTROY, why=f"its job ended {subject.job.outcome}")
    if subject.rental.state is RentalState.RELEASING and _is_superseded(subject.rental, subject.job):
        return Verdict(act=Act.DESTROY, why="from an earlier attempt")
    return _of_live_job(subject.machine, subject.rental, subject.job, now=now, policy=policy)


def _without_rental(subject: Subject, *, now: float, policy: Policy) -> Verdict:
    since = subject.known_since
    if since is not None and now - since >= policy.sweep.grace:
        return Verdict(act=Act.DESTROY, why="no rental names it")
    return Verdict(act=Act.ALERT, why="no rental names it yet")


def _is_superseded(rental: Rental, job: Job) -> bool:
    return rental.attempt < job.attempt


def _of_live_job(machine: Machine, rental: Rental, job: Job, *, now: float, policy: Policy) -> Verdict:
    late = job.deadline_at is not None and now >= job.deadline_at
    if late and not _is_dispensable(rental, job) and _is_being_ended(job, now=now, policy=policy):
        return Verdict(act=Act.LEAVE, why="its job's limit has passed, and a worker is ending it")
    # A training that cannot be seen may go on all the same: unknown is not stuck, and its hard limit still holds.
    # Of a training that was started by hand nobody knows what its progress looks like.
    is_ours = job.spec.adopted is None
    stuck = is_ours and job.unreachable_since is None and now - last_sign(job, now=now) >= policy.sweep.stuck
    over_cap = job.deadline_at is None and rental.held_at is not None and now - rental.held_at >= policy.sweep.cap
    if not (late or stuck or over_cap):
        return Verdict(act=Act.LEAVE, why=f"in use: its job is {job.state}")
    why = "its job's limit has passed" if late else "no progress for too long" if stuck else "runs above the cap"
    if _is_dispensable(rental, job):
        return Verdict(act=Act.DESTROY, why=f"{why}, and nothing on it is needed")
    if machine.status is not MachineStatus.STOPPED:
        return Verdict(act=Act.STOP, why=f"{why}; its model is not safe yet, so its disk is kept")
    is_old = rental.stopped_at is not None and now - rental.stopped_at >= policy.sweep.abandon_after
    if is_old and (late or over_cap):
        return Verdict(act=Act.DESTROY, why="stopped for too long without a download of its model; the model is lost")
    return Verdict(act=Act.ALERT, why=f"{why}; stopped, its disk bills, its model waits for a worker")


def _is_being_ended(job: Job, *, now: float, policy: Policy) -> bool:
    """Whether a worker visits the job and is within the time that it gets past the limit."""
    assert job.deadline_at is not None
    held = _is_held(job, now=now)
    awaited = job.due_at is not None and now - job.due_at < policy.sweep.grace
    counted = max(job.deadline_at, last_counted(job) or 0.0)
    out_of_time = closing_is_over(job, policy.bound_seconds) or now - counted >= policy.bound_seconds
    return (held or awaited) and not out_of_time


def _is_held(job: Job, *, now: float) -> bool:
    """Whether a worker holds the job's lease at this moment."""
    return job.lease_until is not None and job.lease_until > now


def last_sign(job: Job, *, now: float) -> float:
    """When the job last moved: a new state or a new step, or now while a worker downloads its model."""
    if _is_held(job, now=now) and job.state in (State.FETCHING_RESULTS, State.FINALIZING):
        return now
    return max(job.state_since, job.progress.at or 0.0)


def _is_dispensable(rental: Rental, job: Job) -> bool:
    """Whether nothing would be lost: no step has started yet, or the attempt's model is safe."""
    before_steps = job.state in (State.QUEUED, State.PROVISIONING, State.TRANSFERRING_DATA)
    return before_steps or job.model.attempt == rental.attempt
