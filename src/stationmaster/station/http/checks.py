"""Checks of the server's installation."""

from __future__ import annotations

from collections.abc import Sequence

from stationmaster.errors import UserError
from stationmaster.station.checks import CheckResult, WorkerService
from stationmaster.station.http.connection import Connection
from stationmaster.station.wire.checks import CheckDocument
from stationmaster.station.wire.document import Page


class HttpChecks:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def results(self, *, offline: bool = False) -> Sequence[CheckResult]:
        found = self._connection.send("GET", "/api/checks", parameters={"offline": offline or None}, patient=True)
        return [one.value() for one in Page[CheckDocument].model_validate_json(found.content).items]

    def worker_service(self) -> WorkerService:
        raise UserError(
            "a service for a worker is set up on the computer that it runs on",
            hint="run `stationmaster doctor --service` on the server itself",
        )
