"""Uploads files to a Hub repository: this computer makes every call that needs the token, the source sends the bytes.

It may be interrupted anywhere: a retry sends only what the Hub reports as missing.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from urllib.parse import quote

from stationmaster.delivery.hub_calls import HubCalls, reading_answer
from stationmaster.delivery.hub_files import HubEntry, HubFile
from stationmaster.delivery.lfs import (
    LFS_HEADERS,
    Upload,
    batch_request,
    commit_lines,
    completion,
    read_batch,
    removal_lines,
)
from stationmaster.delivery.signed_requests import SendResult, Source
from stationmaster.errors import DeliveryBusy, DeliveryRefused

_SAMPLE_BYTES = 512
_EXPIRED = (401, 403, 404, 410)  # what storage services answer to an expired URL or multipart upload
_ROUNDS = 2_000  # of sending the missing pieces; two rounds in a row without progress end it
_RESTARTS = 3  # of a multipart upload whose URLs expired and whose parts were lost

Clock = Callable[[], float]


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedFile:
    """A file that should be in a repository, and where its bytes come from."""

    file: HubFile
    source: Source


async def read_back(calls: HubCalls, repo: str, names: Iterable[str]) -> dict[str, HubEntry]:
    """The repository's files with these names."""
    wanted = {"paths": list(names), "expand": False}
    answer = await calls.ask("POST", f"/api/models/{quote(repo)}/paths-info/main", document=wanted)
    with reading_answer(answer):
        found = [entry for entry in answer.json() if entry.get("type") == "file"]
        return {str(entry["path"]): HubEntry.of_document(entry) for entry in found}


async def put_files(
    calls: HubCalls, repo: str, files: Sequence[SourcedFile], *, message: str, clock: Clock = time.time
) -> tuple[HubFile, ...]:
    """Put the files into the repository in one commit; returns them as they read back: those in git with content.

    Raises DeliveryRefused, DeliveryBusy and the sources' own errors.
    """
    found = await read_back(calls, repo, [one.file.name for one in files])
    missing = [one for one in files if not one.file.is_at(found.get(one.file.name))]
    if not missing:
        return tuple(one.file for one in files)
    modes = await _modes(calls, repo, missing)
    ready: dict[str, HubFile] = {}
    for one in missing:
        if modes[one.file.name] == "lfs":
            await _send_object(calls, repo, one, clock)
            ready[one.file.name] = replace(one.file, content=None)
        else:
            ready[one.file.name] = await _with_content(one)
    changed = [file for file in ready.values() if not file.is_at(found.get(file.name))]
    if changed:
        await _commit(calls, repo, commit_lines(changed, message=message))
    return tuple(ready.get(one.file.name, one.file) for one in files)


async def remove_file(calls: HubCalls, repo: str, name: str, *, message: str) -> None:
    """Remove the file from the repository in one commit, if it is there. Raises DeliveryRefused and DeliveryBusy."""
    if name in await read_back(calls, repo, [name]):
        await _commit(calls, repo, removal_lines(name, message=message))


async def _commit(calls: HubCalls, repo: str, lines: Iterable[bytes]) -> None:
    content = b"\n".join(lines) + b"\n"
    headers = {"Content-Type": "application/x-ndjson"}
    await calls.ask("POST", f"/api/models/{quote(repo)}/commit/main", content=content, headers=headers)


async def _modes(calls: HubCalls, repo: str, files: Sequence[SourcedFile]) -> Mapping[str, str]:
    """How the Hub wants each file: as an LFS object, or inside the commit."""
    asked = [
        {
            "path": one.file.name,
            "size": one.file.size,
            "sample": base64.b64encode(await one.source.first_bytes(_SAMPLE_BYTES)).decode(),
        }
        for one in files
    ]
    answer = await calls.ask("POST", f"/api/models/{quote(repo)}/preupload/main", document={"files": asked})
    with reading_answer(answer):
        modes = {str(one["path"]): str(one["uploadMode"]) for one in answer.json()["files"]}
        return {one.file.name: modes[one.file.name] for one in files}


async def _with_content(one: SourcedFile) -> HubFile:
    content = await one.source.first_bytes(one.file.size)
    if hashlib.sha256(content).hexdigest() != one.file.sha256:
        raise DeliveryRefused(f"{one.file.name} changed: its content has another SHA-256")
    return replace(one.file, content=content)


async def _send_object(calls: HubCalls, repo: str, one: SourcedFile, clock: Clock) -> None:
    """Upload the object. Expired URLs are requested again; parts sent before count if the upload is the same."""
    upload, asked_at = await _request_urls(calls, repo, one.file, clock), clock()
    etags: dict[int, str] = {}
    restarts = idle = 0
    for _ in range(_ROUNDS):
        if upload is None:
            return None
        missing = [number for number in range(len(upload.pieces)) if number not in etags]
        if not missing:
            return await _finish(calls, one.file, upload, [etags[number] for number in range(len(upload.pieces))])
        left = _left(upload, asked_at, clock)
        sent = await one.source.send([upload.pieces[number] for number in missing], begin_within_seconds=left)
        etags |= dict(zip(missing, sent.etags, strict=False))
        idle = 0 if sent.etags else idle + 1
        if len(sent.etags) >= len(missing):
            continue
        if not _can_continue(sent, idle):
            raise sent.problem or DeliveryBusy(f"no part of {one.file.name} was sent")
        if sent.status in _EXPIRED or _left(upload, asked_at, clock) == 0:
            fresh, asked_at = await _request_urls(calls, repo, one.file, clock), clock()
            if etags and fresh is not None and not fresh.continues(upload):
                restarts += 1
                etags.clear()
            upload = fresh
        if restarts > _RESTARTS:
            raise DeliveryRefused(f"the Hub's upload URLs for {one.file.name} expire before the upload is complete")
    raise DeliveryBusy(f"the upload of {one.file.name} to the Hub was not complete after {_ROUNDS} rounds")


def _can_continue(sent: SendResult, idle: int) -> bool:
    """Whether another round can help: a refusal may mean an expired URL; one round may bring nothing."""
    if sent.problem is None or sent.status in _EXPIRED:
        return idle <= 1
    return isinstance(sent.problem, DeliveryBusy) and bool(sent.etags)


def _left(upload: Upload, asked_at: float, clock: Clock) -> float | None:
    """Seconds until the URLs expire; None if the Hub does not say."""
    return None if upload.seconds is None else max(0.0, upload.seconds - (clock() - asked_at))


async def _request_urls(calls: HubCalls, repo: str, file: HubFile, clock: Clock) -> Upload | None:
    """Ask for upload URLs; None if the Hub has the object. Raises DeliveryRefused if one contains the token."""
    path = f"/{quote(repo)}.git/info/lfs/objects/batch"
    answer = await calls.ask("POST", path, document=batch_request(file), headers=LFS_HEADERS)
    with reading_answer(answer):
        upload = read_batch(answer.json(), file, now=clock())
    for request in (piece.request for piece in upload.pieces) if upload else ():
        if calls.holds_token("\n".join([request.url, *request.headers.values()])):
            raise DeliveryRefused("the Hub put the token into an upload URL; such a URL is not sent to a machine")
    return upload


async def _finish(calls: HubCalls, file: HubFile, upload: Upload, etags: Sequence[str]) -> None:
    if upload.complete is not None:
        await calls.ask_link("POST", upload.complete, document=completion(file, etags), headers=LFS_HEADERS)
    if upload.verify is not None:
        document = {"oid": file.sha256, "size": file.size}
        await calls.ask_link("POST", upload.verify, document=document, headers=LFS_HEADERS, with_token=True)
