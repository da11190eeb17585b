"""Entity tags: a client that has an answer already is told that it is still the same, without getting it again."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from typing import Any

from fastapi import Request, Response

from stationmaster.station.wire.document import Document

NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "The answer is the one with the tag in If-None-Match"}
}


def tagged(request: Request, document: Document, *, ignored: Collection[str] = ()) -> Response:
    """The document as a response with a tag, or 304 if the client has it. Changes of `ignored` fields do not count."""
    same = document.model_dump_json(exclude=set(ignored))
    tag = f'W/"{hashlib.sha256(same.encode()).hexdigest()[:32]}"'
    headers = {"ETag": tag, "Cache-Control": "private, no-cache"}
    known = {one.strip() for one in request.headers.get("if-none-match", "").split(",")}
    if known & {tag, tag.removeprefix("W/")}:
        return Response(status_code=304, headers=headers)
    return Response(document.model_dump_json(), headers=headers, media_type="application/json")
