"""The API's description is true: whatever is sent, the answer is one that OpenAPI declares, and never our own error."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from scripts.api_page import described_app
from tests.support.jobs.peopled_world import ANNS_JOB, PeopledWorld

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
FEW, MANY = 2, 30  # requests to each route: in every run, which chooses others each time at home, and in the long one
EXISTING = {"job": ANNS_JOB, "user": "ann", "recipe": "tiny-lora@1", "table": "StepMetric"}

WHOLE = described_app().openapi()
# The server that is asked takes no uploads from machines, so it does not have their routes.
PATHS = {path: methods for path, methods in WHOLE["paths"].items() if not path.startswith("/api/uploads/")}
SCHEMA = schemathesis.openapi.from_dict(deepcopy({**WHOLE, "paths": PATHS}))
OPERATIONS = [(path, method) for path, methods in PATHS.items() for method in methods]


@pytest.fixture(scope="module")
def session(people: PeopledWorld) -> requests.Session:
    asking = requests.Session()
    asking.headers["Authorization"] = f"Bearer {people.tokens['administrator']}"
    return asking


@pytest.mark.parametrize(
    "examples", [pytest.param(FEW, id="few"), pytest.param(MANY, id="many", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("path", "method"), OPERATIONS, ids=[f"{method} {path}" for path, method in OPERATIONS])
def test_every_answer_is_one_that_is_declared(
    people: PeopledWorld, session: requests.Session, path: str, method: str, examples: int
) -> None:
    operation = SCHEMA[path][method]

    @settings(max_examples=examples, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(case=requests_for(operation, is_harmless=method == "get"))
    def ask(case: Any) -> None:
        answer = case.call(base_url=people.urls[0], session=session)
        case.validate_response(answer, checks=CHECKS)

    ask()


def requests_for(operation: Any, *, is_harmless: bool) -> st.SearchStrategy[Any]:
    """Requests as described, others that are not, and about what exists if that changes nothing."""
    kinds = [operation.as_strategy(), operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)]
    real = {name: value for name, value in EXISTING.items() if f"{{{name}}}" in operation.path}
    if is_harmless and real:
        kinds.append(operation.as_strategy(path_parameters=real))
    return st.one_of(kinds)
