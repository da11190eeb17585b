"""Machines that can be rented now, and why others are left out."""

from __future__ import annotations

from typing import Any, Self

from pydantic import Field

from stationmaster.model import Offer
from stationmaster.station.offers import LeftOut, LeftOutGroup, NoOffer, RankedOffer, Ranking
from stationmaster.station.wire.document import Document, Usd


class OfferDocument(Document):
    """A machine that can be rented now."""

    id: str
    """The provider's id of the offer."""
    gpu: str | None = Field(examples=["RTX 4090"])
    """Name of its GPU."""
    gpus: int
    """How many GPUs it has."""
    machine_id: str | None
    """The host, which may make several offers."""
    region: str | None = Field(examples=["Sweden, SE"])
    """Where the host is."""
    reliability: float | None
    """The share of time that the host was reachable, by the provider."""
    price_per_hour_usd: Usd
    """Everything included: disk and the traffic that is expected."""
    provider: str = Field(examples=["vastai"])
    """Who offers it."""
    vram_gib: float
    """Memory of one GPU."""
    bid_per_hour_usd: Usd | None = None
    """The bid, if the machine is interruptible."""
    note: str | None = Field(default=None, examples=["22.1 of 24.0 GiB free"])
    """What else is to be known about it now."""

    @classmethod
    def of_offer(cls, offer: Offer) -> Self:
        return cls(**_fields(offer))

    def offer(self) -> Offer:
        return Offer(
            id=self.id,
            provider=self.provider,
            price_per_hour=self.price_per_hour_usd,
            gpu=self.gpu,
            gpus=self.gpus,
            vram_gib=self.vram_gib,
            machine_id=self.machine_id,
            region=self.region,
            reliability=self.reliability,
            bid_per_hour=self.bid_per_hour_usd,
            note=self.note,
        )


class RankedOfferDocument(OfferDocument):
    """A machine that can be rented now, and what the job would take on it."""

    hours: float
    """The job's hours on this machine."""
    job_cost_usd: Usd
    """What the job would cost on it."""

    @classmethod
    def of(cls, ranked: RankedOffer) -> Self:
        return cls(**_fields(ranked.offer), hours=ranked.hours, job_cost_usd=ranked.job_cost)

    def value(self) -> RankedOffer:
        return RankedOffer(offer=self.offer(), hours=self.hours, job_cost=self.job_cost_usd)


class LeftOutDocument(OfferDocument):
    """A machine that is offered and does not fit."""

    why: str = Field(examples=["$0.912 per hour is above the cap of $0.600"])
    """Why it does not fit."""
    kind: str = Field(examples=["above the cap of $0.600 per hour"])
    """The reason, in the words that all machines left out for it share."""
    too_dear: bool = False
    """Its price is the reason; a higher limit allows it."""
    remedy: str = Field(default="", examples=["remove HK from vastai.blocked_regions"])
    """What you can change to allow it; empty if nothing, or if several things are against it."""

    @classmethod
    def of(cls, out: LeftOut) -> Self:
        return cls(**_fields(out.offer), why=out.why, kind=out.kind, too_dear=out.too_dear, remedy=out.remedy)

    def value(self) -> LeftOut:
        return LeftOut(offer=self.offer(), why=self.why, kind=self.kind, too_dear=self.too_dear, remedy=self.remedy)


class LeftOutGroupDocument(Document):
    """Machines that are left out for the same reason."""

    why: str
    """The reason."""
    count: int
    """How many machines."""
    from_price_per_hour_usd: Usd
    """The price of the cheapest of them."""
    too_dear: bool = False
    """Their price is the reason; a higher limit allows them."""

    @classmethod
    def of(cls, group: LeftOutGroup) -> Self:
        return cls(
            why=group.kind,
            count=group.count,
            from_price_per_hour_usd=group.cheapest.price_per_hour,
            too_dear=group.too_dear,
        )


class NoOfferDocument(Document):
    """Why nothing can be rented for the recipe now."""

    reasons: tuple[str, ...] = Field(examples=[("12 × above the cap of $0.300 per hour (from $0.467 per hour)",)])
    """Each requirement that excluded offers, and how many."""
    remedies: tuple[str, ...] = Field(examples=[("submit with --max-price 0.467 or more",)])
    """What would help; each alone is enough."""


class RankingDocument(Document):
    """What can be rented now for a recipe, and what cannot be used."""

    offers: tuple[RankedOfferDocument, ...]
    """Best first: preferred GPUs, then preferred regions, then the lowest cost of the whole job."""
    left_out: tuple[LeftOutDocument, ...]
    """Machines that do not fit."""
    left_out_by_reason: tuple[LeftOutGroupDocument, ...]
    """The most frequent reason first."""
    invalid: int = 0
    """How many further offers were left out because their price or another number is missing or impossible."""
    no_offer: NoOfferDocument | None = None
    """Set if there is no offer."""

    @classmethod
    def of(cls, ranking: Ranking) -> Self:
        return cls(
            offers=tuple(RankedOfferDocument.of(each) for each in ranking.chosen),
            left_out=tuple(LeftOutDocument.of(each) for each in ranking.left_out),
            left_out_by_reason=tuple(LeftOutGroupDocument.of(each) for each in ranking.groups()),
            invalid=ranking.invalid,
            no_offer=None
            if (none := ranking.no_offer) is None
            else NoOfferDocument(reasons=none.reasons, remedies=none.remedies),
        )

    def value(self) -> Ranking:
        return Ranking(
            chosen=tuple(each.value() for each in self.offers),
            left_out=tuple(each.value() for each in self.left_out),
            invalid=self.invalid,
            no_offer=None if (none := self.no_offer) is None else NoOffer(reasons=none.reasons, remedies=none.remedies),
        )


def _fields(offer: Offer) -> dict[str, Any]:
    return {
        "id": offer.id,
        "provider": offer.provider,
        "gpu": offer.gpu,
        "gpus": offer.gpus,
        "vram_gib": offer.vram_gib,
        "machine_id": offer.machine_id,
        "region": offer.region,
        "reliability": offer.reliability,
        "price_per_hour_usd": offer.price_per_hour,
        "bid_per_hour_usd": offer.bid_per_hour,
        "note": offer.note,
    }
