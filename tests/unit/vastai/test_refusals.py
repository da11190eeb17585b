from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stationmaster.errors import AccessRefused, NoCapacity, ProviderBusy, ProviderError, ProviderFault
from stationmaster.providers.vastai.refusals import Refusal, error_of, read_refusal


def read(status: int, body: Any, **headers: str) -> Refusal | None:
    content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
    return read_refusal(status, headers, content, now=1000.0, secret="k3y-of-the-account")


def error(status: int, body: Any, **headers: str) -> ProviderError:
    refusal = read(status, body, **headers)
    assert refusal is not None
    return error_of(refusal, doing="rent the machine")


@pytest.mark.parametrize(
    ("status", "body", "kind"),
    [
        (401, {"success": False, "error": "auth_error", "msg": "Invalid user key"}, AccessRefused),
        (404, {"success": False, "error": "auth_error", "msg": "Invalid user key"}, AccessRefused),
        (403, {"success": False, "msg": "This action requires login."}, AccessRefused),
        (404, {"msg": "Session expired. Please log in again."}, AccessRefused),
        (400, {"success": False, "error": "insufficient_credit", "msg": "lacks credit"}, AccessRefused),
        (402, {"success": False, "error": "missing_billing"}, AccessRefused),
        (410, {"error": "no_such_ask", "msg": "error 410/3907: no_such_ask Instance type 5"}, NoCapacity),
        (400, {"error": "no_such_ask"}, NoCapacity),
        (404, {"error": "invalid_args", "msg": "error 404/3603: no_such_ask Instance type by id 5"}, NoCapacity),
        (400, {"error": "invalid_price", "msg": "too low"}, NoCapacity),
        (200, {"success": False, "error": "no_such_ask"}, NoCapacity),
        (400, {"error": "invalid_args", "msg": "image is required"}, ProviderError),
        (410, {"error": "deprecated_endpoint", "msg": "Use /api/v1/instances/"}, ProviderFault),
        (200, {"success": False, "error": "deprecated_endpoint"}, ProviderFault),
        (429, "API requests too frequent", ProviderBusy),
        (429, {"detail": "API requests too frequent endpoint threshold=4.5"}, ProviderBusy),
        (429, {"success": False, "error": "rate_limit_exceeded", "msg": "slow down"}, ProviderBusy),
        (200, {"success": False, "error": "rate_limit_exceeded"}, ProviderBusy),
        (502, "<html><h1>Bad Gateway</h1></html>", ProviderBusy),
    ],
)
def test_what_a_refusal_means(status: int, body: Any, kind: type[ProviderError]) -> None:
    assert type(error(status, body)) is kind


@pytest.mark.parametrize(
    ("body", "headers", "seconds"),
    [
        ("API requests too frequent", {}, None),
        ({"detail": "API requests too frequent endpoint threshold=4.5"}, {}, 4.5),
        ({"error": "rate_limit_exceeded", "retry_after": 7}, {}, 7.0),
        ({"error": "rate_limit_exceeded"}, {"retry-after": "12"}, 12.0),
        ({"error": "rate_limit_exceeded", "retry_after": 7}, {"retry-after": "12"}, 12.0),
        ({"error": "search_quota_exceeded"}, {"x-ratelimit-reset": "4600"}, 3600.0),
        ({"error": "rate_limit_exceeded"}, {"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
    ],
)
def test_how_long_to_stay_away(body: Any, headers: dict[str, str], seconds: float | None) -> None:
    busy = error(429, body, **headers)
    assert isinstance(busy, ProviderBusy)
    assert busy.retry_after_seconds == seconds


@pytest.mark.parametrize(
    ("status", "body", "gone"),
    [
        (404, {"error": "no_such_instance", "msg": "Instance 5 not found."}, True),
        (404, {"error": "not_found"}, True),
        (404, {"error": "auth_error", "msg": "Invalid user key"}, False),
        (404, "<html>404</html>", False),
        (410, {"error": "deprecated_endpoint"}, False),
        (500, {"error": "no_such_instance"}, False),
    ],
)
def test_only_the_services_own_word_means_gone(status: int, body: Any, gone: bool) -> None:
    refusal = read(status, body)
    assert refusal is not None
    assert refusal.is_gone is gone


def test_a_yes_is_no_refusal() -> None:
    assert read(200, {"success": True}) is None
    assert read(200, []) is None


def test_a_contract_inside_an_error_is_seen() -> None:
    refusal = read(400, {"success": False, "error": "invalid_price", "msg": "bid too low", "new_contract": 99})
    assert refusal is not None
    assert refusal.new_contract == 99


def test_a_persons_line_is_one_line_without_markup_or_key() -> None:
    problem = error(500, "<html><body>\n <h1>Oops</h1>\n key k3y-of-the-account\n</body></html>")
    assert str(problem) == "Vast.ai did not rent the machine: Oops key …"


@pytest.mark.parametrize("code", ["auth_error", "insufficient_credit"])
def test_what_a_person_must_do_is_said(code: str) -> None:
    assert error(400, {"success": False, "error": code}).hint


@given(st.integers(min_value=100, max_value=599), st.binary(max_size=200))
def test_no_answer_is_too_odd_to_be_understood(status: int, body: bytes) -> None:
    refusal = read_refusal(status, {}, body, now=0.0)
    if refusal is not None:
        assert "\n" not in str(error_of(refusal, doing="list its machines"))
