"""The machines of all providers, compared with the store; destroys those not needed, or those that a person names."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence

from stationmaster.control.periodic.sweep import Sweeper
from stationmaster.control.periodic.sweep_report import Report
from stationmaster.control.wiring.build import build_world
from stationmaster.control.wiring.providers import Waiting
from stationmaster.errors import AlreadyEnded, NotFound, UserError
from stationmaster.model import Desired, Label
from stationmaster.station.instances import DestroyedMachines, Fleet, FleetMachine
from stationmaster.station.local.installation import Installation
from stationmaster.store.store import Store


class LocalInstances:
    def __init__(self, installation: Installation) -> None:
        self._installation = installation

    def look(self) -> Report:
        return asyncio.run(self._sweep(self._installation.readable_store, act=False))

    def sweep(self) -> Report:
        return asyncio.run(self._sweep(self._installation.store, act=True))

    def machines_of(self, fleet: Fleet) -> Sequence[FleetMachine]:
        wanted = fleet.installation or self._installation.readable_store.installation_id
        every = fleet.installation is None and fleet.with_foreign
        machines = [finding.machine for finding in self.look().findings]
        return [
            FleetMachine(provider_id=machine.provider_id, label=machine.label)
            for machine in machines
            if every or _installation_of(machine.label) == wanted
        ]

    def destroy(self, machines: Sequence[FleetMachine], *, count: int) -> DestroyedMachines:
        if count != len(machines):
            raise UserError(
                f"{count} was typed, but there are {len(machines)} machine(s) to destroy; nothing was done",
                hint=f"check them with `stationmaster instances`, then type {len(machines)}",
            )
        cancelled = self._cancel_jobs_of(machines)
        doomed = frozenset(machine.provider_id for machine in machines)
        report = asyncio.run(self._sweep(self._installation.store, act=True, doomed=doomed))
        return DestroyedMachines(report=report, cancelled=cancelled)

    def _cancel_jobs_of(self, machines: Sequence[FleetMachine]) -> tuple[str, ...]:
        """Cancel the jobs first: a job whose machine is destroyed rents another one."""
        store = self._installation.store
        labels = [Label.parse(machine.label) for machine in machines]
        cancelled = []
        for job_id in {label.job for label in labels if label and label.installation == store.installation_id}:
            with contextlib.suppress(AlreadyEnded, NotFound):
                store.jobs.desire(job_id, Desired.CANCEL)
                cancelled.append(job_id)
        return tuple(cancelled)

    async def _sweep(self, store: Store, *, act: bool, doomed: frozenset[str] = frozenset()) -> Report:
        settings = self._installation.settings
        # Only a look may give up early; to destroy machines, retry as patiently as a worker does.
        waiting = Waiting(hurried=not act, pause=self._installation.pause)
        world = build_world(settings, self._installation.environ, store, waiting=waiting)
        try:
            return await Sweeper(world).sweep(act=act, doomed=doomed)
        finally:
            await world.close()


def _installation_of(label: str) -> str | None:
    parsed = Label.parse(label)
    return None if parsed is None else parsed.installation
