"""How an attempt is paid for: room below the daily limit and a hold when it starts, a settlement when it ends. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from stationmaster.control.billing.charges import charge, cost_of_attempt, least_hold
from stationmaster.control.flow.policy import Policy
from stationmaster.control.flow.step import go_on, outcome_event, state_event, wait
from stationmaster.lifecycle import Move, concluded, moved
from stationmaster.model import SINGLE_USER, Alert, CostLine, Job, Reason, Rental, State
from stationmaster.model.copying import changed
from stationmaster.money import MicroDollars, format_dollars, rounded_up
from stationmaster.settings import BillingSettings
from stationmaster.store.writes import CreditHold, DailyCapCheck, NewEvent, Settlement, Write

DAILY_CAP = "daily_cap"
_ROOM_LOOK_SECONDS = 60.0


def payer(job: Job) -> str:
    """The user whose credits and daily limit a job counts against."""
    return job.spec.owner or SINGLE_USER


def with_claim(write: Write, job: Job, policy: Policy, *, now: float) -> Write:
    """The claim of a queued job, with its room below the daily limit and its hold, if there are such."""
    parts: list[CreditHold | Settlement | DailyCapCheck] = []
    if policy.limits.daily_spend and job.spec.quote.cost_expected:
        parts.append(
            DailyCapCheck(
                user=payer(job),
                job_id=job.id,
                need=job.spec.quote.cost_expected,
                cap=policy.limits.daily_spend,
                otherwise=_waiting_for_room(job, policy),
            )
        )
        write = changed(write, cleared_alerts=(*write.cleared_alerts, DAILY_CAP))
    if policy.billing.enabled and job.spec.quote.cost_high:
        parts.append(_hold(write.job, policy.billing, otherwise=_ended_in_the_queue(job, policy.billing, now=now)))
    return changed(write, ledger=(*write.ledger, *parts))


def with_settlement(
    write: Write, job: Job, *, lines: Iterable[CostLine], rentals: Iterable[Rental], policy: Policy, now: float
) -> Write:
    """The end of `job`'s attempt with the settlement of its hold, and with the hold of the next attempt, if any."""
    held = job.funding.hold
    if held is None:
        return write
    billing = policy.billing  # what was held is settled even if billing has been disabled since
    reason = job.ending.further or write.job.reason
    assert reason is not None, "an attempt is over for a reason"
    actual = cost_of_attempt(job.attempt, [*lines], rentals)
    charged = charge(reason, held=held, actual=actual, billing=billing)
    settlement = Settlement(job_id=job.id, attempt=job.attempt, charge=charged, note=reason.value)
    event = _settled_event(job, billing, held=held, charged=charged, actual=actual)
    settled = changed(write, events=(event, *write.events), ledger=(settlement,))
    if write.job.state is State.ENDED:
        return settled
    otherwise = _ended_for_want_of_credit(settled, job, billing, now=now)
    return changed(settled, ledger=(settlement, _hold(write.job, billing, otherwise=otherwise)))


def _hold(job: Job, billing: BillingSettings, *, otherwise: Write) -> CreditHold:
    least = least_hold(job.spec.quote, billing)
    most = rounded_up(max(job.spec.max_spend, least), billing.shown_in.quantum)
    return CreditHold(user=payer(job), job_id=job.id, attempt=job.attempt, least=least, most=most, otherwise=otherwise)


def _waiting_for_room(job: Job, policy: Policy) -> Write:
    limit = format_dollars(policy.limits.daily_spend)
    message = f"waits in the queue: it would exceed {payer(job)}'s daily limit of {limit}"
    return wait(job, _ROOM_LOOK_SECONDS, alerts=(Alert(kind=DAILY_CAP, job_id=job.id, message=message),))


def _ended_in_the_queue(job: Job, billing: BillingSettings, *, now: float) -> Write:
    ended = moved(_short_of_credit(job, billing), Move.GIVE_UP, now=now)
    return Write(job=ended, due_in=None, events=(outcome_event(ended), state_event(job, ended)))


def _ended_for_want_of_credit(settled: Write, job: Job, billing: BillingSettings, *, now: float) -> Write:
    """Instead of another attempt: the same facts, and the end."""
    short = _short_of_credit(job, billing)
    events = [event for event in settled.events if event.kind != "state"]
    ended = go_on(short, Move.ALL_GONE, now=now, events=(*events, outcome_event(short)))
    return changed(settled, job=ended.job, events=ended.events, due_in=None)


def _short_of_credit(job: Job, billing: BillingSettings) -> Job:
    needed = billing.shown_in.show(least_hold(job.spec.quote, billing))
    explanation = f"attempt {job.attempt + 1} needs {needed} of credits, but {payer(job)} has less"
    return concluded(job, Reason.OUT_OF_CREDIT, explanation=explanation)


def _settled_event(job: Job, billing: BillingSettings, *, held: int, charged: int, actual: int) -> NewEvent:
    show = billing.shown_in.show
    text = f"charged {show(charged)} of {show(held)}, refunded {show(held - charged)}"
    if actual > held:
        text = f"{text}; the machine cost {format_dollars(MicroDollars(actual))}, the difference is not charged"
    payload = {"attempt": job.attempt, "held": held, "charged": charged, "returned": held - charged, "said": text}
    return NewEvent(kind="settled", payload=payload)
