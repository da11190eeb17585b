"""The Hub's Git LFS messages, read and written without I/O."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

from stationmaster.delivery.hub_files import HubFile
from stationmaster.delivery.signed_requests import Piece, SignedRequest
from stationmaster.errors import DeliveryRefused

LFS_HEADERS = {"Content-Type": "application/vnd.git-lfs+json", "Accept": "application/vnd.git-lfs+json"}
_TRANSFERS = ("basic", "multipart")  # never xet: its token writes to more than one object
_OURS = ("content-length", "transfer-encoding")
_CREDENTIALS = ("authorization", "cookie", "proxy-authorization")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """How the Hub wants one object: as pieces; parts are joined by a call to `complete`, if the Hub named it."""

    pieces: tuple[Piece, ...]
    complete: str | None = None
    verify: str | None = None
    id: str | None = None  # of a multipart upload: parts that arrived count while it stays the same
    seconds: float | None = None  # until the URLs expire, from the answer on; None: not stated

    def continues(self, other: Upload) -> bool:
        """Whether parts that were sent for the other upload count for this one."""
        return self.id is not None and self.id == other.id and len(self.pieces) == len(other.pieces)


def batch_request(file: HubFile) -> dict[str, Any]:
    return {
        "operation": "upload",
        "transfers": list(_TRANSFERS),
        "objects": [{"oid": file.sha256, "size": file.size}],
        "hash_algo": "sha256",
        "ref": {"name": "main"},
    }


def read_batch(document: Mapping[str, Any], file: HubFile, *, now: float) -> Upload | None:
    """How to send the object; None if the Hub has it. Raises DeliveryRefused; ValueError or KeyError if malformed."""
    transfer = document.get("transfer")
    (answer,) = [one for one in document["objects"] if one["oid"] == file.sha256]
    if "error" in answer:
        raise DeliveryRefused(f"the Hub rejects {file.name}: {answer['error'].get('message', 'no reason given')}")
    actions = answer.get("actions")
    if transfer not in (None, *_TRANSFERS) or (actions and "upload" not in actions):
        raise DeliveryRefused(
            f"the Hub accepts {file.name} only by its own transfer ({transfer or 'xet'}), "
            "which needs a token that is not sent to a machine"
        )
    if not actions:
        return None
    upload, verify = actions["upload"], actions.get("verify")
    headers = {str(name): str(value) for name, value in (upload.get("header") or {}).items()}
    chunk = headers.pop("chunk_size", None)
    seconds = _seconds_left(upload, now=now)
    verify_link = str(verify["href"]) if verify else None
    if chunk is None:
        piece = _piece(str(upload["href"]), headers, offset=0, size=file.size)
        return Upload(pieces=(piece,), verify=verify_link, seconds=seconds)
    pieces = tuple(_parts(headers, int(chunk), file.size))
    complete = str(upload["href"])
    return Upload(
        pieces=pieces, complete=complete, verify=verify_link, id=_upload_id(pieces, complete), seconds=seconds
    )


def completion(file: HubFile, etags: Iterable[str]) -> dict[str, Any]:
    """The request that joins the parts. Raises DeliveryRefused for a part without an ETag."""
    parts = [{"partNumber": number, "etag": etag} for number, etag in enumerate(etags, start=1)]
    if not all(part["etag"] for part in parts):
        raise DeliveryRefused(f"a part of {file.name} has no ETag after its upload")
    return {"oid": file.sha256, "parts": parts}


def commit_lines(files: Iterable[HubFile], *, message: str) -> Iterator[bytes]:
    """One commit: files with content inline, the others as LFS objects that are uploaded already."""
    yield _line("header", {"summary": message, "description": ""})
    for file in files:
        if file.content is None:
            yield _line("lfsFile", {"path": file.name, "algo": "sha256", "oid": file.sha256, "size": file.size})
        else:
            content = base64.b64encode(file.content).decode()
            yield _line("file", {"path": file.name, "encoding": "base64", "content": content})


def removal_lines(name: str, *, message: str) -> Iterator[bytes]:
    """One commit that removes a file."""
    yield _line("header", {"summary": message, "description": ""})
    yield _line("deletedFile", {"path": name})


def _parts(header: Mapping[str, str], chunk: int, size: int) -> Iterator[Piece]:
    links = [link for _, link in sorted((int(name), link) for name, link in header.items() if name.isdigit())]
    others = {name: value for name, value in header.items() if not name.isdigit()}
    if chunk < 1 or len(links) != -(-size // chunk):
        raise ValueError("the number of parts does not match the file size")
    for number, link in enumerate(links):
        yield _piece(link, others, offset=number * chunk, size=min(chunk, size - number * chunk))


def _piece(link: str, headers: Mapping[str, str], *, offset: int, size: int) -> Piece:
    named = {name.lower() for name in headers}
    if named & set(_CREDENTIALS):
        raise DeliveryRefused("the Hub wants credentials with the upload itself; they are not sent to a machine")
    kept = {name: value for name, value in headers.items() if name.lower() not in _OURS}
    request = SignedRequest(method="PUT", url=link, headers={**kept, "Content-Length": str(size)})
    return Piece(request=request, offset=offset, size=size)


def _upload_id(pieces: Iterable[Piece], complete: str) -> str | None:
    """The storage service's id of a multipart upload, which is in all of its URLs."""
    for link in (*(piece.request.url for piece in pieces), complete):
        if found := parse_qs(urlsplit(link).query).get("uploadId"):
            return found[0]
    return None


def _seconds_left(action: Mapping[str, Any], *, now: float) -> float | None:
    """Seconds by either field; None for an unreadable or past time, which only shows that clocks differ."""
    try:
        found = action.get("expires_in")
        left = (
            float(found) if found is not None else datetime.fromisoformat(str(action["expires_at"])).timestamp() - now
        )
    except (KeyError, ValueError, TypeError):
        return None
    return left if left > 0 else None


def _line(key: str, value: Mapping[str, Any]) -> bytes:
    return json.dumps({"key": key, "value": value}).encode()
