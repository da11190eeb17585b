"""Machines: all that may cost money, ours or not. Only administrators see them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from stationmaster.api.problems import problems
from stationmaster.api.visit import Managing, Reading
from stationmaster.station.instances import Fleet
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.instances import (
    DestroyedDocument,
    DestroyMachines,
    FleetMachineDocument,
    SweepDocument,
)

routes = APIRouter(prefix="/api/instances", tags=["instances"], responses=problems(400, 401, 403, 422))


@routes.get("", operation_id="list_instances", summary="Every machine, and what a sweep would do")
def list_instances(visit: Reading) -> SweepDocument:
    return SweepDocument.of(visit.station.instances.look())


@routes.get("/fleet", operation_id="list_fleet", summary="The machines of one installation, to destroy them")
def list_fleet(
    visit: Reading,
    installation: Annotated[
        str | None, Query(description="Another installation than this one.", max_length=200)
    ] = None,
    with_foreign: Annotated[bool, Query(description="Also machines that no Stationmaster rented.")] = False,
) -> Page[FleetMachineDocument]:
    machines = visit.station.instances.machines_of(Fleet(installation=installation, with_foreign=with_foreign))
    return Page(items=tuple(FleetMachineDocument.of(machine) for machine in machines))


@routes.post("/sweep", operation_id="sweep_instances", summary="Destroy or stop machines that no job needs")
def sweep_instances(visit: Managing) -> SweepDocument:
    return SweepDocument.of(visit.station.instances.sweep())


@routes.post("/destroy", operation_id="destroy_instances", summary="Destroy machines, and cancel their jobs")
def destroy_instances(visit: Managing, doomed: DestroyMachines) -> DestroyedDocument:
    machines = [machine.value() for machine in doomed.machines]
    return DestroyedDocument.of(visit.station.instances.destroy(machines, count=doomed.count))
