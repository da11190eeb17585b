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
    total_steps: int | None = None
    epoch: Number | None = None
    loss: Number | None = None
    first_loss: Number | None = None
    learning_rate: Number | None = None
    steps_per_second: Number | None = None
    """As the trainer prints it, else measured over the last minutes of training."""
    eta_seconds: Number | None = None
    """As the trainer prints it, else the steps left at the measured speed."""
    phase: str | None = None
    """What the training does: `loading`, `caching`, `training`, `sampling`, `evaluating`, `saving`, …; null once it is
    over, like its speed and ETA."""
    phase_since: Instant | None = None
    active_step: str | None = None
    """The step of the plan that runs."""
    at: float | None = None
    """When it was read, in seconds since 1970."""
    percent: float | None = None

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
    vram_gib: float | None = None
    disk_gib: float | None = None
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
    after: Any
    severity: str
    title: str
    config_path: str
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
    provider: str
    instance: str | None
    """The provider's id of it."""
    state: RentalState
    attempt: int
    surplus: bool
    """Whether it was rented in addition by mistake; such a machine is released at once."""
    held_at: Instant | None
    gone_at: Instant | None
    requested_at: Instant = 0.0
    release_asked_at: Instant | None = None
    stopped_at: Instant | None = None

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
    rate_per_hour_micros: int
    started_at: Instant
    ended_at: Instant | None
    """Null: it still costs."""
    amount_micros: int
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
    message: str
    at: Instant

    @classmethod
    def of(cls, alert: Alert) -> Self:
        return cls(kind=alert.kind, message=alert.message, at=alert.at)

    def value(self, job_id: str) -> Alert:
        return Alert(kind=self.kind, message=self.message, job_id=job_id, at=self.at)


class TransferDocument(Document):
    """A transfer to or from the machine that runs now."""

    way: str = Field(examples=["sending"])
    bytes: int
    total: int
    bytes_per_second: float | None = None
    eta_seconds: float | None = None

    @classmethod
    def of(cls, transfer: Transfer) -> Self:
        return cls(**dataclasses.asdict(transfer))

    def value(self) -> Transfer:
        return Transfer(**dict(self))


class ExecutionDocument(Document):
    """Where a job runs."""

    provider: str


class ProviderStateDocument(Document):
    """The machine that a job has now."""

    instanceId: str | None = None
    sshHost: str | None = None
    activeStep: str | None = None
    """The step of the plan that runs."""


class UsedDocument(Document):
    """What a job used so far."""

    rented_hours: float
    gpu_memory_gib: float | None = None
    """The highest memory use of the fullest GPU in the current attempt; null: not measured."""
    gpu_gib: float | None = None
    """The memory that this GPU has."""


class LimitsDocument(Document):
    """When a job is stopped, and the highest price of its machine."""

    max_hours: float
    max_spend_usd: Usd
    max_price_per_hour_usd: Usd | None = None
    max_seconds: float = 0.0
    """The hours in seconds, exactly."""


class ResumeDocument(Document):
    """The checkpoint that a job continues from."""

    path: str
    step: int | None = None
    state: str | None = None
    """What the trainer reads beside it."""


class ParkedDocument(Document):
    """Since when and why the machine is stopped with the model on its disk."""

    at: Instant
    why: str
