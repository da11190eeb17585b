"""Looks at a training that was started by hand, before a job is made for it. Nothing on the machine is changed.

trackside is put into a temporary folder for the look and removed again.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.errors import CommandFailed, RemoteError
from stationmaster.model import Access
from stationmaster.remote.base import Remote, check
from stationmaster.remote.host import Host

_LOGIN_SECONDS = 30.0
_LONGEST_TEXT = 400
_LONGEST_PATH = 4096
_MAKE = (
    "import json, sys, tempfile; assert sys.version_info >= (3, 8), 'Python 3.8 or newer is needed'; "
    "print(json.dumps(tempfile.mkdtemp(prefix='stationmaster-look-')))"
)
_REMOVE = "import shutil, sys; shutil.rmtree(sys.argv[1], ignore_errors=True)"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundTraining:
    """What the machine shows of the training. Its texts are the machine's own: shown, never trusted."""

    user: str
    process: Mapping[str, Any] | None
    how: str  # pid_file, log or none
    problem: str
    command: str
    started_at: float | None
    can_be_stopped: bool
    writes_log: bool
    log: str
    logs: tuple[str, ...]  # the newest first
    logs_found: int
    output: str | None
    output_is_there: bool
    checkpoints: int
    checkpoint_bytes: int
    seconds_ahead: float  # of the machine's clock before ours


async def look_at_training(
    access: Access,
    asked: Mapping[str, Any],
    *,
    connect: Callable[[Access], Remote],
    trackside: Path,
    now: Callable[[], float],
) -> FoundTraining:
    """Log in once and look. Raises RemoteError."""
    remote = connect(access)
    try:
        answer = await check(remote, ["python3", "-c", _MAKE], timeout=_LOGIN_SECONDS)
        folder = _folder(answer)
        try:
            host = Host(remote, root=folder)
            await host.install(trackside)
            return _found(await host.look(asked), now=now())
        finally:
            with suppress(RemoteError):  # a temporary folder that stays is no reason to refuse
                await check(remote, ["python3", "-c", _REMOVE, folder], timeout=_LOGIN_SECONDS)
    finally:
        await remote.close()


def _folder(answer: bytes) -> str:
    """The last line as JSON: a login may print a greeting before it."""
    try:
        folder = json.loads(answer.splitlines()[-1])
    except (IndexError, ValueError):
        folder = None
    if not isinstance(folder, str) or "stationmaster-look-" not in folder or not folder.startswith("/"):
        raise CommandFailed(f"the login did not answer as it should: {answer[:200]!r}")
    return folder


def _found(answer: Mapping[str, Any], *, now: float) -> FoundTraining:
    try:
        started_at, process = answer["started_at"], answer["process"]
        return FoundTraining(
            user=_text(answer["user"]),
            process=None if process is None else _process(process),
            how=str(answer["how"]),
            problem=_text(answer["problem"]),
            command=_text(answer["command"]),
            started_at=None if started_at is None else _finite(started_at),
            can_be_stopped=bool(answer["can_be_stopped"]),
            writes_log=bool(answer["writes_log"]),
            log=_path(answer["log"]),
            logs=tuple(_path(each["path"]) for each in answer["logs"][:5]),
            logs_found=int(answer["logs_found"]),
            output=None if answer["output"] is None else _path(answer["output"]),
            output_is_there=bool(answer["output_is_there"]),
            checkpoints=int(answer["checkpoints"]),
            checkpoint_bytes=int(answer["checkpoint_bytes"]),
            seconds_ahead=_finite(answer["wall"]) - now,
        )
    except (KeyError, TypeError, ValueError) as problem:
        raise CommandFailed(f"the machine's answer cannot be read: {type(problem).__name__}: {problem}") from problem


def _text(value: Any) -> str:
    """A text of the machine as one line that a terminal and a database take."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(value)[:_LONGEST_TEXT])


def _path(value: Any) -> str:
    """A path of the machine; the plan needs it unchanged, so one that cannot be shown is refused."""
    path = str(value)
    if not path.startswith("/") or len(path) > _LONGEST_PATH or not path.isprintable():
        raise ValueError("not a path that can be shown")
    return path


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError("not a time")
    return number


def _process(record: Mapping[str, Any]) -> dict[str, Any]:
    """Only what identifies it, with the types that a plan needs."""
    return {
        "pid": int(record["pid"]),
        "start_time": str(record["start_time"])[:64],
        "boot_id": str(record["boot_id"])[:64],
        "pgid": int(record["pgid"]),
    }
