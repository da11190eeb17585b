"""A Hub and a ComfyDeploy in memory, with the promises of the real clients: for tests that count and kill."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stationmaster.delivery.comfydeploy import Download, DownloadState
from stationmaster.delivery.huggingface import HubEntry, HubFile, Licence
from stationmaster.errors import DeliveryBusy, DeliveryRefused

HIDDEN = "hf_planted_in_memory"


class FakeHub:
    """Repositories with their commits. `refuses` makes every upload fail so; `from_machine` only the machine's."""

    url = "https://hub.invalid"

    def __init__(self, *, private: bool = False) -> None:
        self.private = private
        self.repositories: dict[str, list[dict[str, bytes]]] = {}
        self.uploads: list[str] = []
        self.refuses: DeliveryRefused | DeliveryBusy | None = None
        self.from_machine_only = False
        self.believes = True  # False: what a machine says that it sent never came

    async def namespace(self) -> str:
        return "anna"

    async def ensure_repository(self, repo: str) -> None:
        self.repositories.setdefault(repo, [])

    async def read_back(self, repo: str, names: Iterable[str]) -> dict[str, HubEntry]:
        there = self.files(repo)
        return {
            name: HubEntry(size=len(there[name]), sha256=hashlib.sha256(there[name]).hexdigest(), blob=None)
            for name in names
            if name in there
        }

    async def require(self, repo: str, files: Iterable[HubFile]) -> None:
        wanted = list(files)
        found = await self.read_back(repo, [file.name for file in wanted])
        if not all(file.is_at(found.get(file.name)) for file in wanted):
            raise DeliveryBusy("not there")

    async def read_range(self, address: str, *, start: int, size: int) -> bytes:
        owner, name, file = address.removeprefix("hf://").split("/", 2)
        return self.files(f"{owner}/{name}")[file][start : start + size]

    async def licence_of(self, base_model: str) -> Licence | None:
        return None

    def order(self, repo: str, files: Iterable[HubFile], *, message: str) -> dict[str, Any]:
        return {"token": HIDDEN, "repo": repo, "message": message, "files": [file.as_json() for file in files]}

    async def upload(self, repo: str, files: Iterable[HubFile], *, message: str) -> None:
        self.uploads.append(f"home: {message}")
        if self.refuses is not None and not self.from_machine_only:
            raise self.refuses
        self._put(repo, {file.name: file.content or Path(str(file.path)).read_bytes() for file in files})

    async def close(self) -> None:
        """Nothing is held open."""

    def published_by_machine(self, order: dict[str, Any], read: Callable[[str], bytes | None]) -> dict[str, Any]:
        """What trackside's `publish` answers."""
        assert order["token"] == HIDDEN
        self.uploads.append(f"machine: {order['message']}")
        if self.refuses is not None:
            refused = isinstance(self.refuses, DeliveryRefused)
            after = None if refused else getattr(self.refuses, "retry_after_seconds", None)
            return {"ok": False, "refused": refused, "problem": str(self.refuses), "retry_after": after}
        files = {}
        for one in order["files"]:
            content = base64.b64decode(one["content"]) if "content" in one else read(one["path"])
            assert content is not None, one
            files[one["name"]] = content
        if self.believes:
            self._put(order["repo"], files)
        return {"ok": True, "commit": "c", "files": list(files)}

    def files(self, repo: str) -> dict[str, bytes]:
        return {name: content for commit in self.repositories.get(repo, []) for name, content in commit.items()}

    def _put(self, repo: str, files: dict[str, bytes]) -> None:
        there = self.files(repo)
        if missing := {name: content for name, content in files.items() if there.get(name) != content}:
            self.repositories[repo].append(missing)


class FakeComfyDeploy:
    """Takes a link once; its download is over at the next look."""

    def __init__(self) -> None:
        self.started: dict[str, str] = {}
        self.problem: DeliveryBusy | None = None

    async def start(self, file_name: str, link: str) -> None:
        if self.problem is not None:
            raise self.problem
        self.started.setdefault(file_name, link)

    async def state(self, file_name: str) -> DownloadState:
        return DownloadState(download=Download.DONE if file_name in self.started else Download.UNKNOWN)
