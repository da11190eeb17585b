"""The parts of a job's document: its machines, costs, limits, alerts and progress."""

from __future__ import annotations

import dataclasses
from typing import Any, Self

from pydantic import Field

from stationmaster.model import (
    Alert,
    AppliedAdvice,
    CostLine,
    DatasetRef,
    MachineWish,
    Progress,
    Rental,
    RentalState,
    Transfer,
)
from stationmaster.money import MicroDollars
from stationmaster.station.wire.document import Document, Instant, Number, Usd
from stationmaster.station.wire.plain import plain, unplain


class ProgressDocument(Document):
    """Progress of the training, as last read."""

    step: int | None = None
    """The last training step that was read."""
    total_steps: int | None = None
    """Steps that the training will take."""
    epoch: Number | None = None
    """The current epoch."""
    loss: Number | None = None
    """The last loss that was read."""
    first_loss: Number | None = None
    """The first loss that was read."""
    learning_rate: Number | None = None
    """The last learning rate that was read."""
    steps_per_second: Number | None = None
    """As the trainer prints it, else measured over the last minutes of training."""
    eta_seconds: Number | None = None
    """As the trainer prints it, else the steps left at the measured speed."""
    phase: str | None = None
    """What the training does: `loading`, `caching`, `training`, `sampling`, `evaluating`, `saving`, …; null once it is
    over, like its speed and ETA."""
    phase_since: Instant | None = None
    """Since when it is in this phase."""
    active_step: str | None = None
    """The step of the plan that runs."""
    at: float | None = None
    """When it was read, in seconds since 1970."""
    percent: float | None = None
    """Share of the steps that are done."""

    @classmethod
    def of(cls, progress: Progress) -> Self:
        return cls(**dataclasses.asdict(progress), percent=progress.percent)

    def value(self) -> Progress:
        return Progress(**{item.name: getattr(self, item.name) for item in dataclasses.fields(Progress)})


class DatasetDocument(Document):
    """The dataset that a job is trained on."""

    source: str
    """Where it came from."""
    sha256: str
    """Of its pack."""
    images: int
    """How many images it has."""
    size: int = 0
    """Of its pack, in bytes."""

    @classmethod
    def of(cls, dataset: DatasetRef) -> Self:
        return cls(source=dataset.source, sha256=dataset.sha256, images=dataset.images, size=dataset.size)

    def value(self) -> DatasetRef:
        return DatasetRef(source=self.source, archive="", sha256=self.sha256, size=self.size, images=self.images)


class MachineWishDocument(Document):
    """What a job asks of its machine beyond what its recipe needs."""

    gpus: int | None = None
    """Number of GPUs."""
    vram_gib: float | None = None
    """Memory of each GPU."""
    disk_gib: float | None = None
    """Disk space."""
    memory_gib: float | None = None
    """Limit of the container's memory."""
    shm_gib: float | None = None
    """Shared memory of the container."""
    avoided_machines: tuple[str, ...] = ()
    """Hosts that it must not get."""

    @classmethod
    def of(cls, wish: MachineWish) -> Self:
        return cls(**dataclasses.asdict(wish))

    def value(self) -> MachineWish:
        return MachineWish(**dict(self))


class AppliedAdviceDocument(Document):
    """A recommendation that a job follows."""

    number: int
    """Its place in the analysis, from 1."""
    what: str
    """The parameter that changes, or what is asked of the machine."""
    before: Any
    """The value of the earlier job."""
    after: Any
    """The value of this job."""
    severity: str
    """`critical`, `warning` or `info`."""
    title: str
    """The recommendation in a few words."""
    config_path: str
    """Where the analysis found the setting."""
    note: str | None = None
    """How the value differs from the recommended one, and why."""

    @classmethod
    def of(cls, applied: AppliedAdvice) -> Self:
        return cls(**plain(dataclasses.asdict(applied)))

    def value(self) -> AppliedAdvice:
        given = dict(self)
        return AppliedAdvice(**{**given, "before": unplain(given["before"]), "after": unplain(given["after"])})


