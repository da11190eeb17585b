"""The API's description is true: whatever is sent, the answer is one that OpenAPI declares, and never a server's error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from stationmaster.api.app import Service, build_app
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from tests.support.jobs.peopled_world import PeopledWorld

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


@pytest.fixture(scope="module")
def described(people: PeopledWorld) -> Iterator[object]:
    app = build_app(Service(station=people.local, doorkeeper=LocalDoorkeeper(people.store)))
    yield schemathesis.openapi.from_asgi("/api/openapi.json", app)


schema = schemathesis.pytest.from_fixture("described")


@schema.parametrize()
@settings(max_examples=12, deadline=None, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck))
def test_every_answer_is_one_that_is_declared(case: schemathesis.Case, people: PeopledWorld) -> None:
    headers = {"Authorization": f"Bearer {people.tokens['administrator']}"}
    case.call_and_validate(headers=headers, checks=CHECKS)
