"""Whether a job can be paid for, said before it is submitted and not by a job that fails in a minute."""

from __future__ import annotations

from stationmaster.control.billing.charges import least_hold
from stationmaster.control.flow.policy import Policy
from stationmaster.errors import OutOfCredit, UserError
from stationmaster.model import SINGLE_USER, Quote
from stationmaster.money import format_dollars
from stationmaster.store.store import Store


def purse_notes(store: Store, quote: Quote, owner: str | None, policy: Policy) -> tuple[str, ...]:
    """What to tell beside the price. Raises OutOfCredit, or UserError for a job that no day has room for."""
    user = owner or SINGLE_USER
    if policy.billing is not None and quote.cost_high:
        show, needed = policy.billing.unit.show, least_hold(quote, policy.billing)
        account = store.ledger.account(user)
        if account.balance < needed:
            raise OutOfCredit(
                f"the job may cost {show(needed)}, {user} has {show(account.balance)} of credits",
                hint="train fewer --steps, wait for running jobs to end, or ask the operator for credits",
            )
    return _cap_notes(store, quote, user, policy)


def _cap_notes(store: Store, quote: Quote, user: str, policy: Policy) -> tuple[str, ...]:
    cap = policy.daily_cap
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
