"""Jobs, as every face shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

from pydantic import Field

from stationmaster.lifecycle import MEANINGS
from stationmaster.model import (
    Desired,
    Ending,
    Event,
    Job,
    JobSpec,
    Outcome,
    Parked,
    Reason,
    RentedMachine,
    RunHealth,
    SavedModel,
    SshAccess,
    State,
    Watching,
)
from stationmaster.station.jobs import JobView, Wanted
from stationmaster.station.wire.adopting import AdoptedDocument
from stationmaster.station.wire.document import Document, Instant, RequestDocument, Usd
from stationmaster.station.wire.events import EventDocument
from stationmaster.station.wire.heartbeats import HeartbeatDocument, progress_log
from stationmaster.station.wire.job_files import CatalogueDocument, CheckpointDocument
from stationmaster.station.wire.job_parts import (
    AlertDocument,
    AppliedAdviceDocument,
    CostLineDocument,
    DatasetDocument,
    ExecutionDocument,
    LimitsDocument,
    MachineWishDocument,
    ParkedDocument,
    ProgressDocument,
    ProviderStateDocument,
    RentalDocument,
    ResumeDocument,
    TransferDocument,
    UsedDocument,
)
from stationmaster.station.wire.plain import plain, unplain
from stationmaster.station.wire.quote import QuoteDocument

StateName = Literal[
    "QUEUED",
    "PROVISIONING",
    "TRANSFERRING_DATA",
    "EXECUTING",
    "FETCHING_RESULTS",
    "FINALIZING",
    "RELEASING",
    "ENDED",
]
"""A state that can be asked for; a job of a newer version can be in another one."""


class JobDocument(Document):
    """A job with everything that belongs to it."""

    id: str
    """Id of the job; never changes."""
    name: str
    """Name of the job and of its model."""
    owner: str | None
    """The user who gets its messages; null: the single user of the settings."""
    recipe: str = Field(examples=["tiny-lora@1"])
    """The recipe, as `name@version`."""
    state: str = Field(examples=["EXECUTING"])
    """The current state."""
    shown: str
    """The outcome, `NEEDS_RECOVERY`, or the state."""
    stage: str
    """The last of the ten stages that it reached, from `queued` to `completed`, which only a COMPLETED job reaches."""
    desired: Desired
    """What its owner asked for."""
    outcome: str | None
    """How it ended."""
    reason: str | None
    """Why it ended."""
    meaning: str | None = None
    """The reason as a sentence."""
    explanation: str | None
    """What exactly happened, where there is more to tell than the reason."""
    attempt: int
    """The number of the current attempt, from 1; 0 while queued."""
    created_at: Instant
    """When it was submitted."""
    ended_at: Instant | None
    """When it ended."""
    retry_of: str | None
    """The job that this one repeats."""
    applied: tuple[AppliedAdviceDocument, ...]
    """What it follows of the analysis of that job."""
    trigger: str | None
    """The trigger word."""
    parameters: dict[str, Any]
    """The recipe's parameters, as given and with defaults."""
    dataset: DatasetDocument
    """The dataset that it is trained on."""
    execution: ExecutionDocument
    """Where it runs."""
    providerState: ProviderStateDocument
    """The machine that it has now."""
    progress: ProgressDocument
    """How far the training is."""
    progressLog: tuple[HeartbeatDocument | EventDocument, ...]
    """What happened to it, and its last heartbeats, by time; empty in lists."""
    health: str | None
    """By the analysis of its training: `good`, `warning`, `critical` or `unknown`."""
    recommendation: str | None
    """The first recommendation of the analysis."""
    model: str | None
    """Where its best checkpoint is: a path on the server, or an address."""
    catalogue: CatalogueDocument | None
    """Its model in the catalogue; null before."""
    cost_usd: Usd
    """The cost so far."""
    quote: QuoteDocument
    """What it was expected to take when it was submitted."""
    machine: MachineWishDocument
    """What it asks of its machine beyond its recipe."""
    used: UsedDocument
    """What it used so far."""
    limits: LimitsDocument
    """When it is stopped, and the highest price of its machine."""
    rentals: tuple[RentalDocument, ...]
    """Every machine that was requested for it."""
    checkpoints: tuple[CheckpointDocument, ...]
    """Every file that its training wrote."""
    alerts: tuple[AlertDocument, ...]
    """Open problems that need a look."""
    as_of: Instant
    """When it was in this state, by the clock of the store."""
    version: int
    """Grows with every change of the job itself."""
    state_since: Instant
    """Since when it is in this state."""
    saves_asked: int
    """How often a checkpoint was requested."""
    samples_asked: int
    """How often samples were requested."""
    costs: tuple[CostLineDocument, ...]
    """What each of its machines cost."""
    monitoring: dict[str, Any]
    """Settings of the monitoring that differ for this job."""
    resume: ResumeDocument | None
    """The checkpoint that it continues from."""
    starting: str | None = Field(default=None, examples=[None])
    """What its provider reported last while its machine started, such as the pull of the image."""
    waits_for: str | None = Field(default=None, examples=[None])
    """Why it is not its turn to get a machine."""
    transfer: TransferDocument | None
    """The transfer to or from its machine that runs now."""
    parked: ParkedDocument | None
    """Set while its machine is stopped with the model on its disk, until you decide."""
    gpus: str | None
    """The GPUs of its machine."""
    model_step: int | None
    """The training step of its best checkpoint."""
    analysed_attempt: int | None
    """The attempt that `health` is about."""
    adopted: AdoptedDocument | None = None
    """The training that it watches and did not start."""

    @classmethod
    def of(cls, view: JobView, events: Sequence[Event] = ()) -> Self:
        job, spec, health, parked = view.job, view.job.spec, view.health, view.job.ending.parked
        live = next((rental for rental in view.rentals if rental.provider_id and rental.gone_at is None), None)
        transfer = job.machine.transfer
        return cls(
            id=job.id,
            name=spec.name,
            owner=spec.owner,
            recipe=spec.recipe,
            state=job.state,
            shown=view.shown,
            stage=view.stage,
            desired=job.desired,
            outcome=job.outcome,
            reason=job.reason,
            meaning=None if job.reason is None else MEANINGS.get(job.reason),
            explanation=job.explanation,
            attempt=job.attempt,
            created_at=job.created_at,
            ended_at=job.ended_at,
            retry_of=spec.retry_of,
            applied=tuple(AppliedAdviceDocument.of(one) for one in spec.applied),
            trigger=spec.trigger,
            parameters=plain(spec.parameters),
            dataset=DatasetDocument.of(spec.dataset),
            execution=ExecutionDocument(provider=spec.provider),
            providerState=ProviderStateDocument(
                instanceId=live.provider_id if live else None,
                sshHost=view.access.host if isinstance(view.access, SshAccess) else None,
                activeStep=job.progress.active_step,
            ),
            progress=ProgressDocument.of(job.progress),
            progressLog=progress_log(job, events),
            health=None if health is None else health.health,
            recommendation=None if health is None else health.headline,
            model=job.model.address,
            catalogue=None if view.trained is None else CatalogueDocument.of(view.trained),
            cost_usd=view.cost,
            quote=QuoteDocument.of(spec.quote),
            machine=MachineWishDocument.of(spec.machine),
            used=UsedDocument(
                rented_hours=view.rented_seconds / 3600, gpu_memory_gib=view.peak_gpu_gib, gpu_gib=view.gpu_gib
            ),
            limits=LimitsDocument(
                max_hours=spec.max_seconds / 3600,
                max_spend_usd=spec.max_spend,
                max_price_per_hour_usd=spec.max_price_per_hour,
                max_seconds=spec.max_seconds,
            ),
            rentals=tuple(RentalDocument.of(rental) for rental in view.rentals),
            checkpoints=tuple(CheckpointDocument.of(checkpoint) for checkpoint in view.checkpoints),
            alerts=tuple(AlertDocument.of(alert) for alert in view.alerts),
            as_of=view.now,
            version=job.version,
            state_since=job.state_since,
            saves_asked=job.saves_asked,
            samples_asked=job.samples_asked,
            costs=tuple(CostLineDocument.of(line, now=view.now) for line in view.costs),
            monitoring=plain(spec.monitoring),
            resume=None
            if spec.resume_from is None
            else ResumeDocument(path=spec.resume_from, step=spec.resume_step, state=spec.resume_state),
            starting=job.machine.starting if job.state is State.PROVISIONING else None,
            waits_for=job.machine.waits_for,
            transfer=None if transfer is None else TransferDocument.of(transfer),
            parked=None if parked is None else ParkedDocument(at=parked.at, why=parked.why),
            gpus=job.machine.gpus,
            model_step=job.model.step,
            analysed_attempt=None if health is None else health.attempt,
            adopted=None if spec.adopted is None else AdoptedDocument.of(spec.adopted),
        )

    def value(self) -> JobView:
        """The view without what only workers need; nothing of how to reach the machine comes over the wire."""
        health = None
        if self.health is not None:
            health = RunHealth(
                attempt=self.analysed_attempt or self.attempt, health=self.health, headline=self.recommendation
            )
        trained = None
        if self.catalogue is not None:
            trained = self.catalogue.value(self.id, name=self.name, recipe=self.recipe, owner=self.owner)
        return JobView(
            job=self.job_value(),
            now=self.as_of,
            shown=self.shown,
            stage=self.stage,
            cost=self.cost_usd,
            rentals=tuple(rental.value(self.id) for rental in self.rentals),
            costs=tuple(line.value(self.id) for line in self.costs),
            checkpoints=tuple(checkpoint.value() for checkpoint in self.checkpoints),
            alerts=tuple(alert.value(self.id) for alert in self.alerts),
            access=None,
            trained=trained,
            peak_gpu_gib=self.used.gpu_memory_gib,
            gpu_gib=self.used.gpu_gib,
            health=health,
        )

    def job_value(self) -> Job:
        parked = self.parked
        return Job(
            spec=self._spec(),
            created_at=self.created_at,
            state=State(self.state),
            state_since=self.state_since,
            version=self.version,
            desired=self.desired,
            saves_asked=self.saves_asked,
            samples_asked=self.samples_asked,
            outcome=None if self.outcome is None else Outcome(self.outcome),
            reason=None if self.reason is None else Reason(self.reason),
            explanation=self.explanation,
            attempt=self.attempt,
            # Faces see from a lease that is over that no worker has the job; its time stays on the server.
            lease_until=0.0 if self.shown == "NEEDS_RECOVERY" else None,
            progress=self.progress.value(),
            ended_at=self.ended_at,
            machine=RentedMachine(
                gpus=self.gpus,
                starting=self.starting,
                waits_for=self.waits_for,
                transfer=None if self.transfer is None else self.transfer.value(),
            ),
            ending=Ending(parked=None if parked is None else Parked(at=parked.at, why=parked.why, seq=0)),
            model=SavedModel(address=self.model, step=self.model_step),
            watching=Watching(
                heartbeats=tuple(one.value() for one in self.progressLog if isinstance(one, HeartbeatDocument))
            ),
        )

    def _spec(self) -> JobSpec:
        resume = self.resume
        return JobSpec(
            id=self.id,
            name=self.name,
            recipe=self.recipe,
            provider=self.execution.provider,
            dataset=self.dataset.value(),
            quote=self.quote.value(),
            max_seconds=self.limits.max_seconds,
            max_spend=self.limits.max_spend_usd,
            max_price_per_hour=self.limits.max_price_per_hour_usd,
            adopted=None if self.adopted is None else self.adopted.value(),
            trigger=self.trigger,
            parameters=unplain(self.parameters),
            owner=self.owner,
            monitoring=unplain(self.monitoring),
            retry_of=self.retry_of,
            resume_from=None if resume is None else resume.path,
            resume_step=None if resume is None else resume.step,
            resume_state=None if resume is None else resume.state,
            machine=self.machine.value(),
            applied=tuple(one.value() for one in self.applied),
        )


class WantedDocument(Document):
    """The answer to a request about a job."""

    id: str
    """Id of the job."""
    note: str
    """What happens now, as a sentence."""
    job: JobDocument
    """The job after the request."""

    def value(self) -> Wanted:
        return Wanted(job=self.job.job_value(), note=self.note)


class CancelRequest(RequestDocument):
    """How a job is cancelled."""

    keep: bool = False
    """Download the best checkpoint first."""
