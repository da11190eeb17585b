"""When an adopted training, or its machine, is left alone although the job ends.

A machine that is to be released was somebody's before the job was made. A job that could not reach it, or failed before
it watched the training, has no right to end it; only the end of the training, a limit, or a person's word destroys it.
"""

from __future__ import annotations

from dataclasses import replace

from stationmaster.control.machine.release import Judgement, Next
from stationmaster.model import Desired, Job, Listing, Reason, RentalState

_NEVER_WATCHED = frozenset(
    {
        Reason.NO_OFFER,
        Reason.ACCESS_REFUSED,
        Reason.NO_PROVIDER_CREDIT,
        Reason.MACHINE_NOT_READY,
        Reason.PREFLIGHT_FAILED,
        Reason.TRANSFER_FAILED,
        Reason.OUT_OF_CREDIT,
        Reason.INTERNAL_ERROR,
    }
)


def is_let_go(job: Job) -> bool:
    """Whether the machine is given back its label and left running. A `stop` before the training was seen is no word
    to end it; a `cancel` is.
    """
    if job.spec.adopted is None or not job.spec.adopted.release or job.desired is Desired.CANCEL:
        return False
    stopped_early = job.reason is Reason.CANCELLED_BY_USER and job.desired is Desired.STOP
    return stopped_early or job.reason in _NEVER_WATCHED


def is_only_left(job: Job) -> bool:
    """Whether a cancelled job leaves its training alone: it is somebody's own, and only a `stop`, or a limit that was
    asked for, ends it.
    """
    training = job.spec.adopted
    return training is not None and not training.release and job.desired is Desired.CANCEL_KEEP


def let_go(judgements: list[Judgement], listing: Listing, *, now: float) -> tuple[list[Judgement], tuple[str, ...]]:
    """The judgements for machines that are left alone, and those that still have the job's label.

    A rental is over once its machine no longer carries the label; destroy is never the next step.
    """
    labels = {machine.provider_id: machine.label for machine in listing.machines}
    after, labelled = [], []
    for each in judgements:
        provider_id = each.rental.provider_id
        if each.next is not Next.DESTROY or provider_id is None:
            after.append(each)
        elif labels.get(provider_id) == each.rental.label:
            labelled.append(provider_id)
            after.append(replace(each, next=Next.LOOK_AGAIN))
        elif provider_id in labels:
            left = replace(each.rental, state=RentalState.GONE, gone_at=now)
            after.append(replace(each, rental=left, next=Next.NOTHING))
        else:
            after.append(replace(each, next=Next.LOOK_AGAIN))  # the listing lacks it: that is not yet gone
    return after, tuple(labelled)
