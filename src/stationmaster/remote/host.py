"""Typed calls to the trackside that runs one job on a machine."""

from __future__ import annotations

import base64
import json
import posixpath
import shlex
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.errors import FalseAnswer, TransferFailed
from stationmaster.files import known_sha256_of
from stationmaster.model import OutputFile
from stationmaster.model.intake_limits import (
    ANSWER_BYTES,
    BYTES_PER_CHUNK,
    JSON_VALUES,
    MESSAGE_CHARACTERS,
    NAME_CHARACTERS,
    OUTPUT_FILES,
    PATH_CHARACTERS,
    PLAN_STEPS,
    VERB_BYTES,
)
from stationmaster.remote.base import Completed, Remote, require_success, too_long
from stationmaster.remote.kept_trackside import KeptTrackside
from stationmaster.remote.status import (
    Since,
    Status,
    parse_output,
    parse_sha256,
    parse_size,
    parse_status,
    parse_text,
)

#: `follow` prints at least every 5 s; after three missed lines the connection counts as dead.
_FOLLOW_IDLE_SECONDS = 20.0

#: Linux limits the length of one argument, and over SSH the whole command is one argument.
_COMMAND_BYTES = 100_000

_VISITED_SECONDS = 1.0  # no second visit within this time: small files are downloaded one after the other

_LAST_LINES = 20  # among which the answer is looked for
_VERB_AT = 4  # python trackside.pyz --root ROOT VERB …


@dataclass(frozen=True, slots=True, kw_only=True)
class FileHash:
    sha256: str
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpacked:
    sha256: str
    files: int
    already: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The declared outputs, how many more there are than are listed, and why their hashes could not be kept there."""

    files: tuple[OutputFile, ...]
    left_out: int = 0
    unwritten: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestState:
    """State of a request to the training: saved, saving, sampled, sampling, timed_out, not_running, refused or
    impossible."""

    state: str
    files: tuple[str, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanupState:
    """State of the recipe's cleanup: nothing, running, done or failed, with the steps that failed."""

    state: str
    failed: tuple[str, ...] = ()
    tail: str = ""


