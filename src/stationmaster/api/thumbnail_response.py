"""Answers with small pictures, which are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
from fastapi import Request, Response

from stationmaster.api.file_response import matches
from stationmaster.station.artifacts import Thumbnail

THUMBNAIL_RESPONSES: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "The picture as WebP, without metadata.",
        "content": {"image/webp": {"schema": {"type": "string", "format": "binary"}}},
    },
    304: {"description": "Unchanged."},
}

_DECODERS = 2  # pictures that are decoded at a time: each may need 100 MB


async def thumbnail_response(request: Request, made: Callable[[], Thumbnail], *, is_lasting: bool) -> Response:
    """`is_lasting`: the address names the picture's content, so the answer never changes."""
    # Waiting for a decoder must not occupy the threads that answer everything else.
    picture = await anyio.to_thread.run_sync(made, limiter=_decoders(request))
    etag = f'"{picture.version}"'
    headers = {
        "ETag": etag,
        "Cache-Control": "private, max-age=31536000, immutable" if is_lasting else "private, no-cache",
        "X-Content-Type-Options": "nosniff",
    }
    if matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    return Response(picture.data, headers=headers, media_type=picture.media_type)


def _decoders(request: Request) -> anyio.CapacityLimiter:
    state = request.app.state
    if not hasattr(state, "picture_decoders"):
        state.picture_decoders = anyio.CapacityLimiter(_DECODERS)
    limiter: anyio.CapacityLimiter = state.picture_decoders
    return limiter
