"""What can be learnt of a training that somebody started by hand, before it is adopted. Only reads."""

from __future__ import annotations

import json
import os
from typing import Any

from trackside.errors import Misuse
from trackside.machine import clock
from trackside.machine.foreign_process import (
    Found,
    command_of,
    has_open_for_writing,
    may_be_signalled,
    process_in_file,
    process_writing,
    started_at,
)
from trackside.steps.adopted_files import count_adopted
from trackside.steps.foreign_log import LogFile, matching_logs

_MOST_SHOWN = 5
_CHECKPOINTS = ("*.safetensors", "*.ckpt", "*.pt", "*.pth", "*.bin")


def look(asked_text: bytes) -> dict[str, Any]:
    """Return process, logs and output folder of the training that `asked_text` (JSON) describes."""
    asked = _parse(asked_text)
    log_pattern, pid_file, output = (_absolute(asked.get(name)) for name in ("log", "pid_file", "output"))
    if log_pattern is None:
        raise Misuse("`log` is missing")
    logs = matching_logs(log_pattern)
    found = _find(pid_file, logs)
    pid = None if found.process is None else found.process.pid
    checkpoints, size = (0, 0) if output is None else count_adopted(os.path.realpath(output), _CHECKPOINTS)
    return {
        "boot_id": clock.boot_id(),
        "wall": clock.now().wall,
        "user": _user(),
        "process": None if found.process is None else found.process.as_record(),
        "how": found.how,
        "problem": found.problem,
        "note": found.note,
        "command": "" if pid is None else command_of(pid),
        "started_at": None if found.process is None else started_at(found.process),
        "can_be_stopped": pid is not None and may_be_signalled(pid),
        "writes_log": pid is not None and bool(logs) and has_open_for_writing(pid, logs[0].path),
        "log": log_pattern,
        "logs": [log._asdict() for log in logs[:_MOST_SHOWN]],
        "logs_found": len(logs),
        "output": output,
        "output_is_there": output is not None and os.path.isdir(output),
        "checkpoints": checkpoints,
        "checkpoint_bytes": size,
    }


def _find(pid_file: str | None, logs: list[LogFile]) -> Found:
    boot_id = clock.boot_id()
    if pid_file is not None:
        return process_in_file(pid_file, boot_id=boot_id)
    if not logs:
        return Found(process=None, how="none")
    return process_writing(logs[0].path, boot_id=boot_id)


def _parse(text: bytes) -> dict[str, Any]:
    try:
        asked = json.loads(text)
    except ValueError:
        asked = None
    if not isinstance(asked, dict):
        raise Misuse("expected a JSON object on stdin")
    return asked


def _absolute(path: Any) -> str | None:
    """Return a path as the login user means it: ~ is their home, and so is where a relative one begins."""
    if path is None:
        return None
    if not isinstance(path, str) or not path or "\0" in path:
        raise Misuse("%r is not a path" % (path,))
    return os.path.normpath(os.path.join(os.path.expanduser("~"), os.path.expanduser(path)))


def _user() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())
