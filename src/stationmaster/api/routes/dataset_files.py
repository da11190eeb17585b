"""The files of an upload: sent whole or in pieces, written as their bytes arrive."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import anyio
import anyio.to_thread
from fastapi import APIRouter, Header, Path, Query, Request, Response
from starlette.requests import ClientDisconnect

from stationmaster.api.problems import problem_response, problems
from stationmaster.api.routes.datasets import UploadId
from stationmaster.api.visit import Reading, Training, Visit
from stationmaster.errors import StationmasterError, UserError, WrongOffset
from stationmaster.station.dataset_uploads import FileWriter, UploadedFile
from stationmaster.station.wire.dataset_uploads import UploadedFileDocument
from stationmaster.station.wire.document import Page

routes = APIRouter(prefix="/api/datasets", tags=["datasets"], responses=problems(400, 401, 403, 404, 422))

FilePath = Annotated[str, Path(description="Path of the file in the dataset, such as `cats/01.png`.", max_length=1000)]

_BUFFER = 1 << 20
_MOST_DRAINED = 16 << 20
_RANGE = re.compile(r"bytes (?:(?P<first>\d{1,15})-(?P<last>\d{1,15})|\*)/(?P<size>\d{1,15})")
_LENGTH = re.compile(r"\d{1,15}")
_BINARY: dict[str, Any] = {
    "requestBody": {
        "description": "The bytes of the file, or of one piece of it.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@routes.get("/{upload}/files", operation_id="list_uploaded_files", summary="The files of an upload, by path")
def list_uploaded_files(
    visit: Reading,
    upload: UploadId,
    after: Annotated[str | None, Query(description="`next` of the page before.", max_length=1000)] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="At most this many files.")] = 200,
) -> Page[UploadedFileDocument]:
    files = visit.station.dataset_uploads.files(upload)
    left = [file for file in files if after is None or file.path > after]
    page = left[:limit]
    following = page[-1].path if len(left) > limit else None
    return Page(items=tuple(UploadedFileDocument.of(file) for file in page), next=following)


@routes.get("/{upload}/files/{path:path}", operation_id="get_uploaded_file", summary="How much of a file has arrived")
def get_uploaded_file(visit: Reading, upload: UploadId, path: FilePath) -> UploadedFileDocument:
    return UploadedFileDocument.of(visit.station.dataset_uploads.file(upload, path))


@routes.head("/{upload}/files/{path:path}", include_in_schema=False)
def head_uploaded_file(visit: Reading, upload: UploadId, path: FilePath) -> Response:
    return Response(headers=_progress(visit.station.dataset_uploads.file(upload, path)))


@routes.delete(
    "/{upload}/files/{path:path}",
    operation_id="delete_uploaded_file",
    summary="Remove a file of an upload",
    status_code=204,
)
def delete_uploaded_file(visit: Training, upload: UploadId, path: FilePath) -> Response:
    visit.station.dataset_uploads.remove_file(upload, path)
    return Response(status_code=204)


@routes.put(
    "/{upload}/files/{path:path}",
    operation_id="upload_file",
    summary="Send a file, or a piece of it",
    description="""
Without `Content-Range` the body is the whole file; what has arrived of it before is dropped. Larger files are sent in
pieces: one request takes at most `serve.largest_upload_bytes`, 64 MiB by default.

With `Content-Range: bytes FIRST-LAST/SIZE` the body is one piece. Pieces are sent in order: FIRST is the `received` of
the last answer. After an interruption, `GET` the same address (or `HEAD`, header `Upload-Offset`) and continue there;
what arrived before the interruption stays. A piece that does not begin where the file ends is refused with 409, and the
header `Upload-Offset` says where to continue. Of two senders of one file, one wins at each place.
`Content-Range: bytes */SIZE` with an empty body finishes a file of which all bytes have arrived.

With `Content-SHA256` (64 hexadecimal digits, of the whole file) the file is only accepted if it has this hash.

