"""Machines: all that may cost money, ours or not, with the verdict of the sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stationmaster.control.periodic.sweep_report import Act, Finding, Report, Verdict

__all__ = ["Act", "DestroyedMachines", "Finding", "Fleet", "FleetMachine", "Instances", "Report", "Verdict"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Machines to destroy: those of this installation, unless another one is named."""

    installation: str | None = None
    with_foreign: bool = False  # also machines that no Stationmaster rented


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetMachine:
    """One machine to destroy, as its provider lists it."""

    provider_id: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DestroyedMachines:
    report: Report
    cancelled: tuple[str, ...]  # the jobs that would have rented other machines


class Instances(Protocol):
    def look(self) -> Report:
        """Every machine of every provider with the sweep's verdict. Changes nothing, and needs no writable home.

        A provider that does not answer is listed in the report's problems.
        """

    def sweep(self) -> Report:
        """Act on the verdicts: destroy machines that no job needs; stop, but keep the disk of, those that still have
        the only copy of a model. May be repeated.

        Raises ConfigInvalid if the home is not writable.
        """

    def machines_of(self, fleet: Fleet) -> Sequence[FleetMachine]:
        """The machines of a fleet, as the providers list them. Changes nothing."""

    def destroy(self, machines: Sequence[FleetMachine], *, count: int) -> DestroyedMachines:
        """Cancel the jobs of these machines and destroy them at once, data included; also sweep.

        `count` is the number that a person typed. Raises UserError, with nothing done, if it is not the number of
        machines, and ConfigInvalid if the home is not writable.
        """
