"""The reference page of the HTTP API: every route with its right, every document, and words for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.routing import APIRoute

from scripts.api_page import described_app
from stationmaster.api.app import ROUTES
from tests.support.programs import ROOT

PAGE = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
DESCRIPTION = described_app().openapi()


def _operations() -> Iterator[tuple[str, dict[str, Any]]]:
    for path, methods in DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            yield f"{method.upper()} {path}", operation


@pytest.mark.parametrize(("route", "operation"), list(_operations()), ids=[route for route, _ in _operations()])
def test_a_route_says_what_it_does_and_is_on_the_page(route: str, operation: dict[str, Any]) -> None:
    assert operation["summary"]
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", operation["operationId"])
    assert [each["name"] for each in operation.get("parameters", ()) if not each.get("description")] == []
    assert f"\n### {operation['operationId']}\n\n`{route}`: " in PAGE


def test_no_two_routes_have_an_id_in_common() -> None:
    ids = [operation["operationId"] for _, operation in _operations()]
    assert len(ids) == len(set(ids))


def test_the_page_names_the_right_that_each_route_of_the_station_needs() -> None:
    routes = [route for routes in ROUTES for route in routes.routes if isinstance(route, APIRoute)]
    shown = dict(re.findall(r"^\| \[`(\w+ [^`]+)`\]\(#\w+\) \| .* \| (.*) \|$", PAGE, re.MULTILINE))
    for route in routes:
        asked = (getattr(each.call, "right", None) for each in route.dependant.dependencies)
        rights = [str(right) for right in asked if right is not None]
        for method in (route.methods or ()) if route.include_in_schema else ():
            assert shown[f"{method} {route.path_format}"] == (f"`{rights[0]}`" if rights else "none")


def test_every_error_is_a_problem() -> None:
    for route, operation in _operations():
        errors = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
        for status, answer in errors.items():
            media = set(answer.get("content", {}))
            assert media <= {"application/problem+json"} or route == "GET /readyz", (route, status)
