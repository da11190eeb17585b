"""The background worker, which keeps running after a command: one per home, found by its lock."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from stationmaster import __version__
from stationmaster.control.worker.abilities import Abilities, Digests, knows_more
from stationmaster.errors import StoreError

_START_SECONDS = 60.0  # a busy computer is slow
_LEAVE_SECONDS = 15.0
_LOOKERS_SECONDS = 60.0  # processes that only look hold the lock for an instant, longer on a busy computer
_REREAD_SECONDS = 10.0
_LOCK_BYTES = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A live worker of this home; one that is leaving takes no further jobs."""

    pid: int
    version: str
    log: Path
    is_leaving: bool = False
    is_background: bool = False
    abilities: Abilities | None = None  # None: not known
    settings: Digests | None = None  # None: not known
    announced_at: float = 0.0


class WorkerLock:
    """Held by the one worker of a home while it lives; the kernel releases it when the process dies."""

    def __init__(self, home: Path) -> None:
        self._path = home / "worker.lock"
        self._log = home / "worker.log"
        self._file: IO[str] | None = None
        self._about: dict[str, Any] = {}

    def take(
        self,
        *,
        log: Path,
        is_background: bool = False,
        abilities: Abilities | None = None,
        settings: Digests | None = None,
    ) -> bool:
        """Whether the lock is ours now; False when another worker is alive."""
        file = os.fdopen(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+")  # O_APPEND would make pwrite append
        if not _is_locked_now(file):
            file.close()
            return False
        self._file = file
        self._log = log
        self._about = {"is_background": is_background, "abilities": abilities, "settings": settings}
        self.announce(is_leaving=False)
        return True

    def change(self, *, abilities: Abilities, settings: Digests) -> None:
        """Announce that other settings are in force from now on."""
        self._about |= {"abilities": abilities, "settings": settings}
        self.announce(is_leaving=False)

    def announce(self, *, is_leaving: bool) -> None:
        """Announce whether this worker takes further jobs.

        A worker announces that it leaves before it looks for work a last time, and a submitter reads this after its
        job is written: so either the worker finds the job, or the submitter finds that it needs another worker.
        """
        if self._file is None:
            return
        known = {"pid": os.getpid(), "version": __version__, "log": str(self._log), "is_leaving": is_leaving}
        text = json.dumps({**known, **self._about})
        if len(text) > _LOCK_BYTES:
            text = json.dumps(known)
        os.pwrite(self._file.fileno(), text.ljust(_LOCK_BYTES).encode(), 0)  # one call: never half-written

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _is_locked_now(file: IO[str]) -> bool:
    """Lock the file, unless a worker holds it. Those that only look whether one lives share it for an instant."""
    ends = time.monotonic() + _LOOKERS_SECONDS
    while not _has_flock(file, fcntl.LOCK_EX):
        if not _has_flock(file, fcntl.LOCK_SH) or time.monotonic() > ends:
            return False
        fcntl.flock(file, fcntl.LOCK_UN)
        time.sleep(0.01)
    return True


def _has_flock(file: IO[str], kind: int) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def running_worker(home: Path) -> Running | None:
    """The worker that holds the home's lock, if one does.

    If none does, what the last one wrote is removed: whoever starts a worker looks first, and would take the old words
    for the new worker's in the moment between its taking the lock and its announcing itself.
    """
    path = home / "worker.lock"
    try:
        with path.open("r+") as file:
            if not _has_flock(file, fcntl.LOCK_SH):  # shared: two that look never take each other for a worker
                return _described(file.read(), home, announced_at=os.fstat(file.fileno()).st_mtime)
            if os.fstat(file.fileno()).st_size:
                file.truncate(0)
    except FileNotFoundError:
        pass
    return None


def ensure_worker(
    home: Path,
    own_command: Sequence[str],
    *,
    abilities: Abilities | None = None,
    settings: Digests | None = None,
) -> tuple[Running, bool]:
    """A live worker of at least this version, and whether it is a new one with these abilities and settings.

    A background worker is replaced by one that can do all it can and more, or the same with other settings.
    `own_command` is the command line that runs Stationmaster; `--home` and `worker` are added to it.
    Raises StoreError when none starts.
    """
    log = home / "worker.log"

    def will_do(worker: Running) -> bool:
        return not _is_older(worker.version) and not _is_outdone(worker, abilities, settings)

    def start_instead_of(worker: Running | None) -> Running:
        if worker is not None:
            _ask_to_leave(home, worker)
        started = _start(log, [*own_command, "--home", str(home), "worker", "--background"])
        return _wait_for_worker(home, log, started)

    found = _decided_worker(home)
    if found is not None and will_do(found):
        return found, False
    worker = start_instead_of(found)
    if not will_do(worker):  # another command started one at the same time, and ours gave way to it
        worker = start_instead_of(worker)
    return worker, will_do(worker)


def worker_after_reread(home: Path, settings: Digests, *, changed_at: float) -> Running | None:
    """The live worker, after it has had time to read settings files that changed at `changed_at`."""
    ends = time.monotonic() + _REREAD_SECONDS
    while True:
        found = running_worker(home)
        is_done = found is None or found.settings in (None, settings) or found.announced_at > changed_at
        if is_done or time.monotonic() > ends:
            return found
        time.sleep(0.05)


def _described(text: str, home: Path, *, announced_at: float) -> Running:
    """What the lock's holder wrote; between taking the lock and writing, the text may be empty for a moment."""
    try:
        data = json.loads(text)
        return Running(
            pid=int(data["pid"]),
            version=str(data["version"]),
            log=Path(data["log"]),
            is_leaving=bool(data.get("is_leaving")),
            is_background=bool(data.get("is_background")),
            abilities=data.get("abilities"),
            settings=data.get("settings"),
            announced_at=announced_at,
        )
    except (ValueError, KeyError, TypeError):
        return Running(pid=0, version=__version__, log=home / "worker.log")


def _is_outdone(found: Running, abilities: Abilities | None, settings: Digests | None) -> bool:
    if abilities is None or found.abilities is None or not found.is_background:
        return False
    if knows_more(abilities, found.abilities):
        return True
    has_other_settings = settings is not None and found.settings is not None and settings != found.settings
    return has_other_settings and abilities.keys() >= found.abilities.keys()


def _is_older(version: str) -> bool:
    def parts(text: str) -> tuple[int, ...]:
        return tuple(int(piece) for piece in text.split(".") if piece.isdigit())

    return parts(version) < parts(__version__)


def _decided_worker(home: Path) -> Running | None:
    """The live worker, once it has announced itself and, if it was leaving, that it stays; None when it has left."""
    ends = time.monotonic() + _LEAVE_SECONDS
    while (found := running_worker(home)) is not None and (found.is_leaving or not found.pid):
        if time.monotonic() > ends:
            raise StoreError(
                f"the worker (pid {found.pid}) announced that it leaves, but stays"
                if found.pid
                else "a worker that is starting does not announce itself",
                hint=f"see {found.log}",
            )
        time.sleep(0.05)
    return found


def _ask_to_leave(home: Path, found: Running) -> None:
    """Stop a worker that is older or can do less; it hands its leases back, and trainings go on."""
    if found.pid:
        with suppress(ProcessLookupError):  # it has just left
            os.kill(found.pid, signal.SIGTERM)
    ends = time.monotonic() + _LEAVE_SECONDS
    while running_worker(home) is not None:
        if time.monotonic() > ends:
            raise StoreError(
                f"the worker (pid {found.pid}) was asked to make room for another one, but stays",
                hint=f"see {found.log}",
            )
        time.sleep(0.05)


def _start(log: Path, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start it in a new session, so that closing the terminal does not end it; only this user may read its log.

    It stays in the caller's folder, where `.env` and relative paths mean what they meant to the caller.
    """
    private = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)  # the umask is the user's
    with os.fdopen(private, "ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            umask=0o077,
        )


def _wait_for_worker(home: Path, log: Path, started: subprocess.Popen[bytes]) -> Running:
    ends = time.monotonic() + _START_SECONDS
    while time.monotonic() < ends:
        has_ended = started.poll() is not None  # asked first: one that gave way to another worker leaves that one
        found = running_worker(home)
        if found is not None and found.pid:
            return found
        if has_ended:
            break
        time.sleep(0.05)
    raise StoreError("the background worker did not start", hint=f"see {log}, or run `stationmaster worker`")
