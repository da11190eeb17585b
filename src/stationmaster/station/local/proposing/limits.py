"""A job's own limits of time and money, written when it is submitted, and what a person should hear of them first."""

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
"""How much more than the high figure of its quote a job may take and cost, unless somebody says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    max_seconds: float
    max_spend: MicroDollars  # 0: none, for what costs nothing
    spend_note: str | None = None  # why the money limit is not what it usually is
    notes: tuple[str, ...] = ()


def limits_of(
    quote: Quote, settings: Settings, *, max_hours: float | None = None, max_spend: MicroDollars | None = None
) -> Limits:
    """The limits that were given, else those that follow from the quote. Raises ConfigInvalid."""
    if max_hours is not None and max_hours <= 0:
        raise ConfigInvalid("--max-hours must be above zero")
    seconds = _usual_seconds(quote, settings) if max_hours is None else max_hours * 3600
    spend = _usual_spend(quote, settings) if max_spend is None else max_spend
    twice = MicroDollars(quote.cost_high * _FACTOR)
    is_raised = max_spend is None and spend > twice
    return Limits(
        max_seconds=seconds,
        max_spend=spend,
        spend_note=f"the smallest limit; twice the high estimate would be {format_dollars(twice)}"
        if is_raised
        else None,
        notes=(*_short_limits(quote, seconds, spend), *over_cap(quote, seconds, settings)),
    )


def limits_again(spec: JobSpec, quote: Quote, settings: Settings) -> Limits:
    """The limits of a job like `spec` at another quote: what was given stays, what followed from the quote follows."""
    given_hours = spec.max_seconds / 3600 if spec.max_seconds != _usual_seconds(spec.quote, settings) else None
    given_spend = spec.max_spend if spec.max_spend != _usual_spend(spec.quote, settings) else None
    return limits_of(quote, settings, max_hours=given_hours, max_spend=given_spend)


def over_cap(quote: Quote, max_seconds: float, settings: Settings) -> Iterator[str]:
    """A word about trainings that take longer than a machine usually may."""
    if quote.hours_expected * 3600 > settings.sweep.cap:
        expected, cap = format_duration(quote.hours_expected * 3600), format_duration(settings.sweep.cap)
        yield (
            f"warning: the estimate of {expected} is above the cap of {cap} for a machine without a job (sweep.cap); "
            f"this job's own limit is {format_duration(max_seconds)}"
        )


def _usual_seconds(quote: Quote, settings: Settings) -> float:
    return max(settings.limits.min_hours, _FACTOR * quote.hours_high) * 3600


def _usual_spend(quote: Quote, settings: Settings) -> MicroDollars:
    """Twice the high figure; a few cents more or less must not end a short job whose machine was slow to boot."""
    if not quote.cost_high:
        return ZERO
    return MicroDollars(max(quote.cost_high * _FACTOR, settings.limits.min_spend))


def _short_limits(quote: Quote, max_seconds: float, max_spend: MicroDollars) -> Iterator[str]:
    """What a person should hear before a training is begun that will not be let to its end."""
    ended = "the training would be ended before it is done"
    if max_seconds < quote.hours_expected * 3600:
        yield f"the time limit is below the estimate of {format_duration(quote.hours_expected * 3600)}: {ended}"
    if quote.cost_expected and max_spend < quote.cost_expected:
        yield f"the money limit is below the estimate of {format_dollars(quote.cost_expected)}: {ended}"


def budget_notes(store: Store, quote: Quote, owner: str | None, policy: Policy) -> tuple[str, ...]:
    """What to tell beside the price. Raises OutOfCredit, or UserError for a job that no day has room for."""
    user = owner or SINGLE_USER
    if policy.billing.enabled and quote.cost_high:
        show, needed = policy.billing.shown_in.show, least_hold(quote, policy.billing)
        account = store.ledger.account(user)
        if account.balance < needed:
            raise OutOfCredit(
                f"the job may cost {show(needed)}, {user} has {show(account.balance)} of credits",
                hint="train fewer --steps, wait for running jobs to end, or ask the operator for credits",
            )
    return _cap_notes(store, quote, user, policy)


def _cap_notes(store: Store, quote: Quote, user: str, policy: Policy) -> tuple[str, ...]:
    cap = policy.limits.daily_spend
    if not cap or not quote.cost_expected:
        return ()
    if quote.cost_expected > cap:
        raise UserError(
            f"the job is expected to cost {format_dollars(quote.cost_expected)}, and a day's jobs may cost "
            f"{format_dollars(cap)}",
            hint="train fewer --steps, or raise limits.daily_spend",
        )
    used = store.ledger.committed_today(user)
    if used + quote.cost_expected <= cap:
        return ()
    return (
        f"{format_dollars(used)} of the day's {format_dollars(cap)} are used: the job waits in the queue until then",
    )
