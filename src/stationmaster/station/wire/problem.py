"""Errors as RFC 9457 problem documents, and back: a client raises the same exception as the local station would."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from pydantic import Field

from stationmaster import errors
from stationmaster.errors import ServerError, StationmasterError, UserError
from stationmaster.station.wire.document import Document

MEDIA_TYPE = "application/problem+json"


class Problem(Document):
    """An error (RFC 9457)."""

    type: str = Field(examples=["urn:stationmaster:problem:NotFound"])
    """Identifies the kind of error; stable."""
    title: str = Field(examples=["The job, recipe, user or file does not exist."])
    """What all errors of this kind have in common."""
    status: int = Field(examples=[404])
    """The HTTP status."""
    detail: str = Field(examples=["there is no job cats"])
    """What happened, in one line."""
    hint: str | None = Field(default=None, examples=["GET /api/jobs lists them"])
    """What to do about it."""
    retry_after_seconds: float | None = None
    """When a retry may succeed."""

    @classmethod
    def of(cls, error: StationmasterError) -> Problem:
        return cls(
            type=f"urn:stationmaster:problem:{type(error).__name__}",
            title=(type(error).__doc__ or "").strip(),
            status=error.http_status,
            detail=_sendable(str(error)),
            hint=None if error.hint is None else _sendable(error.hint),
            retry_after_seconds=getattr(error, "retry_after_seconds", None),
        )

    def error(self) -> StationmasterError:
        """The exception that the server raised, or one that says as much where this version does not know its kind."""
        known: Any = getattr(errors, self.type.rpartition(":")[2], None)
        if not (isinstance(known, type) and issubclass(known, StationmasterError)):
            if HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return UserError(self.detail, hint=self.hint)
            return ServerError(f"the server answers {self.status}: {self.detail}", hint=self.hint)
        raised = known(self.detail, hint=self.hint)
        if hasattr(raised, "retry_after_seconds"):
            raised.retry_after_seconds = self.retry_after_seconds
        return raised


def _sendable(text: str) -> str:
    r"""Text without lone surrogates: an error may repeat a name that a request had.

    >>> _sendable("\ud800 is not an option")
    '? is not an option'
    """
    return text.encode("utf-8", "replace").decode()
