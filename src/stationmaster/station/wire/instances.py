"""Machines of all providers, with the verdict of the sweep."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.model import Machine, MachineStatus
from stationmaster.money import ZERO
from stationmaster.station.instances import (
    Act,
    DestroyedMachines,
    Finding,
    FleetMachine,
    Report,
    Verdict,
)
from stationmaster.station.wire.document import Document, Instant, RequestDocument, Usd


class MachineDocument(Document):
    """A machine, the verdict on it, and whether a sweep acted on it."""

    provider: str = Field(examples=["vastai"])
    """Where it is rented."""
    instance: str = Field(examples=["26213442"])
    """The provider's id of the machine."""
    label: str
    """Its label, which names installation, job and attempt."""
    status: MachineStatus
    """What the provider says of it."""
    job: str | None
    """The job that has rented it."""
    act: Act
    """What the sweep does or would do: `leave`, `destroy`, `stop` (and keep the disk), `alert` (a person looks)."""
    why: str
    """The reason for the verdict."""
    done: bool
    """Whether the sweep did it."""
    problem: str | None
    """Why the provider did not do it."""
    created_at: Instant
    """By the provider's clock."""
    price_per_hour_usd: Usd
    """What it costs per hour."""
    cost_usd: Usd = ZERO
    """So far, by the cost lines of its job; of a machine that has none, its price times its age."""
    gpu: str | None = None
    """Name of its GPU."""
    gpus: int = 0
    """How many GPUs it has."""
    machine_id: str | None = None
    """The provider's id of the computer that the machine is on."""
    interruptible: bool = False
    """Whether a higher bid can take it away."""
    message: str | None = None
    """From the provider."""

    @classmethod
    def of(cls, finding: Finding) -> Self:
        machine = finding.machine
        return cls(
            provider=finding.provider,
            instance=machine.provider_id,
            label=machine.label,
            status=machine.status,
            job=finding.job_id,
            act=finding.verdict.act,
            why=finding.verdict.why,
            done=finding.done,
            problem=finding.problem,
            created_at=machine.created_at,
            price_per_hour_usd=machine.price_per_hour,
            cost_usd=finding.cost,
            gpu=machine.gpu,
            gpus=machine.gpus,
            machine_id=machine.machine_id,
            interruptible=machine.interruptible,
            message=machine.message,
        )

    def value(self) -> Finding:
        machine = Machine(
            provider_id=self.instance,
            label=self.label,
            status=self.status,
            created_at=self.created_at,
            price_per_hour=self.price_per_hour_usd,
            gpu=self.gpu,
            gpus=self.gpus,
            machine_id=self.machine_id,
            interruptible=self.interruptible,
            message=self.message,
        )
        return Finding(
            provider=self.provider,
            machine=machine,
            verdict=Verdict(act=self.act, why=self.why),
            job_id=self.job,
            cost=self.cost_usd,
            done=self.done,
            problem=self.problem,
        )


class SweepDocument(Document):
    """What a sweep found, and did if it was to act."""

    machines: tuple[MachineDocument, ...]
    """Every machine that was found."""
    gone: tuple[str, ...]
    """Labels of machines that are confirmed to be gone."""
    problems: tuple[str, ...]
    """Providers that did not answer, with the reason."""
    price_per_hour_usd: Usd = ZERO
    """Of all machines together."""
    cost_usd: Usd = ZERO
    """Of all machines together, so far."""

    @classmethod
    def of(cls, report: Report) -> Self:
        return cls(
            machines=tuple(MachineDocument.of(finding) for finding in report.findings),
            gone=tuple(report.gone),
            problems=tuple(report.problems),
            price_per_hour_usd=report.price_per_hour,
            cost_usd=report.cost,
        )

    def value(self) -> Report:
        findings = [machine.value() for machine in self.machines]
        return Report(findings=findings, gone=list(self.gone), problems=list(self.problems))


class FleetMachineDocument(Document):
    """A machine that may be destroyed."""

    instance: str
    """The provider's id of the machine."""
    label: str
    """Its label."""

    @classmethod
    def of(cls, machine: FleetMachine) -> Self:
        return cls(instance=machine.provider_id, label=machine.label)

    def value(self) -> FleetMachine:
        return FleetMachine(provider_id=self.instance, label=self.label)


class DoomedMachine(RequestDocument):
    """A machine to destroy."""

    instance: str = Field(max_length=200)
    """The provider's id of the machine."""
    label: str = Field(max_length=200)
    """Its label."""

    def value(self) -> FleetMachine:
        return FleetMachine(provider_id=self.instance, label=self.label)


class DestroyMachines(RequestDocument):
    """Machines to destroy at once, data included; their jobs are cancelled."""

    machines: tuple[DoomedMachine, ...] = Field(max_length=10_000)
    """The machines; each must still have this label."""
    count: int = Field(ge=0, le=10_000)
    """How many a person has counted; nothing is done if it is another number."""

    @classmethod
    def of(cls, machines: tuple[FleetMachine, ...], count: int) -> Self:
        doomed = tuple(DoomedMachine(instance=one.provider_id, label=one.label) for one in machines)
        return cls(machines=doomed, count=count)


class DestroyedDocument(Document):
    """What was destroyed."""

    cancelled: tuple[str, ...]
    """Jobs that would have rented other machines."""
    report: SweepDocument
    """What happened to each machine."""

    @classmethod
    def of(cls, destroyed: DestroyedMachines) -> Self:
        return cls(cancelled=destroyed.cancelled, report=SweepDocument.of(destroyed.report))

    def value(self) -> DestroyedMachines:
        return DestroyedMachines(report=self.report.value(), cancelled=self.cancelled)
