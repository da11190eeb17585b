"""The Hugging Face Hub: repositories made, files put there from home, and what lies there read back."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from stationmaster.errors import DeliveryBusy, DeliveryError, DeliveryRefused

_TIMEOUT_SECONDS = 30.0
_LATER = (408, 425, 429, 500, 502, 503, 504)
_RATE_LIMIT = re.compile(r";\s*t\s*=\s*(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFile:
    """A file to be in a repository: one that lies at `path`, or a small one with its content."""

    name: str
    size: int
    sha256: str
    path: str | None = None
    content: bytes | None = None

    @staticmethod
    def of_text(name: str, text: str) -> HubFile:
        content = text.encode()
        return HubFile(name=name, size=len(content), sha256=hashlib.sha256(content).hexdigest(), content=content)

    def as_json(self) -> dict[str, Any]:
        if self.content is not None:
            return {"name": self.name, "content": base64.b64encode(self.content).decode()}
        return {"name": self.name, "path": self.path, "size": self.size, "sha256": self.sha256}

    def is_at(self, entry: HubEntry | None) -> bool:
        """Whether what the Hub has is this very content."""
        if entry is None or entry.size != self.size:
            return False
        if entry.sha256 is not None:
            return entry.sha256 == self.sha256
        return self.content is not None and entry.blob == _blob_id(self.content)


@dataclass(frozen=True, slots=True, kw_only=True)
class HubEntry:
    """A file as the Hub describes it: LFS objects by their SHA-256, small files by git's own id."""

    size: int
    sha256: str | None
    blob: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Licence:
    """What a base model's card says of its licence, in the card's own words."""

    license: str
    license_name: str | None = None
    license_link: str | None = None


class HubClient:
    """One account of the Hub. Raises DeliveryRefused (another place must do) and DeliveryBusy (later, perhaps)."""

    def __init__(self, *, url: str, token: str, namespace: str | None, private: bool) -> None:
        self.url = url.rstrip("/")
        self.private = private
        self._token = token
        self._namespace = namespace
        self._client: httpx.AsyncClient | None = None

    async def namespace(self) -> str:
        """Whose the repositories are."""
        if self._namespace is None:
            answer = await self._ask("GET", "/api/whoami-v2")
            with _understanding(answer):
                self._namespace = str(answer.json()["name"])
        return self._namespace

    async def ensure_repository(self, repo: str) -> None:
        """The repository is there, and as private as it should be."""
        owner, _, name = repo.partition("/")
        wanted = {"name": name, "organization": owner, "visibility": "private" if self.private else "public"}
        answer = await self._ask("POST", "/api/repos/create", json=wanted, fine=(409,))
        if answer.status_code != 409 or not self.private:
            return
        if await self.is_public(repo):
            raise DeliveryRefused(f"{repo} is there already, and everybody can see it")

    async def read_back(self, repo: str, names: Iterable[str]) -> dict[str, HubEntry]:
        """What the repository has under these names."""
        wanted = {"paths": list(names), "expand": False}
        answer = await self._ask("POST", f"/api/models/{repo}/paths-info/main", json=wanted)
        with _understanding(answer):
            return {str(entry["path"]): _entry(entry) for entry in answer.json() if entry.get("type") == "file"}

    async def require(self, repo: str, files: Iterable[HubFile]) -> None:
        """Every file is there with this very content, or DeliveryBusy: it may not be visible yet."""
        wanted = list(files)
        found = await self.read_back(repo, [file.name for file in wanted])
        for file in wanted:
            if not file.is_at(found.get(file.name)):
                raise DeliveryBusy(f"{repo} does not have {file.name} with the right content")

    async def is_public(self, repo: str) -> bool:
        answer = await self._ask("GET", f"/api/models/{repo}")
        with _understanding(answer):
            return not answer.json().get("private")

    async def licence_of(self, base_model: str) -> Licence | None:
        """The licence that a model's own card states; None when it says nothing or cannot be asked."""
        try:
            answer = await self._ask("GET", f"/api/models/{base_model}")
            with _understanding(answer):
                card = answer.json().get("cardData") or {}
                stated, name, link = (card.get(key) for key in ("license", "license_name", "license_link"))
        except DeliveryError:
            return None
        return Licence(license=stated, license_name=name, license_link=link) if isinstance(stated, str) else None

    def order(self, repo: str, files: Iterable[HubFile], *, message: str) -> dict[str, Any]:
        """What an uploader needs to know. It holds the token: for standard input alone."""
        return {
            "endpoint": self.url,
            "token": self._token,
            "repo": repo,
            "message": message,
            "files": [file.as_json() for file in files],
        }

    async def upload(self, repo: str, files: Iterable[HubFile], *, message: str) -> None:
        """Put files of this computer into the repository, in one commit; what is there already is not sent again."""
        order = json.dumps(self.order(repo, files, message=message)).encode()
        raise_for_answer(await _in_a_child(order, {"HF_ENDPOINT": self.url}))

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
        try:
            request = self._http().stream(
                "GET", f"{self.url}{path}", headers={**self._headers(), **wanted}, follow_redirects=True
            )
            async with request as answer:
                await _require_success(answer, f"GET {path}")
                if answer.status_code != 206 and start > 0:
                    raise DeliveryRefused(f"the Hub: GET {path} answered with the whole file instead of a part")
                async for chunk in answer.aiter_raw():
                    found += chunk[: size - len(found)]
                    if len(found) >= size:
                        break
        except httpx.HTTPError as problem:
            raise DeliveryBusy(f"the Hub: GET {path}: {_reason(problem)}") from problem
        return bytes(found)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()

    async def _read_into(self, part: Path, path: str) -> None:
        have = await asyncio.to_thread(_size, part)
        headers = {**self._headers(), **({"Range": f"bytes={have}-"} if have else {})}
        try:
            request = self._http().stream("GET", f"{self.url}{path}", headers=headers, follow_redirects=True)
            async with request as answer:
                if answer.status_code == 416:
                    return  # all of it is here
                await _require_success(answer, f"GET {path}")
                with part.open("ab" if answer.status_code == 206 else "wb") as file:
                    async for chunk in answer.aiter_bytes():
                        file.write(chunk)
        except httpx.HTTPError as problem:
            raise DeliveryBusy(f"the Hub: GET {path}: {_reason(problem)}") from problem

    async def _ask(self, method: str, path: str, *, json: Any = None, fine: tuple[int, ...] = ()) -> httpx.Response:
        try:
            answer = await self._http().request(method, f"{self.url}{path}", json=json, headers=self._headers())
        except httpx.HTTPError as problem:
            raise DeliveryBusy(f"the Hub: {method} {path}: {_reason(problem)}") from problem
        if answer.status_code not in fine:
            await _require_success(answer, f"{method} {path}")
        return answer

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._token}"}

    def _http(self) -> httpx.AsyncClient:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=_TIMEOUT_SECONDS)
        return self._client


