"""Proposals and estimates: what a training would take, and the job that a proposal became."""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any, Self

from pydantic import Field, field_validator

from stationmaster.errors import UserError
from stationmaster.model import MachineWish, SkippedAdvice
from stationmaster.money import ZERO, exact_dollars
from stationmaster.station.job_file import AskedMachine, Dollars, JobFile, Name, hours, price, require_shallow
from stationmaster.station.proposals import (
    Accepted,
    Estimate,
    EstimateRequest,
    OfferTerms,
    PlannedConfig,
    PlannedStep,
    Proposal,
    RetryChanges,
    RetryRequest,
    Terms,
    TrainRequest,
)
from stationmaster.station.wire.adopting import AdoptedDocument
from stationmaster.station.wire.document import Document, Instant, RequestDocument, Usd
from stationmaster.station.wire.job_parts import AppliedAdviceDocument
from stationmaster.station.wire.jobs import JobDocument
from stationmaster.station.wire.offers import OfferDocument
from stationmaster.station.wire.plain import plain, unplain
from stationmaster.station.wire.quote import QuoteDocument, UsdRangeDocument

_LONGEST_ADDRESS = 2000
_ADDRESSES = ("upload:", "s3://", "hf://")


def remote_request(body: JobFile, *, default_owner: str | None) -> TrainRequest:
    """The request in a body that came over HTTP. Raises UserError: a path would be one of the server's own files."""
    dataset = body.dataset or ""
    if len(dataset) > _LONGEST_ADDRESS:
        raise UserError(f"dataset is longer than {_LONGEST_ADDRESS} characters", hint="shorten it")
    if dataset and not dataset.startswith(_ADDRESSES):
        raise UserError(
            f"dataset: {dataset!r} is not an address of a dataset",
            hint="upload it (POST /api/datasets) and pass upload:ID, or pass s3://BUCKET/PREFIX or hf://datasets/…",
        )
    given = body if body.owner is not None else body.model_copy(update={"owner": default_owner})
    return given.request()


class TermsLimitsDocument(Document):
    """When the job is stopped, and the highest price of its machine."""

    max_price_per_hour_usd: Usd
    """No machine costs more, and none has a slower GPU than the quote's."""
    max_hours: float
    """The job is stopped after this many hours."""
    max_spend_usd: Usd
    """The job is stopped before it costs more."""
    max_spend_note: str | None
    """Why the money limit is not twice the high figure of the quote."""
    max_seconds: float
    """The hours in seconds, exactly."""

    @classmethod
    def of(cls, terms: Terms | OfferTerms | Estimate) -> Self:
        return cls(
            max_price_per_hour_usd=terms.max_price_per_hour,
            max_hours=terms.max_seconds / 3600,
            max_spend_usd=terms.max_spend,
            max_spend_note=terms.spend_note,
            max_seconds=terms.max_seconds,
        )


class PlannedStepDocument(Document):
    """A command that the job would run."""

    name: str
    """Name of the step."""
    argv: tuple[str, ...]
    """The program and its arguments."""
    env: dict[str, str]
    """Environment variables that it gets."""

    @classmethod
    def of(cls, step: PlannedStep) -> Self:
        return cls(name=step.name, argv=step.argv, env=dict(step.env))

    def value(self) -> PlannedStep:
        return PlannedStep(name=self.name, argv=self.argv, env=self.env)


class PlannedConfigDocument(Document):
    """A config file that would be written for the job and sent to its machine."""

    path: str = Field(examples=["/opt/stationmaster/jobs/JOB/config/flux-lora-24gb-aitoolkit.yaml"])
    """Its path on the machine."""
    text: str
    """What is written into it."""

    @classmethod
    def of(cls, config: PlannedConfig) -> Self:
        return cls(path=config.path, text=config.text)

    def value(self) -> PlannedConfig:
        return PlannedConfig(path=self.path, text=self.text)


class SkippedAdviceDocument(Document):
    """A recommendation that the job does not follow."""

    number: int
    """Its place in the analysis, from 1."""
    severity: str
    """`critical`, `warning` or `info`."""
    title: str
    """The recommendation in a few words."""
    config_path: str
    """Where the analysis found the setting."""
    recommended_value: Any
    """The value that it recommends."""
    why: str
    """Why the job does not follow it."""

    @classmethod
    def of(cls, skipped: SkippedAdvice) -> Self:
        return cls(**plain(dataclasses.asdict(skipped)))

    def value(self) -> SkippedAdvice:
        return SkippedAdvice(**{**dict(self), "recommended_value": unplain(self.recommended_value)})


