"""The machines of a server's providers."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.station.http.connection import Connection
from stationmaster.station.instances import DestroyedMachines, Fleet, FleetMachine, Report
from stationmaster.station.wire.document import Page
from stationmaster.station.wire.instances import (
    DestroyedDocument,
    DestroyMachines,
    FleetMachineDocument,
    SweepDocument,
)

_PATH = "/api/instances"


class HttpInstances:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def look(self) -> Report:
        found = self._connection.send("GET", _PATH, patient=True)
        return SweepDocument.model_validate_json(found.content).value()

    def sweep(self) -> Report:
        return self._connection.post(f"{_PATH}/sweep", SweepDocument, patient=True).value()

    def machines_of(self, fleet: Fleet) -> Sequence[FleetMachine]:
        asked = {"installation": fleet.installation, "with_foreign": fleet.with_foreign}
        found = self._connection.send("GET", f"{_PATH}/fleet", parameters=asked, patient=True)
        return [one.value() for one in Page[FleetMachineDocument].model_validate_json(found.content).items]

    def destroy(self, machines: Sequence[FleetMachine], *, count: int) -> DestroyedMachines:
        body = DestroyMachines.of(tuple(machines), count)
        return self._connection.post(f"{_PATH}/destroy", DestroyedDocument, body, patient=True).value()
