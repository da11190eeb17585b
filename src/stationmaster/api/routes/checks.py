"""Checks of the installation. Only administrators see them."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading
from stationmaster.station.wire.checks import CheckDocument
from stationmaster.station.wire.document import Page

routes = APIRouter(prefix="/api/checks", tags=["checks"], responses=problems(401, 403, 422))


@routes.get("", operation_id="list_checks", summary="Settings, store, worker, alerts, accounts, channels and tools")
def list_checks(
    visit: Reading,
    offline: Annotated[bool, Query(description="Ask no service: neither accounts, bucket nor channels.")] = False,
) -> Page[CheckDocument]:
    return Page(items=tuple(CheckDocument.of(result) for result in visit.station.checks.results(offline=offline)))
