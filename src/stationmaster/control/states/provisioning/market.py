"""What can be rented for a job now: within what the user agreed to, the account's credit, and the limit of machines."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from stationmaster.control.flow.world import Visit, World
from stationmaster.control.machine.step_secrets import sendable_secrets
from stationmaster.errors import DeliveryBusy, SecretRefused
from stationmaster.estimate import is_as_fast, most_per_hour
from stationmaster.model import AdoptedTraining, Job, JobSpec, Label, Offer, Quote, Rental, Requirements
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.offers import LeftOut, NoOffer, Ranking, why_none
from stationmaster.providers.base import HasPlaces, KnowsMoney, Provider
from stationmaster.providers.no_offer import why_no_offer
from stationmaster.recipes.schema import Recipe


@dataclass(frozen=True, slots=True, kw_only=True)
class Market:
    """What could be rented now."""

    asked_at: float  # when the create is about to be sent: the search may take long
    offers: tuple[Offer, ...] = ()  # within what the user agreed to
    others: tuple[Offer, ...] = ()  # that would do, but cost more than agreed or are slower
    no_offer: NoOffer | None = None  # why there is no offer, where it is going to be told
    no_credit: str | None = None  # why the provider account's credit is too small
    not_takeable: str | None = None  # why the machine of an adopted training cannot become the job's
    secret_problem: SecretRefused | DeliveryBusy | None = None  # why a secret that the recipe needs cannot be sent
    waits_for: str | None = None  # why it is not this job's turn yet

    def best_offer(self, job: Job) -> Offer | None:
        """The one that was confirmed, else the best that was not refused in this attempt; else the best of all, which
        may be free again.
        """
        refused, confirmed = job.machine.refused_offers, job.spec.quote.offer
        untried = [offer for offer in self.offers if offer.id not in refused] or self.offers
        return next((offer for offer in untried if offer.id == confirmed), next(iter(untried), None))

    def instead_of_confirmed(self, job: Job, offer: Offer) -> str | None:
        """Why another offer than the confirmed one is taken; None if it is that one, or if an event said so before."""
        confirmed, refused = job.spec.quote.offer, job.machine.refused_offers
        if confirmed in (None, offer.id) or job.attempt > 1 or not set(refused) <= {confirmed}:
            return None
        if refused:
            return "was refused by the provider"
        now = next((one for one in self.others if one.id == confirmed), None)
        return "is no longer offered" if now is None else f"now costs {format_dollars(now.price_per_hour, 3)} per hour"

    @property
    def has_no_offer(self) -> bool:
        """Offers were searched, and none is within what the user agreed to."""
        return not self.offers and self.waits_for is None and self.secret_problem is None

    @property
    def next_best(self) -> str | None:
        """The best offer outside what the user agreed to, in words."""
        if not self.others:
            return None
        best = self.others[0]
        return f"{best.gpu or 'a machine without a GPU'} at {format_dollars(best.price_per_hour, 3)} per hour"


async def look_at_market(visit: Visit, rental: Rental, world: World) -> Market:
    job, provider = visit.job, world.provider(rental.provider)
    market = Market(asked_at=visit.now)
    if job.spec.adopted is not None and job.spec.adopted.release:
        return await _adopted_machine(job.spec.adopted, provider, market)
    if (limit := await reached_limit(rental, world)) is not None:
        return replace(market, waits_for=f"{limit} machines are rented, which is the limit (limits.max_rentals)")
    if rental.offer is not None:
        return market
    try:
        await sendable_secrets(job, visit.recipe, world)
    except (SecretRefused, DeliveryBusy) as problem:
        return replace(market, secret_problem=problem)
    want = requirements(job, visit.recipe)
    avoided = want.avoided_machines | await world.avoided.of(provider.name)
    want = replace(want, avoided_machines=avoided)
    if isinstance(provider, HasPlaces) and (reason := await _turn_of_others(job, want, provider, world)):
        return replace(market, waits_for=reason)
    found = await provider.offers(want)
    agreed = within_agreed(found, job.spec)
    others = tuple(offer for offer in found if offer not in agreed)
    no_credit = await credit_problem(job.spec.quote, provider)
    market = replace(market, offers=tuple(agreed), others=others, no_credit=no_credit)
    if agreed or not _is_told(visit, world):
        return market
    none = not_agreed(others, job) if others else await why_no_offer(provider, want)
    return replace(market, no_offer=none)


def _is_told(visit: Visit, world: World) -> bool:
    """Whether this visit tells why there is no offer: the first and the last do. A reason may cost another search."""
    job = visit.job
    return job.setbacks.failures == 0 or visit.now - job.state_since > world.policy.limits.ready


async def _turn_of_others(job: Job, want: Requirements, provider: HasPlaces, world: World) -> str | None:
    """Who uses every place that would fit, or was earlier to ask for one; None if it is this job's turn.

    Jobs that need no GPU do not count, nor do those that could not get a machine for another reason.
    """
    reason = await provider.waiting_reason(want)
    if reason is not None or not want.gpus:
        return reason
    earlier = await world.ask_store(world.store.jobs.without_machine_before, job)
    first = next((each for each in earlier if each.spec.quote.gpu and not each.setbacks.failures), None)
    return None if first is None else f"job {first.id} was submitted earlier"


async def _adopted_machine(training: AdoptedTraining, provider: Provider, market: Market) -> Market:
    """The machine on which the training runs, as the only offer: it gets the job's label instead of being rented."""
    assert training.instance is not None, "only a rented machine is released"
    machine = await provider.describe(training.instance)
    if machine is None:
        return replace(market, not_takeable=f"instance {training.instance} no longer exists")
    if Label.parse(machine.label) is not None:
        return replace(market, not_takeable=f"instance {training.instance} belongs to another job ({machine.label})")
    offer = Offer(
        id=machine.provider_id,
        provider=provider.name,
        price_per_hour=machine.price_per_hour,
        gpu=machine.gpu,
        gpus=machine.gpus,
        machine_id=machine.machine_id,
    )
    return replace(market, offers=(offer,))