The answer to the last piece lists what is wrong with the file as far as it can be told from this file alone.
""",
    responses=problems(409, 413, 507),
    openapi_extra=_BINARY,
)
async def upload_file(
    request: Request,
    visit: Training,
    upload: UploadId,
    path: FilePath,
    content_range: Annotated[str | None, Header(max_length=100, description="Which bytes these are.")] = None,
    content_sha256: Annotated[
        str | None, Header(pattern=r"^[0-9a-fA-F]{64}$", description="SHA-256 of the whole file.")
    ] = None,
) -> UploadedFileDocument:
    body = request.stream()
    try:
        piece = _piece(content_range, request.headers.get("content-length"))
        received = await _receive(visit, upload, path, piece, content_sha256, body)
    except StationmasterError as refused:
        await _drain(body)
        if isinstance(refused, WrongOffset) and refused.received is not None:
            answer = problem_response(refused)
            answer.headers["Upload-Offset"] = str(refused.received)
            return answer  # type: ignore[return-value]
        raise
    return UploadedFileDocument.of(received)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    size: int
    offset: int | None = None  # None: only the end of a file that has arrived
    length: int = 0
    is_whole: bool = False


def _piece(content_range: str | None, content_length: str | None) -> _Piece:
    """Which bytes the body is. Raises UserError if the headers do not fit together."""
    if content_length is None or not _LENGTH.fullmatch(content_length):
        raise UserError("the request has no Content-Length", hint="send the length of the body")
    length = int(content_length)
    if content_range is None:
        return _Piece(size=length, offset=0, length=length, is_whole=True)
    found = _RANGE.fullmatch(content_range)
    if found is None:
        raise UserError("Content-Range cannot be read", hint="write it as bytes FIRST-LAST/SIZE")
    size = int(found["size"])
    if found["first"] is None:
        if length:
            raise UserError("Content-Range: bytes */SIZE needs an empty body")
        return _Piece(size=size)
    first, last = int(found["first"]), int(found["last"])
    if not first <= last < size or last - first + 1 != length:
        raise UserError("Content-Range does not fit Content-Length", hint="bytes 0-99/250 has 100 bytes")
    return _Piece(size=size, offset=first, length=length)


async def _receive(
    visit: Visit, upload: str, path: str, piece: _Piece, sha256: str | None, body: AsyncIterator[bytes]
) -> UploadedFile:
    """Write the bytes as they arrive; if the sender goes away, those that have arrived stay."""
    in_thread = anyio.to_thread.run_sync
    uploads = visit.station.dataset_uploads
    begin = partial(
        uploads.write,
        upload,
        path,
        size=piece.size,
        offset=piece.size if piece.offset is None else piece.offset,
        restart=piece.is_whole,
        sha256=None if sha256 is None else sha256.lower(),
    )
    writer: FileWriter = await in_thread(begin)
    try:
        buffer = bytearray()
        try:
            async for chunk in body:
                buffer += chunk
                if len(buffer) >= _BUFFER:
                    await in_thread(writer.append, bytes(buffer))
                    buffer.clear()
        except (ClientDisconnect, StationmasterError) as problem:  # it went away, or is too slow
            await in_thread(writer.append, bytes(buffer))
            if isinstance(problem, ClientDisconnect):
                raise UserError("the sender went away") from None
            raise
        if buffer:
            await in_thread(writer.append, bytes(buffer))
        return await in_thread(writer.finish)
    finally:
        writer.close()


async def _drain(body: AsyncIterator[bytes]) -> None:
    """Read what is still being sent, up to a limit: many clients read no answer before they have sent everything."""
    left = _MOST_DRAINED
    try:
        async for chunk in body:
            left -= len(chunk)
            if left < 0:
                return
    except (ClientDisconnect, RuntimeError):  # RuntimeError: it has been read to its end
        return


def _progress(file: UploadedFile) -> dict[str, str]:
    return {
        "Upload-Offset": str(file.received),
        "Upload-Length": str(file.size),
        "Upload-Complete": "?1" if file.is_complete else "?0",
    }