class Host:
    """One job's folder on a machine. Every call is one round trip and may be repeated.

    All raise Unreachable when the result is unknown, CommandFailed when trackside failed, and FalseAnswer when its
    answer is too long or cannot be parsed.
    """

    def __init__(
        self,
        remote: Remote,
        *,
        root: str,
        python: str = "python3",
        time_limit_seconds: float = 30.0,
        file_time_limit_seconds: float = 1800.0,
        kept: KeptTrackside | None = None,
    ) -> None:
        """`file_time_limit_seconds` is the timeout of verbs that read whole files: hash, unpack, inventory, logs.

        Most verbs run in `kept` where it is given, the others in a process each.
        """
        self.remote = remote
        self._kept = kept
        self._run = remote.run if kept is None else kept.run
        self.root = root.rstrip("/") or "/"
        self._pyz = self.path("trackside.pyz")
        self._python = python
        self._limit = time_limit_seconds
        self._file_limit = file_time_limit_seconds

    def path(self, relative: str) -> str:
        """Return the path on the machine of a name inside the job's folder."""
        return posixpath.join(self.root, relative)

    async def install(self, pyz: Path) -> None:
        """Upload trackside unless the same bytes are there already."""
        wanted = known_sha256_of(pyz)
        # Before the upload there may be nothing that could be kept running.
        is_kept = self._kept is not None and self._kept.is_open
        if await self._installed_sha256(self._run if is_kept else self.remote.run) == wanted:
            return
        await self.remote.push(pyz, self._pyz)
        if await self._installed_sha256(self._run) != wanted:
            raise TransferFailed(f"{self._pyz} did not arrive complete, or {self._python} cannot run it")

    async def preflight(self, *, allocate: bool = True) -> dict[str, Any]:
        """Check the machine: disk, GPUs, driver, and with `allocate` whether GPU memory can be allocated."""
        argv = self._argv("preflight", *(() if allocate else ("--no-allocation",)))
        return await self._ask(argv, limit=self._limit + 30.0)

    async def look(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of a training that was started by hand: its process, its logs, its output folder."""
        argv = self._argv("look")
        return await self._ask(argv, input=json.dumps(asked).encode(), limit=self._limit + 30.0)

    async def put_plan(self, plan: Mapping[str, Any]) -> None:
        """Upload plan.json. It holds no secrets, only their names."""
        with _as_file(plan) as local:
            await self.remote.push(local, self.path("plan.json"))

    async def take_cached_archive(self, archive: str, sha256: str, *, room_bytes: int) -> bool:
        """Return whether the machine's cache had the archive; else make `room_bytes` free if necessary.

        The bytes are not verified: the cache names them by their hash, and may be damaged.
        """
        argv = self._argv("take", archive, "--sha256", sha256, "--room", str(room_bytes))
        return bool((await self._ask(argv, limit=self._file_limit)).get("taken"))

    async def cache_archive(self, archive: str, sha256: str, *, most_bytes: int, most_seconds: float) -> None:
        """Keep a verified archive in the machine's cache for later jobs, within these limits for the whole cache."""
        bounds = ("--most-bytes", str(most_bytes), "--most-age", f"{most_seconds:.0f}")
        argv = self._argv("keep", archive, "--sha256", sha256, *bounds)
        await self._ask(argv, limit=self._file_limit)

    async def unpack(self, archive: str, directory: str, sha256: str) -> Unpacked:
        """Unpack the archive into `directory`. Raises TransferFailed if the archive has another hash."""
        argv = self._argv("unpack", archive, directory, "--sha256", sha256)
        done = await self._run(argv, timeout=self._file_limit)
        answer = _last_object(done.stdout)
        if answer is not None and answer.get("ok") is False:
            found = parse_text(answer.get("sha256"), NAME_CHARACTERS)
            raise TransferFailed(f"{archive} has SHA-256 {found} on the machine, not {sha256}")
        answer = _answer(argv, done)
        with _understanding(argv, answer):
            return Unpacked(
                sha256=parse_sha256(answer.get("sha256") or sha256),
                files=parse_size(answer.get("files") or 0),
                already=bool(answer.get("already")),
            )

    async def start(self, secrets: Mapping[str, str] | None = None) -> Status:
        """Start a supervisor, unless one runs or the plan is finished. Secrets go through standard input only."""
        if not secrets:
            return await self._status_call(self._argv("start"), limit=self._limit)
        sent = json.dumps({"secrets": dict(secrets)}).encode()
        return await self._status_call(self._argv("start", "--secrets-stdin"), input=sent, limit=self._limit)

    async def status(
        self, since: Since | None = None, *, max_bytes: int | None = None, alone_seconds: float | None = None
    ) -> Status:
        """Return the job's status with the log after `since`; `alone_seconds` as in `visit`, in the same round trip."""
        bound = () if max_bytes is None else ("--max-bytes", str(max_bytes))
        alone = () if alone_seconds is None else ("--alone", f"{alone_seconds:.0f}")
        return await self._status_call(self._argv("status", *_since(since), *bound, *alone), limit=self._limit)

    async def visit(self, alone_seconds: float) -> None:
        """Record for the machine's guard how long a training may run without another visit; once a second at most."""
        asked_at = time.monotonic()
        if self._kept is not None and asked_at - self._kept.visited_at < _VISITED_SECONDS:
            return
        argv = self._argv("visit", "--alone", f"{alone_seconds:.0f}")
        require_success(argv, await self._run(argv, timeout=self._limit))
        if self._kept is not None:
            self._kept.visited_at = asked_at

    async def acknowledge(self) -> None:
        """Record for the machine's guard that all results are safe at home."""
        argv = self._argv("acknowledge")
        require_success(argv, await self._run(argv, timeout=self._limit))

    async def carry_out(self, verb: str, order: Mapping[str, Any], *, further_seconds: float = 0.0) -> dict[str, Any]:
        """Run a verb that takes an order on standard input, the only way to pass signed addresses; its answer."""
        sent = json.dumps(order).encode()
        return await self._ask(self._argv(verb), input=sent, limit=self._file_limit + further_seconds)

    async def follow(
        self, since: Since | None = None, *, interval_seconds: float = 0.1
    ) -> AsyncGenerator[Status, None]:
        """Yield statuses as they happen, each with the log since the one before. Close it with `aclosing`."""
        argv = self._argv("follow", *_since(since), "--interval", f"{interval_seconds:g}")
        async with self.remote.stream(argv, timeout_idle=_FOLLOW_IDLE_SECONDS) as stream:
            unfinished = _UnfinishedLine(argv, VERB_BYTES["follow"])
            async for chunk in stream:
                for line in unfinished.completed_by(chunk):
                    if (answer := _object(line)) is not None:
                        yield _status(argv, answer)
            require_success(argv, Completed(exit_status=stream.exit_status, stderr=stream.stderr))

    async def stop(self, grace_seconds: float = 10.0) -> Status:
        """Stop the running step; no other will start."""
        argv = self._argv("stop", "--grace", f"{grace_seconds:g}")
        return await self._status_call(argv, limit=self._limit + grace_seconds)

    async def save(self, request: str, *, wait_seconds: float = 0.0) -> RequestState:
        """Ask the training for a checkpoint, once per `request`, and wait up to `wait_seconds` for it; the state."""
        return await self._request("save", request, wait_seconds)

    async def sample(self, request: str, *, wait_seconds: float = 0.0) -> RequestState:
        """Ask the training for samples in the same way."""
        return await self._request("sample", request, wait_seconds)

    async def _request(self, verb: str, request: str, wait_seconds: float) -> RequestState:
        argv = self._argv(verb, "--id", request, "--wait", f"{wait_seconds:g}")
        answer = await self._ask(argv, limit=self._limit + wait_seconds)
        with _understanding(argv, answer):
            return RequestState(
                state=parse_text(answer["state"], NAME_CHARACTERS),
                files=tuple(parse_text(path, PATH_CHARACTERS) for path in answer["files"][:OUTPUT_FILES]),
                problem=parse_text(answer.get("problem", ""), MESSAGE_CHARACTERS),
            )

    async def cleanup(self, grace_seconds: float = 10.0) -> CleanupState:
        """Stop the job's steps and start the recipe's cleanup; repeated calls return its state."""
        argv = self._argv("cleanup", "--grace", f"{grace_seconds:g}")
        answer = await self._ask(argv, limit=self._limit + grace_seconds)
        with _understanding(argv, answer):
            failed = [step["name"] for step in answer["steps"][:PLAN_STEPS] if step["state"] == "failed"]
            return CleanupState(
                state=parse_text(answer["state"], NAME_CHARACTERS),
                failed=tuple(parse_text(name, NAME_CHARACTERS) for name in failed),
                tail=parse_text(answer["tail"], MESSAGE_CHARACTERS),
            )

    async def hash(self, paths: Sequence[str]) -> dict[str, FileHash | None]:
        """Return SHA-256 and size of each file, None for a missing one."""
        found: dict[str, FileHash | None] = {}
        for some in batched(paths, most_bytes=_COMMAND_BYTES):
            argv = self._argv("hash", *some)
            answer = await self._ask(argv, limit=self._file_limit)
            with _understanding(argv, answer):
                found |= {path: _file_hash(answer["files"].get(path)) for path in some}
        return found

    async def chunk_hashes(
        self, path: str, chunk_bytes: int, *, size: int, end_writers: bool = False
    ) -> tuple[str, ...]:
        """Return the SHA-256 of each successive piece of a file of `size` bytes; empty for a missing one.

        `end_writers` first ends every rsync that an earlier connection left behind and that writes to it.
        """
        first = ("--end-writers",) if end_writers else ()
        argv = self._argv("hash", "--chunks", str(chunk_bytes), *first, path)
        further_bytes = BYTES_PER_CHUNK * -(-size // chunk_bytes)
        answer = await self._ask(argv, limit=self._file_limit, further_bytes=further_bytes)
        with _understanding(argv, answer):
            found = answer["files"][path]
            return () if found is None else tuple(parse_sha256(chunk) for chunk in found["chunks"])

    async def first_bytes(self, path: str, count: int) -> bytes:
        """Return the first bytes of a file, fewer if it is shorter; trackside allows at most 1 MiB."""
        argv = self._argv("read", "--bytes", str(count), path)
        answer = await self._ask(argv, limit=self._limit)
        with _understanding(argv, answer):
            return base64.b64decode(answer["data"], validate=True)[:count]

    async def inventory(self) -> Inventory:
        """Return the declared outputs with their hashes."""
        argv = self._argv("inventory")
        answer = await self._ask(argv, limit=self._file_limit)
        with _understanding(argv, answer):
            listed = answer["outputs"]
            files = tuple(parse_output(output) for output in listed[:OUTPUT_FILES])
            left_out = len(listed) - len(files) + parse_size(answer.get("left_out") or 0)
            unwritten = parse_text(answer.get("unwritten") or "", MESSAGE_CHARACTERS) or None
            return Inventory(files=files, left_out=left_out, unwritten=unwritten)

    async def logs(self, *, step: int | None = None, tail: int | None = None) -> str:
        """Return the log as text, all steps joined unless `step` is given."""
        chosen = () if step is None else ("--step", str(step))
        last = () if tail is None else ("--tail", str(tail))
        argv = self._argv("logs", *chosen, *last)
        done = await self.remote.run(argv, timeout=self._file_limit, most_bytes=VERB_BYTES["logs"])
        require_success(argv, done)
        return done.stdout.decode(errors="replace")

    def _argv(self, verb: str, *arguments: str) -> list[str]:
        return [self._python, self._pyz, "--root", self.root, verb, *arguments]

    async def _installed_sha256(self, run: Callable[..., Awaitable[Completed]]) -> str | None:
        """The hash of the trackside that is there; None if there is none, or it cannot be run."""
        argv = self._argv("hash", "trackside.pyz")
        done = await run(argv, timeout=self._limit)
        answer = _last_object(done.stdout) or {}
        with _understanding(argv, answer):
            found = _file_hash((answer.get("files") or {}).get("trackside.pyz"))
            return None if found is None else found.sha256

    async def _status_call(self, argv: Sequence[str], *, limit: float, input: bytes | None = None) -> Status:
        return _status(argv, await self._ask(argv, limit=limit, input=input))

    async def _ask(
        self, argv: Sequence[str], *, limit: float, input: bytes | None = None, further_bytes: int = 0
    ) -> dict[str, Any]:
        most_bytes = VERB_BYTES.get(argv[_VERB_AT], ANSWER_BYTES) + further_bytes
        return _answer(argv, await self._run(argv, input=input, timeout=limit, most_bytes=most_bytes))


class _UnfinishedLine:
    """The beginning of a line of a stream, whose end has not come yet."""

    def __init__(self, argv: Sequence[str], most_bytes: int) -> None:
        self._argv = argv
        self._most_bytes = most_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def completed_by(self, chunk: bytes) -> list[bytes]:
        """The lines that the chunk completes. Raises FalseAnswer for a line that is too long."""
        first, *others = chunk.split(b"\n")
        self._pieces.append(first)
        self._size += len(first)
        if self._size > self._most_bytes:
            raise too_long(self._argv, self._most_bytes)
        if not others:
            return []
        lines = [b"".join(self._pieces), *others[:-1]]
        self._pieces, self._size = [others[-1]], len(others[-1])
        return lines


def batched(paths: Sequence[str], *, most_bytes: int) -> Iterator[list[str]]:
    """Group the paths, in order, so that each group fits into one command.

    >>> list(batched(["one", "two", "three"], most_bytes=10))
    [['one', 'two'], ['three']]
    """
    group: list[str] = []
    size = 0
    for path in paths:
        length = len(shlex.quote(path).encode()) + 1
        if group and size + length > most_bytes:
            yield group
            group, size = [], 0
        group.append(path)
        size += length
    if group:
        yield group


@contextmanager
def _as_file(plan: Mapping[str, Any]) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", prefix="stationmaster-plan-", suffix=".json") as file:
        file.write(json.dumps(plan))
        file.flush()
        yield Path(file.name)


def _since(since: Since | None) -> tuple[str, ...]:
    return () if since is None else ("--since", _encode(since.to_json()))


def _answer(argv: Sequence[str], done: Completed) -> dict[str, Any]:
    require_success(argv, done)
    answer = _last_object(done.stdout)
    if answer is None:
        raise _nonsense(argv, done.stdout)
    return answer


def _last_object(output: bytes) -> dict[str, Any] | None:
    """Return the last line that is a JSON object: images may print a banner before it."""
    for line in reversed(output.rstrip().rsplit(b"\n", _LAST_LINES)):
        if (answer := _object(line)) is not None:
            return answer
    return None


def _object(line: bytes) -> dict[str, Any] | None:
    """The JSON object in a line; None for anything else, also for more values or levels than an honest one has."""
    if not line.lstrip().startswith(b"{") or sum(map(line.count, (b",", b"[", b"{"))) > JSON_VALUES:
        return None
    try:
        value = _decode(line.decode(errors="surrogatepass"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


# Made once: the functions of `json` make a new one for each call that has options.
_decode = json.JSONDecoder(parse_constant=_refuse_constant).decode
_encode = json.JSONEncoder(separators=(",", ":")).encode


def _nonsense(argv: Sequence[str], output: bytes) -> FalseAnswer:
    lines = output[:NAME_CHARACTERS].decode(errors="replace").strip().splitlines()
    return FalseAnswer(f"trackside {argv[_VERB_AT]} printed no valid answer: {lines[0] if lines else 'nothing'}")


def _status(argv: Sequence[str], answer: Mapping[str, Any]) -> Status:
    with _understanding(argv, answer):
        return parse_status(answer)


def _file_hash(found: Mapping[str, Any] | None) -> FileHash | None:
    return None if found is None else FileHash(sha256=parse_sha256(found["sha256"]), size=parse_size(found["size"]))


@contextmanager
def _understanding(argv: Sequence[str], answer: Mapping[str, Any]) -> Iterator[None]:
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        raise _nonsense(argv, json.dumps(answer).encode()) from problem
