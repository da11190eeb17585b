"""Adopts a rented machine: the newest with the label is held, every other is surplus and only ever destroyed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stationmaster.control.flow.step import wait
from stationmaster.control.flow.world import World
from stationmaster.errors import ProviderError
from stationmaster.event_log import get_logger
from stationmaster.model import CostLine, Job, Listing, Machine, Rental, RentalState
from stationmaster.model.copying import changed
from stationmaster.money import ZERO, MicroDollars, cost
from stationmaster.store.writes import NewEvent, Write

log = get_logger("stationmaster.adoption")


@dataclass(frozen=True, slots=True, kw_only=True)
class Discard:
    """These machines are surplus and recorded as such: no job may use them."""

    provider_ids: tuple[str, ...]


def adopted(job: Job, rental: Rental, machines: list[Machine], listing: Listing, *, now: float) -> Write:
    """The newest machine becomes the rental's; any other with the same label is surplus and is destroyed."""
    newest, *others = machines
    held = changed(
        rental,
        state=RentalState.HELD,
        provider_id=newest.provider_id,
        held_at=now,
        account=listing.account,
        absent_listings=0,
    )
    surplus = [surplus_rental(held, machine, now=now) for machine in others]
    events = [_held_event(job, held, newest)]
    events += [NewEvent(kind="surplus_found", payload={"provider_id": each.provider_id}) for each in surplus]
    return Write(
        job=_with_deadline(job, held, newest, now=now),
        rentals=(held, *surplus),
        costs=(
            opened_cost(held, newest, now=now),
            *(opened_cost(each, machine, now=now) for each, machine in zip(surplus, others, strict=True)),
        ),
        events=tuple(events),
    )


def _held_event(job: Job, rental: Rental, machine: Machine) -> NewEvent:
    offer = rental.offer
    payload: dict[str, Any] = {
        "label": rental.label,
        "provider": rental.provider,
        "provider_id": rental.provider_id,
        "gpu": None if offer is None else offer.gpus_text,
        "region": None if offer is None else offer.region,
        "price_per_hour_usd": _rate(rental, machine) / 1_000_000,
    }
    if job.spec.adopted is not None:
        payload["adopted"] = True
    return NewEvent(kind="rental_held", payload=payload)


def with_surplus(job: Job, rental: Rental, machines: list[Machine], *, now: float) -> Write:
    """Rows and cost lines for machines that carry the label of a rental that already has its machine."""
    surplus = [surplus_rental(rental, machine, now=now) for machine in machines]
    return Write(
        job=job,
        rentals=tuple(surplus),
        costs=tuple(opened_cost(each, machine, now=now) for each, machine in zip(surplus, machines, strict=True)),
        events=tuple(NewEvent(kind="surplus_found", payload={"provider_id": each.provider_id}) for each in surplus),
    )


async def discard(action: Discard, job: Job, world: World) -> Write:
    """Destroy surplus machines. One that cannot be destroyed keeps its row, for the sweep and the release."""
    for provider_id in action.provider_ids:
        try:
            await world.provider(job.spec.provider).destroy(provider_id)
        except ProviderError as problem:
            log.warning("surplus.not_destroyed", job=job.id, instance=provider_id, problem=str(problem))
    return wait(job, 0.0)


def surplus_rental(rental: Rental, machine: Machine, *, now: float) -> Rental:
    """The row of a machine that a lost answer or a suspended process created; it is only ever destroyed."""
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
    """Costs count from the moment the machine was requested: too much rather than too little."""
    rate = _rate(rental, machine)
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


def _rate(rental: Rental, machine: Machine) -> MicroDollars:
    return machine.price_per_hour or (rental.offer.price_per_hour if rental.offer else ZERO)


def _with_deadline(job: Job, rental: Rental, machine: Machine, *, now: float) -> Job:
    """The hard limit, counted from the first machine on: hours, or what the money buys at this machine's rate.

    Credits that are held for an attempt are another such limit, and each attempt has its own.
    """
    started, rate = rental.create_sent_at or now, _rate(rental, machine)
    if rate <= 0:
        return job if job.deadline_at is not None else changed(job, deadline_at=started + job.spec.max_seconds)
    deadline_at, paid_until = job.deadline_at, job.funding.paid_until
    if deadline_at is None:
        paid_until = started + job.spec.max_spend / rate * 3600 if job.spec.max_spend > 0 else None
        deadline_at = min(_known(started + job.spec.max_seconds, paid_until))
    held, hard = job.funding.hold, job.funding.hard_limit_at
    if held is not None:
        hard = deadline_at if hard is None else hard
        paid_until = min(_known(started + held / rate * 3600, paid_until))
        deadline_at = min(hard, paid_until)
    funding = changed(job.funding, hard_limit_at=hard, rate_per_hour=rate, paid_until=paid_until)
    return changed(job, funding=funding, deadline_at=deadline_at)


def _known(*times: float | None) -> list[float]:
    return [time for time in times if time is not None]
