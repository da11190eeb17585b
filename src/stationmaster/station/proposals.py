"""Proposals: the time and cost of a training, shown to a person and submitted exactly as shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from stationmaster.datasets.sources.reference import DatasetReference
from stationmaster.errors import NotFound
from stationmaster.model import (
    SINGLE_USER,
    AdoptedTraining,
    AppliedAdvice,
    Job,
    MachineWish,
    Offer,
    Quote,
    SkippedAdvice,
)
from stationmaster.money import MicroDollars
from stationmaster.station.adopting import AdoptRequest
from stationmaster.station.datasets import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainRequest:
    """A request for a training, not checked yet."""

    recipe: str
    dataset: DatasetReference
    name: str | None = None
    trigger: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)
    provider: str | None = None
    account: str | None = None
    id: str | None = None
    owner: str | None = None  # who gets the notifications; None: the single user of the settings
    max_price: MicroDollars | None = None
    max_hours: float | None = None
    max_spend: MicroDollars | None = None
    monitoring: Mapping[str, Any] = field(default_factory=dict)
    machine: MachineWish = field(default_factory=MachineWish)
    offer: str | None = None  # id of the offer to rent; None: the best


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryChanges:
    """What a person changes in a job that is run again; None: as it was."""

    name: str | None = None
    trigger: str | None = None
    parameters: Mapping[str, Any] = field(default_factory=dict)  # only those that change
    max_price: MicroDollars | None = None
    max_hours: float | None = None
    max_spend: MicroDollars | None = None
    machine: MachineWish = field(default_factory=MachineWish)  # only what is asked besides


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryRequest:
    """A new job like an ended one; with `resume` it continues from the old job's best checkpoint.

    With `apply_recommendations` it follows the analysis of the old job: all that is critical or a warning, or what
    `only` names by number, lever, config path or parameter. `changes` go before the analysis.
    """

    job: str  # an id, a unique beginning of one, or a name
    resume: bool = False
    id: str | None = None
    apply_recommendations: bool = False
    only: tuple[str, ...] = ()
    changes: RetryChanges = field(default_factory=RetryChanges)
    offer: str | None = None  # id of the offer to rent; None: the best


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """A request for an estimate of time, cost and GPU memory, without a dataset."""

    recipe: str
    images: int
    parameters: Mapping[str, Any] = field(default_factory=dict)
    provider: str | None = None
    max_price: MicroDollars | None = None
    gpu: str | None = None  # estimate for this GPU; None: for the best offer
    vram_gib: float | None = None  # the GPU's memory, as sold
    max_hours: float | None = None
    max_spend: MicroDollars | None = None
    machine: MachineWish = field(default_factory=MachineWish)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    provider: str
    quote: Quote
    max_price_per_hour: MicroDollars
    notes: tuple[str, ...]
    max_seconds: float  # the limits that the job would have
    max_spend: MicroDollars
    spend_note: str | None = None  # why the money limit is not twice the high figure of the quote
    is_offered: bool = True  # False: the GPU that was asked about is not offered now, so it has no price


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedConfig:
    """A config file that is written for the job and sent to its machine."""

    path: str  # on the machine
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferTerms:
    """A machine that could be rented for the job, and the quote and limits that the job would have on it."""

    offer: Offer
    quote: Quote
    max_price_per_hour: MicroDollars
    max_seconds: float
    max_spend: MicroDollars
    notes: tuple[str, ...]  # all that the terms would have
    spend_note: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The terms of a fully checked request: plan, price and limits. Nothing is rented."""

    name: str
    recipe: str
    provider: str
    parameters: Mapping[str, Any]
    images: int
    rows: int
    dataset_bytes: int
    quote: Quote
    max_price_per_hour: MicroDollars  # no worker pays more, and none takes a slower GPU than the quote's
    max_seconds: float
    max_spend: MicroDollars
    steps: tuple[PlannedStep, ...]
    notes: tuple[str, ...]
    configs: tuple[PlannedConfig, ...] = ()
    spend_note: str | None = None  # why the money limit is not twice the high figure of the quote
    applied: tuple[AppliedAdvice, ...] = ()  # what a retry follows of the analysis
    skipped: tuple[SkippedAdvice, ...] = ()  # and what it does not
    adopted: AdoptedTraining | None = None  # a training that runs already, which the job only watches
    offers: tuple[OfferTerms, ...] = ()  # what can be rented for it, best first, the quote's included; none if free
    no_offer: str | None = None  # why nothing fits now and what helps: then there is a plan, but no price

    def on(self, offer_id: str) -> Terms:
        """The terms with another of the offers. Raises NotFound for one that is not among them."""
        for one in self.offers:
            if one.offer.id == offer_id:
                return replace(
                    self,
                    quote=one.quote,
                    max_price_per_hour=one.max_price_per_hour,
                    max_seconds=one.max_seconds,
                    max_spend=one.max_spend,
                    notes=one.notes,
                    spend_note=one.spend_note,
                )
        shown = ", ".join(one.offer.id for one in self.offers)
        raise NotFound(
            f"the proposal has no offer {offer_id}", hint=f"choose one of: {shown}" if shown else "propose it again"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """Terms that are stored for a while, so that exactly what a person confirms is submitted."""

    id: str
    owner: str | None
    job_id: str  # the id that the job will have
    created_at: float
    expires_at: float
    terms: Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    job: Job
    created: bool  # False: a job with this id already existed
    notes: tuple[str, ...] = ()  # assumptions and warnings of its terms, and what keeps it from starting


Asked = TrainRequest | RetryRequest | AdoptRequest
"""What can be proposed."""


class Proposals(Protocol):
    def check(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Terms:
        """Check a request in full: recipe, parameters, dataset, offers, price. Writes nothing.

        For a training that runs already its machine is looked at. If this computer is the machine and lacks the disk,
        that is a note. If no offer fits, the terms of a new training have no price and say why.

        `progress` is called while a dataset is downloaded or uploaded, `packing` while it is packed on this computer.
        """

    def propose(self, request: Asked, *, progress: Progress | None = None, packing: Progress | None = None) -> Proposal:
        """Check a request as `check` does and store the result, with the packed dataset, until it expires.

        Raises ConfigInvalid if the provider's machines would refuse our login.
        """

    def find(self, proposal_id: str) -> Proposal:
        """Raises NotFound for one that never existed, was withdrawn, or has expired."""

    def submit(self, proposal_id: str, *, offer: str | None = None) -> Accepted:
        """Queue the job exactly as it was proposed; nothing is searched or read again. Repeating it changes nothing.

        `offer` is the id of another of the proposal's offers: the job gets the quote and limits that were shown for it.
        Raises NotFound as `find` does and for an unknown offer, OutOfCredit if the owner no longer has enough credits.
        """

    def enqueue(self, request: TrainRequest, *, key: str | None = None, user: str = SINGLE_USER) -> Accepted:
        """Propose and submit at once, within the request's own limits of price, time and money.

        With a key, repeating the request returns the job that the first one made; every user has keys of their own.
        Raises as `propose` and `submit` do, KeyReused for a key that belongs to another request, and NotFound if the
        key's job was removed.
        """

    def withdraw(self, proposal_id: str) -> None:
        """Delete the proposal, and the packed dataset unless something else uses it."""

    def estimate(self, request: EstimateRequest) -> Estimate:
        """Estimate time, cost and GPU memory of a training on that many images now, with the assumptions and a warning
        if it will not fit. Writes nothing.
        """
