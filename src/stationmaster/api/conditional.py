"""Answers that are made only if they have changed since the client last asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastapi import Request, Response

from stationmaster.api.file_response import matches
from stationmaster.station.wire.document import Document

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "Unchanged: see `If-None-Match`."}}
"""For the description of a route."""


def if_changed(request: Request, version: str, make: Callable[[], Document]) -> Response:
    """The document with its ETag; status 304, and nothing is made, if the client has this version."""
    etag = f'"{version}"'
    headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(make().model_dump_json(), headers=headers, media_type="application/json")
