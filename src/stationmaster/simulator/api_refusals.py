"""The API's error answers, in the service's shapes."""

from __future__ import annotations

from typing import Any

from stationmaster.errors import StationmasterError


class ApiRefusal(StationmasterError):
    """The API refused the request."""

    def __init__(self, status: int, error: str, message: str, **extra: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body: dict[str, Any] = {"success": False, "error": error, "msg": message, **extra}


def invalid_key() -> ApiRefusal:
    return ApiRefusal(401, "auth_error", "Invalid user key")


def login_required() -> ApiRefusal:
    return ApiRefusal(403, "auth_error", "This action requires login.")


def beyond_this_key() -> ApiRefusal:
    """For an instance's key used for something else. (The live service's code is not confirmed.)"""
    return ApiRefusal(403, "forbidden", "This key may only manage its own instance.")


def no_such_instance(instance_id: int) -> ApiRefusal:
    return ApiRefusal(404, "no_such_instance", f"Instance {instance_id} not found.")


def unknown_ask(ask_id: int) -> ApiRefusal:
    message = f"error 404/3603: no_such_ask Instance type by id {ask_id} is not available."
    return ApiRefusal(404, "invalid_args", message, ask_id=ask_id)


def ask_taken(ask_id: int, *, status: int = 410) -> ApiRefusal:
    """410 in the documentation, 400 in reports of several clients."""
    message = f"error 410/3907: no_such_ask Instance type {ask_id} is no longer available."
    return ApiRefusal(status, "no_such_ask", message)


def invalid_args(message: str) -> ApiRefusal:
    return ApiRefusal(400, "invalid_args", message)


def invalid_request(message: str) -> ApiRefusal:
    return ApiRefusal(400, "invalid_request", message)


def invalid_price(message: str) -> ApiRefusal:
    return ApiRefusal(400, "invalid_price", message)


def insufficient_credit() -> ApiRefusal:
    """The code is known, the live HTTP status is not."""
    return ApiRefusal(400, "insufficient_credit", "Your account lacks credit; see the billing page.")
