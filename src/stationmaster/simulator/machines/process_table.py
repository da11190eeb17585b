"""Facts about processes, from /proc; a process that has gone meanwhile has none."""

from __future__ import annotations

from pathlib import Path

_PROC = Path("/proc")


def child_of(pid: int) -> int | None:
    return next((child for child in _all() if parent_of(child) == pid), None)


def parent_of(pid: int) -> int | None:
    fields = _stat(pid)
    return int(fields[1]) if fields else None


def started_of(pid: int) -> str:
    """When the process began: a number that was given to another process later has another beginning."""
    fields = _stat(pid)
    return fields[19] if fields and fields[0] != "Z" else ""


def name_of(pid: int) -> str:
    return _read(pid, "comm").decode(errors="replace").strip()


def command_of(pid: int) -> list[str]:
    """The words of the command line."""
    return _read(pid, "cmdline").decode(errors="replace").split("\0")


def processes_beside(pid: int) -> list[int]:
    """The processes that share this one's process table, itself among them."""
    table = _table(pid)
    return [other for other in _all() if table is not None and _table(other) == table]


def _all() -> list[int]:
    return [int(entry.name) for entry in _PROC.glob("[0-9]*")]


def _stat(pid: int) -> list[str]:
    return _read(pid, "stat").decode(errors="replace").rpartition(")")[2].split()


def _read(pid: int, name: str) -> bytes:
    try:
        return (_PROC / str(pid) / name).read_bytes()
    except OSError:
        return b""


def _table(pid: int) -> Path | None:
    try:
        return (_PROC / str(pid) / "ns/pid").readlink()
    except OSError:
        return None
