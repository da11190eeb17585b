"""The limits of a job's time and money, set when it is submitted, and the notes about them that are shown first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from stationmaster.control.billing.charges import least_hold
from stationmaster.control.flow.policy import Policy
from stationmaster.durations import format_duration
from stationmaster.errors import ConfigInvalid, OutOfCredit, UserError
from stationmaster.model import SINGLE_USER, JobSpec, Quote
from stationmaster.money import ZERO, MicroDollars, format_dollars
from stationmaster.settings import Settings
from stationmaster.store.store import Store

_FACTOR = 2
"""By default a job may take and cost this many times the high figure of its quote."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    max_seconds: float
    max_spend: MicroDollars  # 0: none, for what costs nothing
    spend_note: str | None = None  # why the money limit is not the usual one
    notes: tuple[str, ...] = ()


def limits_of(
    quote: Quote, settings: Settings, *, max_hours: float | None = None, max_spend: MicroDollars | None = None
) -> Limits:
    """The given limits, by default those that follow from the quote. Raises ConfigInvalid."""
    if max_hours is not None and max_hours <= 0:
        raise ConfigInvalid("--max-hours must be above zero")
    seconds = _usual_seconds(quote, settings) if max_hours is None else max_hours * 3600
    spend = _usual_spend(quote, settings) if max_spend is None else max_spend
    twice = MicroDollars(quote.cost_high * _FACTOR)
    is_raised = max_spend is None and spend > twice
    return Limits(
        max_seconds=seconds,
        max_spend=spend,
        spend_note=f"the minimum limit; twice the high estimate would be {format_dollars(twice)}"
        if is_raised
        else None,
        notes=(*_short_limits(quote, seconds, spend), *over_cap(quote, seconds, settings)),
    )


def limits_again(
    spec: JobSpec,
    quote: Quote,
    settings: Settings,
    *,
    max_hours: float | None = None,
    max_spend: MicroDollars | None = None,
) -> Limits:
    """The limits of a job like `spec` with a new quote: given limits stay unless there are new ones, the others follow
    from the new quote.
    """
    given_hours = spec.max_seconds / 3600 if spec.max_seconds != _usual_seconds(spec.quote, settings) else None
    given_spend = spec.max_spend if spec.max_spend != _usual_spend(spec.quote, settings) else None
    return limits_of(quote, settings, max_hours=max_hours or given_hours, max_spend=max_spend or given_spend)


def over_cap(quote: Quote, max_seconds: float, settings: Settings) -> Iterator[str]:
    """A warning if the estimate exceeds the cap for machines without a job."""
    if quote.hours_expected * 3600 > settings.sweep.cap:
        expected, cap = format_duration(quote.hours_expected * 3600), format_duration(settings.sweep.cap)
        yield (
            f"warning: the estimate of {expected} is above the cap of {cap} for a machine without a job (sweep.cap); "
            f"this job's own limit is {format_duration(max_seconds)}"
        )


def _usual_seconds(quote: Quote, settings: Settings) -> float:
    return max(settings.limits.min_hours, _FACTOR * quote.hours_high) * 3600


def _usual_spend(quote: Quote, settings: Settings) -> MicroDollars:
    """Twice the high figure or a minimum: a few cents must not stop a short job whose machine was slow to boot."""
    if not quote.cost_high:
        return ZERO
    return MicroDollars(max(quote.cost_high * _FACTOR, settings.limits.min_spend))


def _short_limits(quote: Quote, max_seconds: float, max_spend: MicroDollars) -> Iterator[str]:
    """Warnings about limits that would stop the training before its end."""
    consequence = "the training would be stopped early"
    if max_seconds < quote.hours_expected * 3600:
        yield f"the time limit is below the estimate of {format_duration(quote.hours_expected * 3600)}: {consequence}"
    if quote.cost_expected and max_spend < quote.cost_expected:
        yield f"the money limit is below the estimate of {format_dollars(quote.cost_expected)}: {consequence}"


def budget_notes(store: Store, quote: Quote, owner: str | None, policy: Policy) -> tuple[str, ...]:
    """Notes to show with the price. Raises OutOfCredit, or UserError for a job that exceeds the daily limit."""
    user = owner or SINGLE_USER
    if policy.billing.enabled and quote.cost_high:
        show, needed = policy.billing.shown_in.show, least_hold(quote, policy.billing)
        account = store.ledger.account(user)
        if account.balance < needed:
            raise OutOfCredit(
                f"the job may cost {show(needed)}, but {user} has only {show(account.balance)} of credits",
                hint="train fewer --steps, wait for running jobs to end, or ask the operator for credits",
            )
    return _cap_notes(store, quote, user, policy)


def _cap_notes(store: Store, quote: Quote, user: str, policy: Policy) -> tuple[str, ...]:
    cap = policy.limits.daily_spend
    if not cap or not quote.cost_expected:
        return ()
    if quote.cost_expected > cap:
        raise UserError(
            f"the job is expected to cost {format_dollars(quote.cost_expected)}, above the daily limit of "
            f"{format_dollars(cap)}",
            hint="train fewer --steps, or raise limits.daily_spend",
        )
    used = store.ledger.committed_today(user)
    if used + quote.cost_expected <= cap:
        return ()
    return (
        f"{format_dollars(used)} of the daily {format_dollars(cap)} are used: the job waits in the queue until it fits",
    )
