"""The report of a sweep: each machine, the verdict, and what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from stationmaster.model import Job, Machine, Rental


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
    rental: Rental | None
    job: Job | None
    done: bool = False
    problem: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "provider": self.provider,
            "instance": self.machine.provider_id,
            "label": self.machine.label,
            "status": self.machine.status,
            "job": self.job.id if self.job else None,
            "act": self.verdict.act,
            "why": self.verdict.why,
            "done": self.done,
            "problem": self.problem,
        }


@dataclass(slots=True)
class Report:
    """What a sweep found and did."""

    findings: list[Finding] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def as_json(self) -> dict[str, Any]:
        return {
            "machines": [finding.as_json() for finding in self.findings],
            "gone": self.gone,
            "problems": self.problems,
        }