class OfferTermsDocument(Document):
    """A machine that could be rented for the job, and what the job would take on it."""

    offer: OfferDocument
    """The offered machine."""
    quote: QuoteDocument
    """What the training is expected to take on it."""
    limits: TermsLimitsDocument
    """When the job would be stopped there, and the highest price of its machine."""
    notes: tuple[str, ...]
    """Assumptions and warnings."""

    @classmethod
    def of(cls, terms: OfferTerms) -> Self:
        return cls(
            offer=OfferDocument.of_offer(terms.offer),
            quote=QuoteDocument.of(terms.quote),
            limits=TermsLimitsDocument.of(terms),
            notes=terms.notes,
        )

    def value(self) -> OfferTerms:
        return OfferTerms(
            offer=self.offer.offer(),
            quote=self.quote.value(),
            max_price_per_hour=self.limits.max_price_per_hour_usd,
            max_seconds=self.limits.max_seconds,
            max_spend=self.limits.max_spend_usd,
            spend_note=self.limits.max_spend_note,
            notes=self.notes,
        )


class TermsDocument(Document):
    """What a training would take: plan, price and limits. Nothing is rented yet."""

    name: str
    """Name of the job."""
    recipe: str = Field(examples=["flux-lora@2"])
    """The recipe, as `name@version`."""
    provider: str = Field(examples=["vastai"])
    """Where it would run."""
    parameters: dict[str, Any]
    """As given, with the recipe's defaults."""
    images: int
    """Images in the dataset."""
    rows: int
    """Lines of a text dataset."""
    dataset_bytes: int
    """Size of the packed dataset."""
    quote: QuoteDocument
    """What it is expected to take."""
    limits: TermsLimitsDocument
    """When it would be stopped, and the highest price of its machine."""
    steps: tuple[PlannedStepDocument, ...]
    """The commands that it would run."""
    configs: tuple[PlannedConfigDocument, ...] = ()
    """Config files that the steps read."""
    notes: tuple[str, ...]
    """Assumptions and warnings."""
    applied: tuple[AppliedAdviceDocument, ...] = ()
    """What a retry follows of the analysis."""
    skipped: tuple[SkippedAdviceDocument, ...] = ()
    """What a retry does not follow of the analysis."""
    adopted: AdoptedDocument | None = None
    """The training that runs already, if the job only watches one."""
    offers: tuple[OfferTermsDocument, ...] = ()
    """What can be rented for it now, best first, the quote's offer included; empty if it costs nothing."""
    no_offer: str | None = Field(default=None, examples=[None])
    """Why nothing that fits can be rented now, and what helps. Then there is no price: all amounts are 0."""

    @classmethod
    def of(cls, terms: Terms) -> Self:
        return cls(
            name=terms.name,
            recipe=terms.recipe,
            provider=terms.provider,
            parameters=plain(terms.parameters),
            images=terms.images,
            rows=terms.rows,
            dataset_bytes=terms.dataset_bytes,
            quote=QuoteDocument.of(terms.quote),
            limits=TermsLimitsDocument.of(terms),
            steps=tuple(PlannedStepDocument.of(step) for step in terms.steps),
            configs=tuple(PlannedConfigDocument.of(config) for config in terms.configs),
            notes=terms.notes,
            applied=tuple(AppliedAdviceDocument.of(one) for one in terms.applied),
            skipped=tuple(SkippedAdviceDocument.of(one) for one in terms.skipped),
            adopted=None if terms.adopted is None else AdoptedDocument.of(terms.adopted),
            offers=tuple(OfferTermsDocument.of(one) for one in terms.offers),
            no_offer=terms.no_offer,
        )

    def value(self) -> Terms:
        return Terms(
            name=self.name,
            recipe=self.recipe,
            provider=self.provider,
            parameters=unplain(self.parameters),
            images=self.images,
            rows=self.rows,
            dataset_bytes=self.dataset_bytes,
            quote=self.quote.value(),
            max_price_per_hour=self.limits.max_price_per_hour_usd,
            max_seconds=self.limits.max_seconds,
            max_spend=self.limits.max_spend_usd,
            spend_note=self.limits.max_spend_note,
            steps=tuple(step.value() for step in self.steps),
            configs=tuple(config.value() for config in self.configs),
            notes=self.notes,
            applied=tuple(one.value() for one in self.applied),
            skipped=tuple(one.value() for one in self.skipped),
            adopted=None if self.adopted is None else self.adopted.value(),
            offers=tuple(one.value() for one in self.offers),
            no_offer=self.no_offer,
        )


