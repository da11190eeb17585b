"""The report of a sweep: each machine, the verdict, and what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from stationmaster.model import Machine, Rental
from stationmaster.money import ZERO, MicroDollars


class Act(StrEnum):
    LEAVE = "leave"  # in use, or not ours
    DESTROY = "destroy"
    STOP = "stop"
    ALERT = "alert"  # for a person to check


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    act: Act
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One machine, the verdict on it, and whether the sweep acted on it."""

    provider: str
    machine: Machine
    verdict: Verdict
    rental: Rental | None = None  # the store's row, for the sweep itself
    job_id: str | None = None
    cost: MicroDollars = ZERO  # so far, by its cost lines; of a machine without any, by its price and age
    done: bool = False
    problem: str | None = None

    def words(self) -> dict[str, str]:
        """For the log."""
        return {
            "provider": self.provider,
            "instance": self.machine.provider_id,
            "label": self.machine.label,
            "status": str(self.machine.status),
            "job": str(self.job_id),
            "act": self.verdict.act.value,
            "why": self.verdict.why,
        }


@dataclass(slots=True)
class Report:
    """What a sweep found and did."""

    findings: list[Finding] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def price_per_hour(self) -> MicroDollars:
        """Of all machines together."""
        return MicroDollars(sum(finding.machine.price_per_hour for finding in self.findings))

    @property
    def cost(self) -> MicroDollars:
        """Of all machines together, so far."""
        return MicroDollars(sum(finding.cost for finding in self.findings))