def requirements(job: Job, recipe: Recipe) -> Requirements:
    """What an offer must have to run this job."""
    needs, quote = recipe.needs, job.spec.quote
    return Requirements(
        gpus=needs.gpus,
        vram_gib=max(needs.vram_gib, quote.min_vram_gib or 0.0),
        disk_gib=needs.disk_gib,
        cuda=needs.cuda,
        max_price_per_hour=job.spec.max_price_per_hour,
        hours=quote.hours_expected if quote.reference_hours is None else quote.reference_hours,
        fixed_hours=quote.fixed_hours,
        traffic_gib=quote.traffic_gib,
        image=recipe.image,
        avoided_machines=frozenset(job.spec.machine.avoided_machines),
    )


def within_agreed(offers: Iterable[Offer], spec: JobSpec) -> list[Offer]:
    """Offers within what the user agreed to, in their order: no higher price per hour than was shown, and a GPU that is
    as fast as the one shown. What costs nothing needs no agreement.
    """
    if spec.quote.price_per_hour <= 0:
        return list(offers)
    most = most_per_hour(spec.quote, spec.max_price_per_hour)
    return [offer for offer in offers if offer.price_per_hour <= most and is_as_fast(offer.gpu, spec.quote.gpu)]


def not_agreed(others: Iterable[Offer], job: Job) -> NoOffer:
    """Why each of these offers is outside of what the user agreed to."""
    left_out = tuple(_outside_agreed(offer, job) for offer in others)
    return why_none(Ranking(chosen=(), left_out=left_out))


def _outside_agreed(offer: Offer, job: Job) -> LeftOut:
    most, agreed = most_per_hour(job.spec.quote, job.spec.max_price_per_hour), job.spec.quote.gpu
    remedy = f"cancel the job and run `stationmaster retry {job.id}`, which asks at today's price"
    if not is_as_fast(offer.gpu, agreed):
        why = f"slower than the {agreed} that you agreed to"
        return LeftOut(offer=offer, why=why, kind=why, remedy=remedy)
    why = f"above the {format_dollars(most, 3)} per hour that you agreed to"
    return LeftOut(offer=offer, why=why, kind=why, too_dear=True, remedy=remedy)


def agreed_limits(spec: JobSpec) -> str:
    gpu = f"{spec.quote.gpu} or faster, " if spec.quote.gpu else ""
    return f"{gpu}at most {format_dollars(most_per_hour(spec.quote, spec.max_price_per_hour), 3)} per hour"


async def credit_problem(quote: Quote, provider: Provider) -> str | None:
    """Why the account's credit is too small for the job; None if it suffices, or if the provider has no credit."""
    if not quote.cost_high:
        return None
    return credit_shortage(quote, await known_credit(provider), provider=provider.name)


async def known_credit(provider: Provider) -> MicroDollars | None:
    """The account's credit; None if the provider has no credit."""
    return await provider.credit() if isinstance(provider, KnowsMoney) else None


def credit_shortage(quote: Quote, credit: MicroDollars | None, *, provider: str) -> str | None:
    """Why this credit is too small for the job; None if it suffices."""
    if credit is None or credit >= quote.cost_high:
        return None
    needed, left = format_dollars(quote.cost_high), format_dollars(credit)
    return f"the {provider} account has {left} of credit; the job can cost up to {needed}"


async def reached_limit(rental: Rental, world: World) -> int | None:
    """The number of machines of this provider that may be rented, if other jobs rent or are about to rent that many."""
    most = world.policy.max_rentals.get(rental.provider)
    if most is None:
        return None
    taken = await world.ask_store(world.store.rentals.count_others, rental)
    return most if taken >= most else None