class ProposalDocument(Document):
    """Terms that are kept for a while, so that exactly what is confirmed is submitted."""

    id: str = Field(examples=["9f0c1d9a2b7e4c68"])
    """Id of the proposal."""
    job: str
    """The id that the job will have."""
    owner: str | None
    """The user who would own the job."""
    created_at: Instant
    """When it was made."""
    expires_at: Instant
    """Until then it can be submitted, at this price."""
    terms: TermsDocument
    """What the training would take."""

    @classmethod
    def of(cls, proposal: Proposal) -> Self:
        return cls(
            id=proposal.id,
            job=proposal.job_id,
            owner=proposal.owner,
            created_at=proposal.created_at,
            expires_at=proposal.expires_at,
            terms=TermsDocument.of(proposal.terms),
        )

    def value(self) -> Proposal:
        return Proposal(
            id=self.id,
            owner=self.owner,
            job_id=self.job,
            created_at=self.created_at,
            expires_at=self.expires_at,
            terms=self.terms.value(),
        )


class SubmitBody(RequestDocument):
    """Which of the proposal's offers is confirmed."""

    offer: Name | None = Field(default=None, examples=[None])
    """Id of one of `terms.offers`, whose quote and limits the job gets. Default: the one of the proposal's quote."""


class SubmittedDocument(Document):
    """The job that a request became, with its provider and the cost and time that are expected (`job.quote`)."""

    job: JobDocument
    """The job."""
    created: bool
    """False: it existed already, and nothing was changed."""
    notes: tuple[str, ...]
    """Assumptions and warnings of its terms, and what keeps it from starting."""

    def value(self) -> Accepted:
        return Accepted(job=self.job.job_value(), created=self.created, notes=self.notes)


class _AskedTraining(RequestDocument):
    """What a request may say of a training, whatever else it is about."""

    parameters: dict[str, Any] = Field(default={}, examples=[{"steps": 2000}])
    """Parameters of the recipe by name."""
    max_price: Dollars | None = Field(default=None, examples=[None])
    """Maximum price per hour, in dollars."""
    max_hours: float | None = Field(default=None, gt=0, lt=10_000, allow_inf_nan=False, examples=[None])
    """Stop after this many hours and keep the model."""
    max_spend: Dollars | None = Field(default=None, examples=[None])
    """Maximum cost of the job, in dollars."""
    machine: AskedMachine | None = Field(default=None, examples=[None])
    """What the machine must have beyond what the recipe needs."""

    @field_validator("parameters", mode="before")
    @classmethod
    def _shallow(cls, value: Any) -> Any:
        require_shallow(value)
        return value


class RetryBody(_AskedTraining):
    """How an ended job is run again."""

    resume: bool = False
    """Continue from the old job's best checkpoint."""
    apply_recommendations: bool = False
    """Follow the old job's analysis: all advice that is critical or a warning, or what `only` names."""
    only: tuple[Annotated[str, Field(max_length=200)], ...] = Field(default=(), max_length=100)
    """Recommendations by number, lever, config path or parameter."""
    id: Name | None = None
    """Id of the new job."""
    name: Name | None = None
    """Another name for the model; null leaves this, the trigger word and the limits as they were."""
    trigger: Name | None = None
    """Another trigger word."""
    parameters: dict[str, Any] = Field(default={}, examples=[{"steps": 2000}])
    """Parameters that change, by name; they go before the analysis."""
    offer: Name | None = Field(default=None, examples=[None])
    """Id of the offer to rent, as `GET /api/offers` lists it. Default: the best."""

    @classmethod
    def of(cls, request: RetryRequest) -> Self:
        changes = request.changes
        return cls(
            resume=request.resume,
            apply_recommendations=request.apply_recommendations,
            only=request.only,
            id=request.id,
            name=changes.name,
            trigger=changes.trigger,
            parameters=dict(changes.parameters),
            max_price=exact_dollars(changes.max_price),
            max_hours=changes.max_hours,
            max_spend=exact_dollars(changes.max_spend),
            machine=AskedMachine.of(changes.machine),
            offer=request.offer,
        )

    def request(self, job: str) -> RetryRequest:
        """Raises UserError."""
        return RetryRequest(
            job=job,
            resume=self.resume,
            apply_recommendations=self.apply_recommendations,
            only=self.only,
            id=self.id,
            offer=self.offer or None,
            changes=RetryChanges(
                name=self.name,
                trigger=self.trigger,
                parameters=self.parameters,
                max_price=price("max_price", self.max_price),
                max_hours=hours("max_hours", self.max_hours),
                max_spend=price("max_spend", self.max_spend),
                machine=_wish(self.machine),
            ),
        )


