"""The table of a job's moves, and the table of what each reason means and leads to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from stationmaster.durations import format_duration
from stationmaster.errors import IllegalMove
from stationmaster.model import Job, Outcome, Progress, Reason, State
from stationmaster.model.copying import changed


class Move(StrEnum):
    """What makes a job change its state."""

    CLAIMED = "CLAIMED"  # a worker took it and opened an attempt
    REACHABLE = "REACHABLE"  # login works, pre-flight passed
    DATA_VERIFIED = "DATA_VERIFIED"  # the dataset's hash was checked on the machine
    EXITED = "EXITED"  # the training is over, finished or stopped
    MODEL_SAFE = "MODEL_SAFE"  # verified outside the machine, or there is none
    PUBLISHED = "PUBLISHED"  # everything wanted was published
    GIVE_UP = "GIVE_UP"  # this attempt cannot succeed, or the user cancelled
    ALL_GONE = "ALL_GONE"  # every rental of the job is confirmed gone
    TRY_AGAIN = "TRY_AGAIN"  # all gone, and a further attempt is due


MOVES: dict[tuple[State, Move], State] = {
    (State.QUEUED, Move.CLAIMED): State.PROVISIONING,
    (State.PROVISIONING, Move.REACHABLE): State.TRANSFERRING_DATA,
    (State.TRANSFERRING_DATA, Move.DATA_VERIFIED): State.EXECUTING,
    (State.EXECUTING, Move.EXITED): State.FETCHING_RESULTS,
    (State.FETCHING_RESULTS, Move.MODEL_SAFE): State.FINALIZING,
    (State.FINALIZING, Move.PUBLISHED): State.RELEASING,
    (State.RELEASING, Move.ALL_GONE): State.ENDED,
    (State.RELEASING, Move.TRY_AGAIN): State.PROVISIONING,
    (State.QUEUED, Move.GIVE_UP): State.ENDED,
} | {
    (state, Move.GIVE_UP): State.RELEASING
    for state in (
        State.PROVISIONING,
        State.TRANSFERRING_DATA,
        State.EXECUTING,
        State.FETCHING_RESULTS,
        State.FINALIZING,
    )
}

TERMINAL = frozenset(state for state in State if all(source is not state for source, _ in MOVES))
"""States that are never left; derived from the moves."""


class Payer(StrEnum):
    """Who pays for an attempt that ended for a reason."""

    USER = "USER"
    CANCELLER = "CANCELLER"  # the user cancelled: what it cost, and at least a tenth of the hold
    NONE = "NONE"  # our fault or no GPU used: the whole hold is refunded


@dataclass(frozen=True, slots=True)
class Consequence:
    outcome: Outcome
    may_try_again: bool
    pays: Payer


REASONS: dict[Reason, Consequence] = {
    Reason.FINISHED: Consequence(Outcome.COMPLETED, False, Payer.USER),
    Reason.STOPPED_BY_USER: Consequence(Outcome.INCOMPLETE, False, Payer.USER),
    Reason.CANCELLED_BY_USER: Consequence(Outcome.CANCELLED, False, Payer.CANCELLER),
    Reason.STALLED: Consequence(Outcome.INCOMPLETE, False, Payer.USER),
    Reason.ANOMALY: Consequence(Outcome.INCOMPLETE, False, Payer.USER),
    Reason.HARD_LIMIT: Consequence(Outcome.INCOMPLETE, False, Payer.USER),
    Reason.STEP_FAILED: Consequence(Outcome.FAILED, False, Payer.USER),
    Reason.NO_MODEL: Consequence(Outcome.FAILED, False, Payer.USER),
    Reason.NO_OFFER: Consequence(Outcome.FAILED_PROVISIONING, True, Payer.NONE),
    Reason.ACCESS_REFUSED: Consequence(Outcome.FAILED_PROVISIONING, False, Payer.NONE),
    Reason.NO_PROVIDER_CREDIT: Consequence(Outcome.FAILED_PROVISIONING, False, Payer.NONE),
    Reason.MACHINE_NOT_READY: Consequence(Outcome.FAILED_PROVISIONING, True, Payer.NONE),
    Reason.PREFLIGHT_FAILED: Consequence(Outcome.FAILED_PROVISIONING, True, Payer.NONE),
    Reason.TRANSFER_FAILED: Consequence(Outcome.FAILED, True, Payer.NONE),
    Reason.MACHINE_LOST: Consequence(Outcome.FAILED, True, Payer.NONE),
    Reason.MACHINE_STOPPED: Consequence(Outcome.INCOMPLETE, False, Payer.USER),
    Reason.FETCH_FAILED: Consequence(Outcome.FAILED, False, Payer.NONE),
    Reason.MACHINE_FAULT: Consequence(Outcome.FAILED, True, Payer.NONE),
    Reason.OUTBID: Consequence(Outcome.FAILED, True, Payer.USER),
    Reason.OUT_OF_CREDIT: Consequence(Outcome.FAILED, False, Payer.USER),
    Reason.INTERNAL_ERROR: Consequence(Outcome.FAILED, False, Payer.NONE),
}

MEANINGS: dict[Reason, str] = {
    Reason.FINISHED: "The training finished and left a model.",
    Reason.STOPPED_BY_USER: "A user ran `stop`; the best checkpoint is kept.",
    Reason.CANCELLED_BY_USER: "A user ran `cancel`, or `stop` before the training began.",
    Reason.STALLED: "The training made no progress and was stopped; the best checkpoint is kept.",
    Reason.ANOMALY: "A rule found a harmful anomaly, such as a NaN loss, and the training was stopped.",
    Reason.HARD_LIMIT: "The job reached its time or cost limit; the best checkpoint is kept.",
    Reason.STEP_FAILED: "A step of the recipe failed in every try; see its log.",
    Reason.NO_MODEL: "The training finished but left no model.",
    Reason.NO_OFFER: "The provider had no matching offer.",
    Reason.ACCESS_REFUSED: "A key or token was rejected.",
    Reason.NO_PROVIDER_CREDIT: "The provider account has too little credit for the job.",
    Reason.MACHINE_NOT_READY: "The machine failed, vanished, or did not accept a login in time.",
    Reason.PREFLIGHT_FAILED: "The machine answers but lacks what the job needs.",
    Reason.TRANSFER_FAILED: "The dataset could not be transferred to the machine intact.",
    Reason.MACHINE_LOST: "The provider reports that the machine is gone.",
    Reason.MACHINE_STOPPED: "The machine was stopped and could not be restarted in time.",
    Reason.FETCH_FAILED: "The training ended, but its model could not be downloaded from the machine.",
    Reason.MACHINE_FAULT: "The machine's answers or files were false; it is avoided from now on.",
    Reason.OUTBID: "Another customer outbid you for an interruptible machine.",
    Reason.OUT_OF_CREDIT: "There are not enough credits for another attempt.",
    Reason.INTERNAL_ERROR: "A bug in Stationmaster.",
}
"""Each reason as a sentence for people."""

MAX_FAILED_BEFORE_LOGIN = 3
MAX_FAILED_AFTER_LOGIN = 3


def advance(state: State, move: Move) -> State:
    """The state that `move` leads to; raises IllegalMove when the table has no such move."""
    try:
        return MOVES[state, move]
    except KeyError:
        raise IllegalMove(f"a job in {state} cannot take {move}") from None


def moved(job: Job, move: Move, *, now: float) -> Job:
    """The job after `move`, in its new state since `now`."""
    return changed(job, state=advance(job.state, move), state_since=now)


def concluded(job: Job, reason: Reason, *, explanation: str | None = None) -> Job:
    """The job with its outcome set; a job that has an outcome keeps it."""
    if job.outcome is not None:
        return job
    return changed(job, outcome=REASONS[reason].outcome, reason=reason, explanation=explanation)


CONTINUED = frozenset({Reason.OUTBID, Reason.MACHINE_FAULT})
"""Reasons after which the results are downloaded, and then a further attempt continues the training if it can."""


def may_try_again(job: Job, reason: Reason) -> bool:
    """Whether a further attempt is allowed after this one failed for `reason` (not yet counted in `job`)."""
    if not REASONS[reason].may_try_again or job.spec.adopted is not None:  # a training of others is not started again
        return False
    if REASONS[reason].outcome is Outcome.FAILED_PROVISIONING:
        return job.failed_before_login + 1 < MAX_FAILED_BEFORE_LOGIN
    return job.failed_after_login + 1 < MAX_FAILED_AFTER_LOGIN


def counted(job: Job, reason: Reason) -> Job:
    """The job with the failed attempt counted; failures before and after login are counted separately."""
    if REASONS[reason].outcome is Outcome.FAILED_PROVISIONING:
        return changed(job, failed_before_login=job.failed_before_login + 1)
    return changed(job, failed_after_login=job.failed_after_login + 1)


PARKED = "parked"  # the alert about it


def is_parked(job: Job) -> bool:
    """Whether its machine is stopped, with the model still on its disk, until a person decides."""
    return job.ending.parked is not None


def shown(job: Job, *, now: float) -> str:
    """What faces show: the outcome if there is one, NEEDS_RECOVERY without worker or machine, else the state."""
    if job.outcome is not None:
        return job.outcome.value
    lapsed = job.lease_until is not None and job.lease_until < now
    if job.state not in TERMINAL and (lapsed or job.unreachable_since is not None):
        return "NEEDS_RECOVERY"
    return job.state.value


STAGES: tuple[str, ...] = (
    "queued", "claimed", "provisioned", "dataset synced", "training",
    "model uploaded", "samples", "registered", "instance terminated", "completed",
)  # fmt: skip
_QUEUED, _CLAIMED, _PROVISIONED, _SYNCED, _TRAINING, _UPLOADED, _SAMPLES, _REGISTERED, _TERMINATED, _COMPLETED = STAGES

_STAGE_BEFORE_TRAINING = {
    State.QUEUED: _QUEUED,
    State.PROVISIONING: _CLAIMED,
    State.TRANSFERRING_DATA: _PROVISIONED,
}


def stage(job: Job, *, is_released: bool = False) -> str:
    """The last of the ten stages that the job has reached; `is_released`: all its machines are gone.

    An unknown state of newer code counts as training.
    """
    if job.state is State.EXECUTING:
        return _TRAINING if job.watching.trained else _SYNCED
    if job.state in (State.FETCHING_RESULTS, State.FINALIZING, State.RELEASING):
        return _TERMINATED if is_released and job.state is State.RELEASING else _stage_after_training(job)
    if job.state is State.ENDED:
        return _last_stage(job)
    return _STAGE_BEFORE_TRAINING.get(job.state, _TRAINING)


def _stage_after_training(job: Job) -> str:
    """How far the results are; an attempt that failed before there were any stays where it was."""
    delivery = job.model.delivery
    if delivery is not None and delivery.attempt == job.attempt and delivery.is_over:
        return _REGISTERED
    if job.state is State.FINALIZING:
        return _SAMPLES
    if job.has_model_of_attempt:
        return _UPLOADED
    if job.watching.trained or job.state is State.FETCHING_RESULTS:
        return _TRAINING
    return _CLAIMED if job.machine.label is None else _PROVISIONED


def _last_stage(job: Job) -> str:
    if job.outcome is Outcome.COMPLETED:
        return _COMPLETED
    if job.attempt == 0:
        return _QUEUED
    return _CLAIMED if job.machine.label is None else _TERMINATED


_USUAL_SILENCE_SECONDS = 90.0  # a training that is not being watched is looked at every minute
_USUAL_SILENCE_STEPS = 20
_LASTING_PHASES = frozenset({"loading", "caching", "sampling", "evaluating", "saving"})


def progress_shown(job: Job) -> Progress:
    """The progress as faces show it: only a training that runs has a speed, an ETA and a phase."""
    if job.state is State.EXECUTING and job.outcome is None:
        return job.progress
    return changed(
        job.progress, steps_per_second=None, eta_seconds=None, phase=None, phase_since=None, active_step=None
    )


def seconds_without_step(progress: Progress, *, now: float) -> float | None:
    """How long a training has made no step, once that is longer than usual; then its last speed and ETA mean nothing.

    Only for faces: whether it has stalled is decided by its own pace and signs, later.
    """
    if progress.phase not in (None, "training") or not progress.steps_per_second or progress.at is None:
        return None
    silent = now - progress.at
    return silent if silent > max(_USUAL_SILENCE_SECONDS, _USUAL_SILENCE_STEPS / progress.steps_per_second) else None


def activity(progress: Progress, *, now: float) -> str | None:
    """What runs instead of training steps, and for how long: `sampling for 2m`, `step install`, `no step for 3m`; None:
    the steps go on.
    """
    phase, since = progress.phase, progress.phase_since
    if (silent := seconds_without_step(progress, now=now)) is not None:
        return f"no step for {format_duration(silent)}"
    if phase in _LASTING_PHASES and since is not None:
        return f"{phase} for {format_duration(max(0.0, now - since))}"
    if phase not in (None, "training"):
        return phase
    return f"step {progress.active_step}" if progress.step is None and progress.active_step else None
