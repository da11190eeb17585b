"""A machine becomes ours: the newest with the label is held, every other is surplus and only ever destroyed."""

from __future__ import annotations

from dataclasses import replace

from stationmaster.model import CostLine, Job, Listing, Machine, Rental, RentalState
from stationmaster.money import ZERO, cost
from stationmaster.store.writes import Told, Write


def adopted(job: Job, rental: Rental, machines: list[Machine], listing: Listing, *, now: float) -> Write:
    """The newest machine becomes the rental's; any other with the same label is surplus and goes."""
    newest, *others = machines
    held = replace(
        rental,
        state=RentalState.HELD,
        provider_id=newest.provider_id,
        held_at=now,
        account=listing.account,
        absent_listings=0,
    )
    surplus = [surplus_rental(held, machine, now=now) for machine in others]
    told = [Told(kind="rental_held", payload={"label": rental.label, "provider_id": newest.provider_id})]
    told += [Told(kind="surplus_found", payload={"provider_id": each.provider_id}) for each in surplus]
    return Write(
        job=_with_deadline(job, held, newest, now=now),
        rentals=(held, *surplus),
        costs=(opened_cost(held, newest, now=now), *(opened_cost(each, newest, now=now) for each in surplus)),
        events=tuple(told),
    )


def surplus_rental(rental: Rental, machine: Machine, *, now: float) -> Rental:
    """A row of its own for a machine that a lost answer or a sleeping process made; it is only ever destroyed."""
    return Rental(
        label=f"{machine.label}#{machine.provider_id}",
        job_id=rental.job_id,
        attempt=rental.attempt,
        provider=rental.provider,
        account=rental.account,
        provider_id=machine.provider_id,
        state=RentalState.RELEASING,
        offer=rental.offer,
        surplus=True,
        requested_at=now,
        create_sent_at=rental.create_sent_at,
    )


def opened_cost(rental: Rental, machine: Machine, *, now: float) -> CostLine:
    """Billing is counted from the moment the machine was asked for: too much rather than too little."""
    rate = machine.price_per_hour or (rental.offer.price_per_hour if rental.offer else ZERO)
    started = rental.create_sent_at if rental.create_sent_at is not None else now
    return CostLine(
        rental_label=rental.label,
        job_id=rental.job_id,
        kind="gpu",
        rate_per_hour=rate,
        started_at=started,
        ended_at=None,
        amount=cost(rate, max(0.0, now - started)),
        source="estimate",
    )


def _with_deadline(job: Job, rental: Rental, machine: Machine, *, now: float) -> Job:
    """The hard limit counts from the first machine on: hours, or what the money buys at this machine's rate."""
    if job.deadline_at is not None:
        return job
    seconds = job.spec.max_seconds
    if machine.price_per_hour > 0 and job.spec.max_spend > 0:
        seconds = min(seconds, job.spec.max_spend / machine.price_per_hour * 3600)
    return replace(job, deadline_at=(rental.create_sent_at or now) + seconds)
