"""The Hugging Face Hub: repositories made, files put there from home, and what lies there read back."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from stationmaster.delivery.home_source import AtHome
from stationmaster.delivery.hub_calls import HubCalls, require_success, understanding
from stationmaster.delivery.hub_files import HubEntry, HubFile
from stationmaster.delivery.hub_upload import Sourced, put_files, read_back, remove_file
from stationmaster.delivery.signed_requests import Source
from stationmaster.errors import DeliveryBusy, DeliveryError, DeliveryRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """What a base model's card says of its licence, in the card's own words."""

    license: str
    license_name: str | None = None
    license_link: str | None = None


class HubClient:
    """One account of the Hub. Raises DeliveryRefused (another place must do) and DeliveryBusy (later, perhaps)."""

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
        """Whose the repositories are."""
        if self._namespace is None:
            answer = await self._calls.ask("GET", "/api/whoami-v2")
            with understanding(answer):
                self._namespace = str(answer.json()["name"])
        return self._namespace

    async def ensure_repository(self, repo: str) -> None:
        """The repository is there, and as private as it should be."""
        owner, _, name = repo.partition("/")
        wanted = {"name": name, "organization": owner, "visibility": "private" if self.private else "public"}
        answer = await self._calls.ask("POST", "/api/repos/create", document=wanted, fine=(409,))
        if answer.status_code != 409 or not self.private:
            return
        if await self.is_public(repo):
            raise DeliveryRefused(f"{repo} is there already, and everybody can see it")

    async def read_back(self, repo: str, names: Iterable[str]) -> dict[str, HubEntry]:
        """What the repository has under these names."""
        return await read_back(self._calls, repo, names)

    async def require(self, repo: str, files: Iterable[HubFile]) -> None:
        """Every file is there with this very content, or DeliveryBusy: it may not be visible yet."""
        wanted = list(files)
        found = await self.read_back(repo, [file.name for file in wanted])
        for file in wanted:
            if not file.is_at(found.get(file.name)):
                raise DeliveryBusy(f"{repo} does not have {file.name} with the right content")

    async def is_public(self, repo: str) -> bool:
        answer = await self._calls.ask("GET", f"/api/models/{repo}")
        with understanding(answer):
            return not answer.json().get("private")

    async def licence_of(self, base_model: str) -> Licence | None:
        """The licence that a model's own card states; None when it says nothing or cannot be asked."""
        try:
            answer = await self._calls.ask("GET", f"/api/models/{base_model}")
            with understanding(answer):
                card = answer.json().get("cardData") or {}
                stated, name, link = (card.get(key) for key in ("license", "license_name", "license_link"))
        except DeliveryError:
            return None
        return Licence(license=stated, license_name=name, license_link=link) if isinstance(stated, str) else None

    async def put(self, repo: str, files: Iterable[HubFile], *, message: str) -> tuple[HubFile, ...]:
        """Small files of this computer are in the repository, in one commit; as they can be read back.

        It does without the Hub's own client, which not everybody has installed.
        """
        sourced = [Sourced(file=file, source=AtHome(file, self._calls)) for file in files]
        return await put_files(self._calls, repo, sourced, message=message)

    async def put_from(self, repo: str, file: HubFile, source: Source, *, message: str) -> HubFile:
        """A file that somebody else has is in the repository; as it can be read back. The token stays here."""
        (put,) = await put_files(self._calls, repo, [Sourced(file=file, source=source)], message=message)
        return put

    async def upload(self, repo: str, files: Iterable[HubFile], *, message: str) -> None:
        """Put files of this computer into the repository, in one commit; what is there already is not sent again."""
        order = {
            "endpoint": self.url,
            "token": self._token,
            "repo": repo,
            "message": message,
            "files": [_for_child(file) for file in files],
        }
        _raise_for_answer(await _in_a_child(json.dumps(order).encode(), {"HF_ENDPOINT": self.url}))

    async def download(self, address: str, target: Path, *, sha256: str) -> None:
        """The file at an hf:// address is at `target`, verified; a cut download goes on where it ended."""
        part = target.with_name(f".{target.name}.part")
        part.parent.mkdir(parents=True, exist_ok=True)
        await self._read_into(part, _resolve_path(address))
        if await asyncio.to_thread(_sha256, part) != sha256:
            part.unlink()
            raise DeliveryRefused(f"what the Hub has as {address} is not the model that was published")
        part.replace(target)

    async def read_range(self, address: str, *, start: int, size: int) -> bytes:
        """The bytes of the file at an hf:// address; fewer than `size` only where the file ends before.

        What a server sends beyond them is not taken in. Redirects are followed, without the token to other hosts.
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
        """The file at an hf:// address is no longer in its repository."""
        owner, name, file = address.removeprefix("hf://").split("/", 2)
        await remove_file(self._calls, f"{owner}/{name}", file, message=f"{file} is no model")

    async def close(self) -> None:
        await self._calls.close()

    async def _read_into(self, part: Path, path: str) -> None:
        have = await asyncio.to_thread(_size, part)
        async with self._calls.stream(path, headers={"Range": f"bytes={have}-"} if have else {}) as answer:
            if answer.status_code == 416:
                return  # all of it is here
            await require_success(answer, f"GET {path}")
            with part.open("ab" if answer.status_code == 206 else "wb") as file:
                async for chunk in answer.aiter_bytes():
                    file.write(chunk)


def _resolve_path(address: str) -> str:
    """Where the Hub gives the file at an hf:// address."""
    owner, name, file = address.removeprefix("hf://").split("/", 2)
    return f"/{owner}/{name}/resolve/main/{quote(file)}"


def _for_child(file: HubFile) -> dict[str, Any]:
    if file.content is not None:
        return {"name": file.name, "content": base64.b64encode(file.content).decode()}
    return {"name": file.name, "path": file.path}


def _raise_for_answer(answer: Mapping[str, Any]) -> None:
    """Nothing when an uploader says that it did as it was told; else the error that its words mean."""
    if answer.get("ok"):
        return
    problem = str(answer.get("problem") or "the uploader said nothing")
    if answer.get("refused"):
        raise DeliveryRefused(problem)
    after = answer.get("retry_after")
    raise DeliveryBusy(problem, retry_after_seconds=float(after) if after is not None else None)


async def _in_a_child(order: bytes, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """The Hub's own client in a process of its own: it is large, and can be ended when the job is no longer ours."""
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "stationmaster.delivery.hub_child",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, **environ, "HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"},
    )
    try:
        said, _ = await child.communicate(order)
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    try:
        answer = json.loads(said.splitlines()[-1])
    except (ValueError, IndexError):
        return {"ok": False, "problem": f"the uploader ended with status {child.returncode} and no word"}
    return answer if isinstance(answer, dict) else {}


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
