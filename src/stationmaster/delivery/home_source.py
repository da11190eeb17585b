"""A file of this computer, or one in memory, sent to signed addresses by home itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from stationmaster.delivery.hub_calls import HubCalls, require_success
from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.signed_requests import Piece, Sent
from stationmaster.errors import DeliveryError


class AtHome:
    """A file of this computer, or one in memory, sent by home itself."""

    def __init__(self, file: HubFile, calls: HubCalls) -> None:
        self._file = file
        self._calls = calls

    async def first_bytes(self, count: int) -> bytes:
        return await self._read(0, count)

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> Sent:
        etags: list[str] = []
        for piece in pieces:
            content = await self._read(piece.offset, piece.size)
            answer = await self._calls.put(piece.request.url, content, headers=piece.request.headers)
            try:
                await require_success(answer, "PUT")
            except DeliveryError as problem:
                return Sent(etags=tuple(etags), problem=problem, status=answer.status_code)
            etags.append(answer.headers.get("etag", ""))
        return Sent(etags=tuple(etags))

    async def _read(self, offset: int, size: int) -> bytes:
        if self._file.content is not None:
            return self._file.content[offset : offset + size]
        return await asyncio.to_thread(_read_slice, Path(str(self._file.path)), offset, size)


def _read_slice(path: Path, offset: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)