def _resolve_path(address: str) -> str:
    """Where the Hub gives the file at an hf:// address."""
    owner, name, file = address.removeprefix("hf://").split("/", 2)
    return f"/{owner}/{name}/resolve/main/{quote(file)}"


@contextmanager
def _understanding(answer: httpx.Response) -> Iterator[None]:
    """What is no answer of the Hub's, as a page of a portal on the way, says nothing about the Hub."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise DeliveryBusy(f"the Hub: {answer.request.method} {answer.request.url.path} gave no answer") from problem


def raise_for_answer(answer: Mapping[str, Any]) -> None:
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


async def _require_success(answer: httpx.Response, call: str) -> None:
    if answer.is_success:
        return
    await answer.aread()
    said = f"the Hub: {call} answered {answer.status_code}{_words(answer)}"
    if answer.status_code in _LATER:
        raise DeliveryBusy(said, retry_after_seconds=_retry_after(answer.headers))
    hint = "set HF_TOKEN to a token that may write there" if answer.status_code in (401, 403) else None
    raise DeliveryRefused(said, hint=hint)


def _words(answer: httpx.Response) -> str:
    try:
        said = answer.headers.get("x-error-message") or str(answer.json().get("error") or "")
    except (ValueError, AttributeError):
        return ""
    return f": {' '.join(said.split())[:200]}" if said else ""


def _retry_after(headers: Mapping[str, str]) -> float | None:
    plain = headers.get("retry-after", "")
    if plain.isdigit():
        return float(plain)
    found = _RATE_LIMIT.search(headers.get("ratelimit", ""))
    return float(found[1]) if found else None


def _reason(problem: httpx.HTTPError) -> str:
    return str(problem) or type(problem).__name__


def _entry(entry: Mapping[str, Any]) -> HubEntry:
    lfs = entry.get("lfs")
    return HubEntry(
        size=int(entry["size"]),
        sha256=str(lfs["oid"]) if lfs else None,
        blob=None if lfs else str(entry.get("oid")),
    )


def _blob_id(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
