"""The Hugging Face Hub client: creates repositories, uploads files, reads them back, downloads them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from stationmaster.delivery.hub_calls import HubCalls, reading_answer, require_success
from stationmaster.delivery.hub_files import HubEntry, HubFile
from stationmaster.delivery.hub_upload import SourcedFile, put_files, read_back, remove_file
from stationmaster.delivery.signed_requests import Piece, SendResult, Source
from stationmaster.delivery.verified_write import Progress
from stationmaster.errors import DeliveryBusy, DeliveryError, DeliveryRefused
from stationmaster.files import sha256_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """The licence in a base model's card, as the card states it."""

    license: str
    license_name: str | None = None
    license_link: str | None = None


class HubClient:
    """Client for one account. Raises DeliveryRefused (a retry does not help) and DeliveryBusy (it may)."""

    def __init__(
        self,
        *,
        url: str,
        token: str,
        namespace: str | None,
        private: bool,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = url.rstrip("/")
        self.private = private
        self._token = token
        self._namespace = namespace
        self._calls = HubCalls(url=url, token=token, transport=transport)

    async def namespace(self) -> str:
        """The owner of the repositories."""
        if self._namespace is None:
            answer = await self._calls.ask("GET", "/api/whoami-v2")
            with reading_answer(answer):
                self._namespace = str(answer.json()["name"])
        return self._namespace

    async def ensure_repository(self, repo: str) -> None:
        """Create the repository if needed. Raises DeliveryRefused if it must be private and is public."""
        owner, _, name = repo.partition("/")
        wanted = {"name": name, "organization": owner, "visibility": "private" if self.private else "public"}
        answer = await self._calls.ask("POST", "/api/repos/create", document=wanted, fine=(409,))
        if answer.status_code != 409 or not self.private:
            return
        if await self.is_public(repo):
            raise DeliveryRefused(f"{repo} exists already and is public")

    async def read_back(self, repo: str, names: Iterable[str]) -> dict[str, HubEntry]:
        """The repository's files with these names."""
        return await read_back(self._calls, repo, names)

    async def require(self, repo: str, files: Iterable[HubFile]) -> None:
        """Raise DeliveryBusy unless the repository has every file with this content: it may not be visible yet."""
        wanted = list(files)
        found = await self.read_back(repo, [file.name for file in wanted])
        for file in wanted:
            if not file.is_at(found.get(file.name)):
                raise DeliveryBusy(f"{repo} does not have {file.name} with the right content")

    async def is_public(self, repo: str) -> bool:
        answer = await self._calls.ask("GET", f"/api/models/{repo}")
        with reading_answer(answer):
            return not answer.json().get("private")

    async def licence_of(self, base_model: str) -> Licence | None:
        """The licence in a model's card; None if it states none or the Hub gives no answer."""
        try:
            answer = await self._calls.ask("GET", f"/api/models/{base_model}")
            with reading_answer(answer):
                card = answer.json().get("cardData") or {}
                stated, name, link = (card.get(key) for key in ("license", "license_name", "license_link"))
        except DeliveryError:
            return None
        return Licence(license=stated, license_name=name, license_link=link) if isinstance(stated, str) else None

    async def put(self, repo: str, files: Iterable[HubFile], *, message: str) -> tuple[HubFile, ...]:
        """Upload small files of this computer in one commit; returns them as they read back.

        Works without the Hub's own client, which is an optional dependency.
        """
        sourced = [SourcedFile(file=file, source=_LocalSource(file, self._calls)) for file in files]
        return await put_files(self._calls, repo, sourced, message=message)

    async def put_from(self, repo: str, file: HubFile, source: Source, *, message: str) -> HubFile:
        """Upload a file whose bytes `source` sends; returns it as it reads back. The token stays on this computer."""
        (put,) = await put_files(self._calls, repo, [SourcedFile(file=file, source=source)], message=message)
        return put

    async def upload(self, repo: str, files: Iterable[HubFile], *, message: str) -> None:
        """Upload files of this computer in one commit; files that are there already are not sent again."""
        order = {
            "endpoint": self.url,
            "token": self._token,
            "repo": repo,
            "message": message,
            "files": [_for_child(file) for file in files],
        }
        _raise_for_answer(await _run_child(json.dumps(order).encode(), {"HF_ENDPOINT": self.url}))

    async def download(
        self, address: str, target: Path, *, sha256: str, size: int, progress: Progress | None = None
    ) -> None:
        """Download the file at an hf:// address to `target` and verify it; resumes an interrupted download.

        No more than `size` bytes are written.
        """
        part = target.with_name(f".{target.name}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        await self._read_into(part, _resolve_path(address), most_bytes=size, progress=progress)
        if await asyncio.to_thread(sha256_of, part) != sha256:
            part.unlink()
            raise DeliveryRefused(f"{address} is not the model that was published: its SHA-256 differs")
        part.replace(target)

    async def read_range(self, address: str, *, start: int, size: int) -> bytes:
        """Read `size` bytes of the file at an hf:// address; fewer only at the end of the file.

        Bytes beyond them are dropped. Follows redirects, without the token to other hosts.
        """
        path = _resolve_path(address)
        wanted = {"Range": f"bytes={start}-{start + size - 1}", "Accept-Encoding": "identity"}
        found = bytearray()
        async with self._calls.stream(path, headers=wanted) as answer:
            await require_success(answer, f"GET {path}")
            if answer.status_code != 206 and start > 0:
                raise DeliveryRefused(f"the Hub: GET {path} answered with the whole file instead of a part")
            async for chunk in answer.aiter_raw():
                found += chunk[: size - len(found)]
                if len(found) >= size:
                    break
        return bytes(found)

    async def remove(self, address: str) -> None:
        """Remove the file at an hf:// address from its repository."""
        owner, name, file = address.removeprefix("hf://").split("/", 2)
        await remove_file(self._calls, f"{owner}/{name}", file, message=f"Remove {file}: it is not a model")

    async def close(self) -> None:
        await self._calls.close()

    async def _read_into(self, part: Path, path: str, *, most_bytes: int, progress: Progress | None) -> None:
        have = await asyncio.to_thread(_size, part)
        async with self._calls.stream(path, headers={"Range": f"bytes={have}-"} if have else {}) as answer:
            if answer.status_code == 416:
                return  # the download is complete
            await require_success(answer, f"GET {path}")
            with part.open("ab" if answer.status_code == 206 else "wb") as file:
                async for chunk in answer.aiter_raw():
                    if file.tell() + len(chunk) > most_bytes:
                        raise DeliveryRefused(f"the Hub: GET {path} has more than the {most_bytes} bytes of the model")
                    file.write(chunk)
                    if progress is not None:
                        progress(file.tell(), most_bytes)


class _LocalSource:
    """A file of this computer, or one in memory, sent by this process."""

    def __init__(self, file: HubFile, calls: HubCalls) -> None:
        self._file = file
        self._calls = calls

    async def first_bytes(self, count: int) -> bytes:
        return await self._read(0, count)

    async def send(self, pieces: Sequence[Piece], *, begin_within_seconds: float | None) -> SendResult:
        etags: list[str] = []
        for piece in pieces:
            content = await self._read(piece.offset, piece.size)
            answer = await self._calls.put(piece.request.url, content, headers=piece.request.headers)
            try:
                await require_success(answer, "PUT")
            except DeliveryError as problem:
                return SendResult(etags=tuple(etags), problem=problem, status=answer.status_code)
            etags.append(answer.headers.get("etag", ""))
        return SendResult(etags=tuple(etags))

    async def _read(self, offset: int, size: int) -> bytes:
        if self._file.content is not None:
            return self._file.content[offset : offset + size]
        return await asyncio.to_thread(_read_slice, Path(str(self._file.path)), offset, size)


def _resolve_path(address: str) -> str:
    """The download path of an hf:// address."""
    owner, name, file = address.removeprefix("hf://").split("/", 2)
    return f"/{owner}/{name}/resolve/main/{quote(file)}"


def _for_child(file: HubFile) -> dict[str, Any]:
    if file.content is not None:
        return {"name": file.name, "content": base64.b64encode(file.content).decode()}
    return {"name": file.name, "path": file.path}


def _raise_for_answer(answer: Mapping[str, Any]) -> None:
    """Raise DeliveryBusy or DeliveryRefused unless the child process reports success."""
    if answer.get("ok"):
        return
    problem = str(answer.get("problem") or "the uploader gave no reason")
    if answer.get("refused"):
        raise DeliveryRefused(problem)
    after = answer.get("retry_after")
    raise DeliveryBusy(problem, retry_after_seconds=float(after) if after is not None else None)


async def _run_child(order: bytes, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Run the Hub's own client in a child process: it is large, and can be killed when the job is cancelled."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-P",  # nothing is imported from the current folder
        "-m",
        "stationmaster.delivery.hub_child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, **environ, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
    )
    try:
        output, _ = await child.communicate(order)
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    try:
        answer = json.loads(output.splitlines()[-1])
    except (ValueError, IndexError):
        return {"ok": False, "problem": f"the uploader exited with code {child.returncode} and no answer"}
    return answer if isinstance(answer, dict) else {}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _read_slice(path: Path, offset: int, size: int) -> bytes:
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(size)
