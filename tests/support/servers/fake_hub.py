"""A Hub and a ComfyDeploy in memory, with the promises of the real clients: for tests that count and kill."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from stationmaster.delivery.comfydeploy import Download, DownloadState
from stationmaster.delivery.hub_files import HubEntry, HubFile
from stationmaster.delivery.huggingface import Licence
from stationmaster.delivery.signed_requests import Piece, SignedRequest, Source
from stationmaster.errors import DeliveryBusy, DeliveryRefused

STORE = "https://store.invalid"


class FakeHub:
    """Repositories with their commits. `refuses` makes every upload fail so; `from_machine` only the machine's."""

    url = "https://hub.invalid"

    def __init__(self, *, private: bool = False) -> None:
        self.private = private
        self.repositories: dict[str, list[dict[str, bytes]]] = {}
        self.objects: dict[str, bytes] = {}  # by their SHA-256, whether or not a commit has them
        self.uploads: list[str] = []
        self.orders: list[dict[str, Any]] = []  # what machines were asked to send, and where
        self.refuses: DeliveryRefused | DeliveryBusy | None = None
        self.from_machine_only = False
        self.believes = True  # False: uploads that a machine reports never arrived

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

    async def remove(self, address: str) -> None:
        owner, name, file = address.removeprefix("hf://").split("/", 2)
        for commit in self.repositories[f"{owner}/{name}"]:
            commit.pop(file, None)

    async def licence_of(self, base_model: str) -> Licence | None:
        return None

    async def put(self, repo: str, files: Iterable[HubFile], *, message: str) -> tuple[HubFile, ...]:
        wanted = tuple(files)
        await self.upload(repo, wanted, message=message)
        return wanted

    async def put_from(self, repo: str, file: HubFile, source: Source, *, message: str) -> HubFile:
        """Whoever has the file sends it; only what has arrived can be committed."""
        self.uploads.append(f"machine: {message}")
        assert len(await source.first_bytes(512)) == min(512, file.size)
        if file.sha256 not in self.objects:
            request = SignedRequest(method="PUT", url=f"{STORE}/{file.sha256}", headers={})
            sent = await source.send([Piece(request=request, offset=0, size=file.size)], begin_within_seconds=None)
            if sent.problem is not None:
                raise sent.problem
        if file.sha256 in self.objects:
            self._put(repo, {file.name: self.objects[file.sha256]})
        return file

    async def upload(self, repo: str, files: Iterable[HubFile], *, message: str) -> None:
        self.uploads.append(f"home: {message}")
        if self.refuses is not None and not self.from_machine_only:
            raise self.refuses
        self._put(repo, {file.name: file.content or Path(str(file.path)).read_bytes() for file in files})

    async def close(self) -> None:
        """Nothing is held open."""

    def sent_by_machine(self, order: dict[str, Any], read: Callable[[str], bytes | None]) -> dict[str, Any]:
        """What trackside's `upload` answers."""
        self.orders.append(order)
        if self.refuses is not None:
            refused = isinstance(self.refuses, DeliveryRefused)
            after = None if refused else getattr(self.refuses, "retry_after_seconds", None)
            return {"ok": False, "refused": refused, "problem": str(self.refuses), "retry_after": after}
        content = read(order["path"])
        assert content is not None, order
        (request,) = order["requests"]
        if self.believes:
            assert request["url"] == f"{STORE}/{hashlib.sha256(content).hexdigest()}"
            self.objects[hashlib.sha256(content).hexdigest()] = content
        return {"ok": True, "sent": 1, "etags": ['"1"']}

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
