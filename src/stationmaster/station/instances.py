"""Machines: every one that may bill, ours or not, with what the safety net thinks of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.control.periodic.sweep_report import Act, Finding, Report, Verdict

__all__ = ["Act", "DestroyedMachines", "Finding", "Fleet", "FleetMachine", "Instances", "Report", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Which machines are to end: those of this installation, unless another one is named."""

    installation: str | None = None
    with_foreign: bool = False  # machines that no Stationmaster rented, too


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMachine:
    """One machine that is to end, as its provider lists it."""

    provider_id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DestroyedMachines:
    report: Report
    cancelled: tuple[str, ...]  # the jobs that would have rented other machines


class Instances(Protocol):
    def look(self) -> Report:
        """Every machine of every provider with the sweep's verdict; nothing is done, and nothing needs to be written.

        A provider that does not answer is listed in the report's problems.
        """

    def sweep(self) -> Report:
        """Look and act on the verdicts: destroy machines that no job needs; stop, with their disk kept, those that
        still have the only copy of a model. May be repeated.

        Raises ConfigInvalid where the home cannot be written to.
        """

    def machines_of(self, fleet: Fleet) -> Sequence[FleetMachine]:
        """The machines of a fleet, by a look. Nothing is done."""

    def destroy(self, machines: Sequence[FleetMachine], *, count: int) -> DestroyedMachines:
        """Cancel the jobs of these machines and destroy them at once with what is on them, beside a sweep.

        `count` is what a person typed. Raises UserError, with nothing done, where it is not the number of machines;
        ConfigInvalid where the home cannot be written to.
        """