class RentalDocument(Document):
    """A rented machine."""

    label: str
    """Its label, which names installation, job and attempt."""
    provider: str
    """Where it was rented."""
    instance: str | None
    """The provider's id of it."""
    state: RentalState
    """`REQUESTED`, `HELD`, `RELEASING` or `GONE`."""
    attempt: int
    """The attempt that it was rented for."""
    surplus: bool
    """Whether it was rented in addition by mistake; such a machine is released at once."""
    held_at: Instant | None
    """When the provider had it ready for us."""
    gone_at: Instant | None
    """When the provider confirmed that it is gone."""
    requested_at: Instant = 0.0
    """When it was requested."""
    release_asked_at: Instant | None = None
    """When its release was first requested."""
    stopped_at: Instant | None = None
    """When it was stopped with its disk kept."""

    @classmethod
    def of(cls, rental: Rental) -> Self:
        return cls(
            label=rental.label,
            provider=rental.provider,
            instance=rental.provider_id,
            state=rental.state,
            attempt=rental.attempt,
            surplus=rental.surplus,
            held_at=rental.held_at,
            gone_at=rental.gone_at,
            requested_at=rental.requested_at,
            release_asked_at=rental.release_asked_at,
            stopped_at=rental.stopped_at,
        )

    def value(self, job_id: str) -> Rental:
        return Rental(
            label=self.label,
            job_id=job_id,
            attempt=self.attempt,
            provider=self.provider,
            state=self.state,
            provider_id=self.instance,
            surplus=self.surplus,
            requested_at=self.requested_at,
            held_at=self.held_at,
            release_asked_at=self.release_asked_at,
            stopped_at=self.stopped_at,
            gone_at=self.gone_at,
        )


class CostLineDocument(Document):
    """What one machine cost."""

    rental: str
    """The label of the machine."""
    kind: str = Field(examples=["gpu"])
    """What is paid for, such as `gpu`."""
    rate_per_hour_micros: int
    """Price per hour in micro-dollars."""
    started_at: Instant
    """When it began to cost."""
    ended_at: Instant | None
    """Null: it still costs."""
    amount_micros: int
    """Cost so far in micro-dollars."""
    source: str = Field(examples=["estimate"])
    """`provider`: as billed, and final; `estimate`: from rate and time."""

    @classmethod
    def of(cls, line: CostLine, *, now: float) -> Self:
        return cls(
            rental=line.rental_label,
            kind=line.kind,
            rate_per_hour_micros=line.rate_per_hour,
            started_at=line.started_at,
            ended_at=line.ended_at,
            amount_micros=line.so_far(now=now),
            source=line.source,
        )

    def value(self, job_id: str) -> CostLine:
        return CostLine(
            rental_label=self.rental,
            job_id=job_id,
            kind=self.kind,
            rate_per_hour=MicroDollars(self.rate_per_hour_micros),
            started_at=self.started_at,
            ended_at=self.ended_at,
            amount=MicroDollars(self.amount_micros),
            source=self.source,
        )


class AlertDocument(Document):
    """A problem that needs a look."""

    kind: str
    """What kind of problem it is."""
    message: str
    """The problem as a sentence."""
    at: Instant
    """When it was raised."""

    @classmethod
    def of(cls, alert: Alert) -> Self:
        return cls(kind=alert.kind, message=alert.message, at=alert.at)

    def value(self, job_id: str) -> Alert:
        return Alert(kind=self.kind, message=self.message, job_id=job_id, at=self.at)


class TransferDocument(Document):
    """A transfer to or from the machine that runs now."""

    way: str = Field(examples=["sending"])
    """`sending` or `fetching`."""
    bytes: int
    """Bytes that were transferred so far."""
    total: int
    """Bytes in all."""
    bytes_per_second: float | None = None
    """The current speed."""
    eta_seconds: float | None = None
    """Time that is left at this speed."""

    @classmethod
    def of(cls, transfer: Transfer) -> Self:
        return cls(**dataclasses.asdict(transfer))

    def value(self) -> Transfer:
        return Transfer(**dict(self))


class ExecutionDocument(Document):
    """Where a job runs."""

    provider: str
    """Name of the provider."""


class ProviderStateDocument(Document):
    """The machine that a job has now."""

    instanceId: str | None = None
    """The provider's id of the machine."""
    sshHost: str | None = None
    """The address to log in to."""
    activeStep: str | None = None
    """The step of the plan that runs."""


class UsedDocument(Document):
    """What a job used so far."""

    rented_hours: float
    """Hours that its machines were rented."""
    gpu_memory_gib: float | None = None
    """The highest memory use of the fullest GPU in the current attempt; null: not measured."""
    gpu_gib: float | None = None
    """The memory that this GPU has."""


class LimitsDocument(Document):
    """When a job is stopped, and the highest price of its machine."""

    max_hours: float
    """The job is stopped after this many hours."""
    max_spend_usd: Usd
    """The job is stopped before it costs more."""
    max_price_per_hour_usd: Usd | None = None
    """No machine that costs more per hour is rented."""
    max_seconds: float = 0.0
    """The hours in seconds, exactly."""


class ResumeDocument(Document):
    """The checkpoint that a job continues from."""

    path: str
    """The checkpoint's path."""
    step: int | None = None
    """Its training step."""
    state: str | None = None
    """What the trainer reads beside it."""


class ParkedDocument(Document):
    """Since when and why the machine is stopped with the model on its disk."""

    at: Instant
    """When it was stopped."""
    why: str
    """Why the model could not be downloaded."""