class EstimateBody(_AskedTraining):
    """A training to estimate, without a dataset."""

    recipe: Name = Field(examples=["flux-lora@2"])
    """The recipe, as `name@version`."""
    images: int = Field(default=20, ge=0, le=100_000_000)
    """Images in the dataset."""
    parameters: dict[str, Any] = Field(default={}, examples=[{"steps": 2000}])
    """Parameters of the recipe by name; those left out have the recipe's defaults."""
    provider: Name | None = None
    """Default: the server's."""
    gpu: Name | None = Field(default=None, examples=["RTX 4090"])
    """Estimate for this GPU instead of the best offer."""
    vram_gib: float | None = Field(default=None, ge=1, le=10_000, allow_inf_nan=False)
    """Estimate for a GPU with this memory."""

    def request(self) -> EstimateRequest:
        """Raises UserError."""
        return EstimateRequest(
            recipe=self.recipe,
            images=self.images,
            parameters=self.parameters,
            provider=self.provider,
            max_price=price("max_price", self.max_price),
            gpu=self.gpu,
            vram_gib=self.vram_gib,
            max_hours=hours("max_hours", self.max_hours),
            max_spend=price("max_spend", self.max_spend),
            machine=_wish(self.machine),
        )


class EstimateDocument(QuoteDocument):
    """What a training is expected to take now; a GPU that is not offered now has no price."""

    price_per_hour_usd: Usd | None  # type: ignore[assignment]
    """What the machine costs per hour; null: that GPU is not offered now."""
    cost_usd: UsdRangeDocument | None  # type: ignore[assignment]
    """What the job is expected to cost; null: that GPU is not offered now."""
    recipe: str
    """The recipe, as `name@version`."""
    provider: str
    """Where it would run."""
    notes: tuple[str, ...]
    """Assumptions, and a warning if the training will not fit."""
    max_price_per_hour_usd: Usd | None = None
    """What the price of its machine may rise to until the job is submitted."""
    limits: TermsLimitsDocument
    """When the job would be stopped."""

    @classmethod
    def of_estimate(cls, found: Estimate, *, recipe: str) -> Self:
        values = dict(QuoteDocument.of(found.quote))
        if not found.is_offered:
            values |= {"price_per_hour_usd": None, "cost_usd": None}
        return cls(
            **values,
            recipe=recipe,
            provider=found.provider,
            notes=found.notes,
            max_price_per_hour_usd=found.max_price_per_hour,
            limits=TermsLimitsDocument.of(found),
        )

    def estimate(self) -> Estimate:
        is_offered = self.price_per_hour_usd is not None
        nothing = UsdRangeDocument(low=ZERO, expected=ZERO, high=ZERO)
        quote = QuoteDocument(
            **{
                **{name: value for name, value in self if name in QuoteDocument.model_fields},
                "price_per_hour_usd": self.price_per_hour_usd if is_offered else ZERO,
                "cost_usd": self.cost_usd or nothing,
            }
        )
        return Estimate(
            provider=self.provider,
            quote=quote.value(),
            max_price_per_hour=self.max_price_per_hour_usd or ZERO,
            notes=self.notes,
            max_seconds=self.limits.max_seconds,
            max_spend=self.limits.max_spend_usd,
            spend_note=self.limits.max_spend_note,
            is_offered=is_offered,
        )


def _wish(asked: AskedMachine | None) -> MachineWish:
    return MachineWish() if asked is None else asked.value()
