"""Trackside on a FakeRemote: answers its verbs for a scripted training, without processes or a disk."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import io
import json
import tarfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import PurePosixPath
from typing import Any

from pydantic_core import to_json

from stationmaster.remote.base import Completed
from stationmaster.remote.fake import Call, FakeRemote
from stationmaster.remote.fake_run import FakeRun, Script

Uploader = Callable[[dict[str, Any], Callable[[str], bytes | None]], dict[str, Any]]

_VERBS_WITH_PLAN = ("start", "status", "stop", "save", "sample", "cleanup", "inventory")

__all__ = ["FakeRun", "FakeTrackside", "Script"]


class FakeTrackside:
    """The program trackside.pyz on one FakeRemote, for any number of job folders.

    `clock` returns the machine's wall time; without one, every status advances time by `tick_seconds`.
    """

    def __init__(
        self,
        remote: FakeRemote,
        *,
        script: Script | None = None,
        clock: Callable[[], float] | None = None,
        tick_seconds: float = 10.0,
        python: str = "python3",
    ) -> None:
        self.runs: dict[str, FakeRun] = {}
        #: Answers `upload`: called with the order and a function that reads a file of the job's folder.
        self.uploader: Uploader | None = None
        self.disk_total_bytes = 100 * 2**30
        self.disk_free_bytes = 80 * 2**30
        self._remote = remote
        self._script = script or Script()
        self._clock = clock
        self._tick_seconds = tick_seconds
        self._ticked = 1_700_000_000.0
        remote.on(python, self._answer)
        remote.on_stream(python, self._follow)
        remote.on("df", self._free_room)

    def run(self, root: str | None = None) -> FakeRun:
        """Return the run in `root`, or the only one."""
        if root is not None:
            return self._run(root)
        (only,) = self.runs.values()
        return only

    def tries_started(self) -> Counter[tuple[str, str, int]]:
        """Return how often each (root, step, try) was started: none may ever be above 1."""
        return Counter({(root, *key): n for root, run in self.runs.items() for key, n in run.tries_started.items()})

    def _answer(self, call: Call) -> Completed:
        match call.argv[1:]:
            case ("-c", _):
                return _printed({"job_root": ""})  # the login's question: does Python work, and where do jobs go?
            case (pyz, "--root", root, verb, *arguments) if pyz in self._remote.files:
                return self._verb(root.rstrip("/"), verb, arguments, call.input or b"")
            case (pyz, "--root", *_):
                return Completed(exit_status=2, stderr=f"python3: can't open file '{pyz}'".encode())
            case _:
                return Completed(exit_status=2, stderr=b"usage: trackside --root ROOT VERB")

    def _verb(self, root: str, verb: str, arguments: Sequence[str], stdin: bytes) -> Completed:
        run = self._run(root)
        if verb in _VERBS_WITH_PLAN and not run.read_plan():
            return Completed(exit_status=1, stderr=b"trackside: there is no plan.json")
        match verb:
            case "start":
                run.start(self._now(), _secrets(arguments, stdin))
                return _printed(self._status(run, since=None))
            case "status":
                since, limit = _option(arguments, "--since"), _option(arguments, "--max-bytes")
                return _printed(self._status(run, since=json.loads(since or "{}"), max_bytes=int(limit or 2**20)))
            case "stop":
                run.stop(self._now())
                return _printed(self._status(run, since=None))
            case "save" | "sample":
                return _printed({"state": "impossible", "files": []})  # a scripted training does not support it
            case "cleanup":
                run.stop(self._now())
                return _printed({"state": "nothing", "steps": [], "tail": ""})
            case "hash":
                return _printed({"files": {path: self._hash(root, path) for path in arguments}})
            case "unpack":
                return self._unpack(root, *arguments[:2], sha256=_option(arguments, "--sha256") or "")
            case "take" | "keep":
                return self._cache(verb, root, arguments[0], sha256=_option(arguments, "--sha256") or "")
            case "inventory":
                return _printed({"outputs": self._inventory(run)})
            case "read":
                return self._read(root, arguments)
            case "upload" if self.uploader is not None:
                files = self._remote.files
                return _printed(
                    self.uploader(json.loads(stdin), lambda path: files.get(str(PurePosixPath(root, path))))
                )
            case "visit" | "acknowledge":
                return Completed(exit_status=0)
            case "preflight":
                gpu = {"index": 0, "name": "Fake 24 GB", "memory_total_mib": 24564}
                return _printed({"disk_free_bytes": self.disk_free_bytes, "gpus": [gpu], "allocation": "ok"})
            case "logs":
                return Completed(exit_status=0, stdout=_log_text(run, arguments))
            case _:
                return Completed(exit_status=2, stderr=f"trackside: unknown verb {verb}".encode())

    async def _follow(self, call: Call) -> AsyncIterator[bytes]:
        run, arguments = self._run(call.argv[3].rstrip("/")), call.argv[5:]
        run.read_plan()
        since = json.loads(_option(arguments, "--since") or "{}")
        interval_seconds = float(_option(arguments, "--interval") or 0.1)
        while True:
            status = self._status(run, since=since)
            marks = {piece["stream"]: {"inode": piece["inode"], "offset": piece["end"]} for piece in status["log"]}
            since["log"] = {**since.get("log", {}), **marks}
            read = {piece["table"]: piece["last"] for piece in status["series"]}
            since["series"] = {**since.get("series", {}), **read}
            yield json.dumps(status).encode() + b"\n"
            await asyncio.sleep(interval_seconds)

    def _run(self, root: str) -> FakeRun:
        if root not in self.runs:
            self.runs[root] = FakeRun(
                root=root, script=self._script, files=self._remote.files, mtimes=self._remote.mtimes
            )
        return self.runs[root]

    def _now(self) -> float:
        return self._ticked if self._clock is None else self._clock()

    def _status(self, run: FakeRun, *, since: dict[str, Any] | None, max_bytes: int = 2**20) -> dict[str, Any]:
        self._ticked += self._tick_seconds
        status = run.status(self._now(), since=since, max_bytes=max_bytes)
        return {**status, "disk": {"total_bytes": self.disk_total_bytes, "free_bytes": self.disk_free_bytes}}

    def _free_room(self, call: Call) -> Completed:
        """Answer `df -Pk`, which runs before there is a plan."""
        total, free = self.disk_total_bytes // 1024, self.disk_free_bytes // 1024
        line = f"/dev/fake {total} {total - free} {free} {100 - 100 * free // total}% /"
        return Completed(
            exit_status=0, stdout=f"Filesystem 1024-blocks Used Available Capacity Mounted on\n{line}\n".encode()
        )

    def _hash(self, root: str, path: str) -> dict[str, Any] | None:
        data = self._remote.files.get(f"{root}/{path}")
        return None if data is None else {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)}

    def _read(self, root: str, arguments: Sequence[str]) -> Completed:
        data = self._remote.files.get(str(PurePosixPath(root, arguments[-1])))
        if data is None:
            return Completed(exit_status=1, stderr=f"trackside: {arguments[-1]} is not there".encode())
        count = int(_option(arguments, "--bytes") or 512)
        return _printed({"data": base64.b64encode(data[:count]).decode()})

    def _cache(self, verb: str, root: str, archive: str, *, sha256: str) -> Completed:
        """Cache archives for later jobs beside the jobs' folders, without limits."""
        files, cached = self._remote.files, str(PurePosixPath(root).parent / ".cache" / sha256)
        target = str(PurePosixPath(root, archive))
        if verb == "keep":
            files[cached] = files[target]
            return _printed({"kept": True})
        is_taken = cached in files and target not in files
        if is_taken:
            files[target] = files[cached]
        return _printed({"taken": is_taken})

    def _unpack(self, root: str, archive: str, directory: str, *, sha256: str) -> Completed:
        files, folder = self._remote.files, f"{PurePosixPath(root, directory)}/"
        marker = f"{root}/.trackside/unpacked/{directory}"
        there = [path for path in files if path.startswith(folder)]
        if there and files.get(marker) == sha256.encode():
            return _printed({"ok": True, "sha256": sha256, "files": len(there), "already": True})
        data = files.get(str(PurePosixPath(root, archive)))
        if data is None:
            return Completed(exit_status=1, stderr=f"trackside: {archive} is not there".encode())
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            return _printed({"ok": False, "sha256": found}, exit_status=1)
        for path in there:
            del files[path]
        members = _members(data)
        files.update({folder + name: content for name, content in members.items()})
        files[marker] = sha256.encode()
        return _printed({"ok": True, "sha256": found, "files": len(members), "already": False})

    def _inventory(self, run: FakeRun) -> list[dict[str, Any]]:
        return [{**output, **(self._hash(run.root, output["path"]) or {})} for output in run.outputs()]


def _printed(answer: dict[str, Any], *, exit_status: int = 0) -> Completed:
    return Completed(exit_status=exit_status, stdout=to_json(answer) + b"\n")


def _secrets(arguments: Sequence[str], stdin: bytes) -> dict[str, str]:
    return dict(json.loads(stdin)["secrets"]) if "--secrets-stdin" in arguments else {}


def _option(arguments: Sequence[str], name: str) -> str | None:
    return arguments[arguments.index(name) + 1] if name in arguments else None


def _log_text(run: FakeRun, arguments: Sequence[str]) -> bytes:
    step, tail = _option(arguments, "--step"), _option(arguments, "--tail")
    text = b"".join(bytes(log.data) for stream, log in run.logs.items() if step is None or stream.split(".")[0] == step)
    return text if tail is None else b"".join(text.splitlines(keepends=True)[-int(tail) :])


def _members(archive: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:  # "r" would try every compression first
        opened = ((member.name, tar.extractfile(member)) for member in tar if member.isfile())
        return {name: file.read() for name, file in opened if file is not None}
