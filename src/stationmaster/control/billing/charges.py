"""Who pays for an attempt, by the reason of its end. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from stationmaster.lifecycle import REASONS, Payer
from stationmaster.model import CostLine, Quote, Reason, Rental
from stationmaster.money import ZERO, MicroDollars, rounded_up
from stationmaster.settings import BillingSettings


def charge(reason: Reason, *, held: MicroDollars, actual: MicroDollars, billing: BillingSettings) -> MicroDollars:
    """The charge for an attempt that ended for `reason` and cost `actual`; never more than was held.

    Zero if no machine was used or the fault was ours; otherwise its cost. For an attempt that the user cancelled it is
    at least the share that is not refunded.
    """
    if actual <= 0 or REASONS[reason].pays is Payer.NONE:
        return ZERO
    least = 0
    if REASONS[reason].pays is Payer.CANCELLER:
        least = held - int(held * Decimal(str(billing.returned_when_cancelled)))
    return MicroDollars(min(held, rounded_up(max(actual, least), billing.shown_in.quantum)))


def cost_of_attempt(attempt: int, lines: Iterable[CostLine], rentals: Iterable[Rental]) -> MicroDollars:
    """The cost of the attempt's own machine. Surplus machines are not the user's doing and are not charged."""
    own = {rental.label for rental in rentals if rental.attempt == attempt and not rental.surplus}
    return MicroDollars(sum(line.amount for line in lines if line.rental_label in own))


def least_hold(quote: Quote, billing: BillingSettings) -> MicroDollars:
    """The credits needed before anything is rented: the high end of the quote."""
    return rounded_up(quote.cost_high, billing.shown_in.quantum)
