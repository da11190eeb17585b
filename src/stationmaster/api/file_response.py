"""Files as downloads, whole or one range of them (RFC 9110).

They come from strangers' machines: a browser saves them and never shows them as a page.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from stationmaster.api.problems import problem_response, problems
from stationmaster.errors import UserError
from stationmaster.station.stored_file import StoredFile

_MEDIA_TYPE = "application/octet-stream"
_RANGE = re.compile(r"\s*bytes\s*=\s*(\d{0,18})\s*-\s*(\d{0,18})\s*", re.IGNORECASE | re.ASCII)

_BYTES: dict[str, Any] = {_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}}
FILE_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The whole file; its `ETag` is its SHA-256.", "content": _BYTES},
    206: {"description": "The range that the request's `Range` names.", "content": _BYTES},
    304: {"description": "Unchanged: the file has the ETag of `If-None-Match`."},
    **problems(416),
}
"""What `file_response` answers, for the description of a route."""


class RangeRefused(UserError):
    """The file does not have that range."""

    http_status = 416


def file_response(request: Request, file: StoredFile) -> Response:
    """The file, or the one range of it that the request names; of several ranges, the whole file."""
    etag = f'"{file.sha256}"'
    headers = {
        "ETag": etag,
        "Accept-Ranges": "bytes",
        "Cache-Control": "private, no-cache",
        "Content-Disposition": attachment(file.name),
        "Content-Security-Policy": "default-src 'none'; sandbox",
        "X-Content-Type-Options": "nosniff",
    }
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    is_head = request.method == "HEAD"
    wanted = None if is_head or not _range_counts(request, etag) else _range(request.headers.get("range"), file.size)
    if wanted is not None and not wanted:
        refused = problem_response(RangeRefused(f"the file has {file.size} bytes"))
        refused.headers["Content-Range"] = f"bytes */{file.size}"
        return refused
    part = range(file.size) if wanted is None else wanted
    headers["Content-Length"] = str(len(part))
    if is_head:
        return Response(headers=headers, media_type=_MEDIA_TYPE)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{file.size}"
    status = 200 if wanted is None else 206
    return StreamingResponse(file.read(part.start, part.stop), status, headers, _MEDIA_TYPE)


def matches(header: str | None, etag: str) -> bool:
    """Whether an If-None-Match header names this ETag."""
    return header is not None and (header.strip() == "*" or etag in [each.strip() for each in header.split(",")])


def attachment(name: str) -> str:
    """The Content-Disposition of a download: any name, in characters that every header may have.

    >>> print(attachment('a"b\\n.png'))
    attachment; filename="a_b_.png"; filename*=UTF-8''a%22b%0A.png
    """
    plain = re.sub(r"[^A-Za-z0-9._ -]", "_", name)
    encoded = quote(name.encode("utf-8", errors="replace"), safe="")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{encoded}"


def _range_counts(request: Request, etag: str) -> bool:
    """With If-Range, only while the file is the one that the earlier part is of."""
    condition = request.headers.get("if-range")
    return condition is None or condition.strip() == etag


def _range(header: str | None, size: int) -> range | None:
    """The bytes that are wanted; empty if there are none such, None if the whole file is."""
    found = None if header is None else _RANGE.fullmatch(header)
    if found is None or found[1] == found[2] == "":
        return None
    if found[1] == "":  # the last bytes
        return range(max(0, size - int(found[2])), size)
    first = int(found[1])
    last = size - 1 if found[2] == "" else min(int(found[2]), size - 1)
    if found[2] != "" and int(found[2]) < first:
        return None  # not a range at all
    return range(first, last + 1) if first < size else range(0)
