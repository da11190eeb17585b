"""Who pays for an attempt, by the reason of its end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from stationmaster.lifecycle import REASONS, Payer
from stationmaster.model import CostLine, Quote, Reason, Rental
from stationmaster.money import ZERO, MicroDollars, rounded_up
from stationmaster.settings import BillingSettings


def charge(reason: Reason, *, held: MicroDollars, actual: MicroDollars, billing: BillingSettings) -> MicroDollars:
    """What of the hold an attempt is charged that ended for `reason` and cost `actual`; never more than was held.

    Nothing where no machine was used or where it was our fault; what it cost otherwise, and at least the share that
    is not given back where the person gave it up.
    """
    if actual <= 0 or REASONS[reason].pays is Payer.NONE:
        return ZERO
    least = 0
    if REASONS[reason].pays is Payer.CANCELLER:
        least = held - int(held * Decimal(str(billing.returned_when_cancelled)))
    return MicroDollars(min(held, rounded_up(max(actual, least), billing.shown_in.quantum)))


def cost_of_attempt(attempt: int, lines: Iterable[CostLine], rentals: Iterable[Rental]) -> MicroDollars:
    """What the attempt's own machine cost; a surplus machine was nobody's wish and is nobody's charge."""
    own = {rental.label for rental in rentals if rental.attempt == attempt and not rental.surplus}
    return MicroDollars(sum(line.amount for line in lines if line.rental_label in own))


def least_hold(quote: Quote, billing: BillingSettings) -> MicroDollars:
    """The credits that must be there before anything is rented: what the job may well come to cost."""
    return rounded_up(quote.cost_high, billing.shown_in.quantum)
