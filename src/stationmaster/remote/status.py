"""What trackside reports about a job, and how far home has read it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeGuard, cast

from stationmaster.model import OutputFile
from stationmaster.series.table import Table, table_from_json

_SHA256 = re.compile("[0-9a-f]{64}")

StepState = Literal["pending", "running", "done", "failed", "stopped"]
Result = Literal["done", "failed", "stopped"]

_NO_MARKS: Mapping[str, LogMark] = MappingProxyType({})
_NO_ROWS: Mapping[str, int] = MappingProxyType({})
_MOST_VALUES = 200_000  # of measured series in one status; more is no honest machine's
_MOST_TABLES = 32
_LONGEST_TABLE_NAME = 64
_LAST_ROW_ID = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class LogMark:
    """How far one log stream has been read, in raw bytes of the file with this inode."""

    inode: int
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Since:
    """How far home has read; the next status carries only what is newer."""

    log: Mapping[str, LogMark] = field(default_factory=lambda: _NO_MARKS)
    series: Mapping[str, int] = field(default_factory=lambda: _NO_ROWS)  # the id of the last row, by table
    grain_seconds: float | None = None  # seconds between time marks of the log; None: the machine's default

    def after(self, status: Status) -> Since:
        """Return the position after everything in `status`."""
        read = {piece.stream: LogMark(inode=piece.inode, offset=piece.end) for piece in status.log}
        return Since(
            log={**self.log, **read},
            series=_furthest(self.series, status.series_read),
        )

    def to_json(self) -> dict[str, Any]:
        marks = {stream: {"inode": mark.inode, "offset": mark.offset} for stream, mark in self.log.items()}
        grain = {} if self.grain_seconds is None else {"grain": self.grain_seconds}
        series = {"series": dict(self.series)} if self.series else {}
        return {"log": marks, **series, **grain}

    @classmethod
    def from_json(cls, value: Mapping[str, Any] | None) -> Since:
        """Read what to_json wrote; anything else means from the beginning."""
        value = value or {}
        try:
            marks = {
                str(stream): LogMark(inode=int(mark["inode"]), offset=int(mark["offset"]))
                for stream, mark in _mapping(value.get("log")).items()
            }
            series = {str(table): int(last) for table, last in _mapping(value.get("series")).items()}
            return cls(log=marks, series=series)
        except (KeyError, TypeError, ValueError, OverflowError):
            return cls()


@dataclass(frozen=True, slots=True, kw_only=True)
class Supervisor:
    alive: bool = False
    pid: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStatus:
    """One step of the plan at its latest try; times are the machine's wall clock."""

    index: int
    name: str
    state: StepState
    training: bool = False
    try_number: int = 0
    exit_code: int | None = None
    signal: int | None = None
    exit_known: bool = True
    started_at: float | None = None
    ended_at: float | None = None
    pid: int | None = None
    failure: str | None = None
    error: str | None = None
    """The line of its log that names the error."""
    cannot_pass: bool = False
    """The machine does not retry: the error would be the same at every try."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How the whole plan ended."""

    result: Result
    step: str | None = None
    exit_code: int | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """New bytes of one stream ("<step>.<try>"); redraws may be thinned, `start` and `end` are raw offsets.

    `times` are (length of `data`, machine's wall clock) pairs: when that much had been written.
    """

    stream: str
    inode: int
    start: int
    end: int
    data: bytes
    restarted: bool = False
    times: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    index: int
    name: str = ""
    memory_used_mib: float | None = None
    memory_total_mib: float | None = None
    utilization_percent: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineMemory:
    total_bytes: int
    available_bytes: int
    swap_used_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    total_bytes: int
    free_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthReport:
    """The last result of the recipe's health check; `at` is the machine's wall clock."""

    ok: bool
    at: float
    failure: str | None = None
    exit_code: int | None = None
    tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """One status from trackside. Compare `wall` and `monotonic`, the machine's clocks, only with themselves."""

    wall: float
    monotonic: float
    boot_id: str
    started: bool
    version: str = ""
    supervisor: Supervisor = Supervisor()
    steps: tuple[StepStatus, ...] = ()
    finished: Finished | None = None
    training_alive: bool = False
    needs_secrets: tuple[str, ...] = ()
    heartbeat: float | None = None
    log: tuple[LogPiece, ...] = ()
    more: bool = False
    outputs: tuple[OutputFile, ...] = ()
    series: tuple[Table, ...] = ()
    series_read: Mapping[str, int] = field(default_factory=lambda: _NO_ROWS)
    """The id of the last row by table, also of tables that this version does not know."""
    gpu: tuple[Gpu, ...] | None = None
    memory: MachineMemory | None = None
    disk: Disk | None = None
    health: HealthReport | None = None


def parse_status(value: Mapping[str, Any]) -> Status:
    """Parse a status, ignoring unknown keys and with defaults for optional ones. Raises ValueError if it is none."""
    try:
        return Status(
            wall=float(value["wall"]),
            monotonic=float(value["monotonic"]),
            boot_id=str(value.get("boot_id") or ""),
            started=bool(value["started"]),
            version=str(value.get("version") or ""),
            supervisor=_supervisor(_mapping(value.get("supervisor"))),
            steps=tuple(_step(step) for step in _items(value, "steps")),
            finished=_finished(_mapping(value.get("finished"))),
            training_alive=bool(value.get("training_alive")),
            needs_secrets=tuple(str(name) for name in value.get("needs_secrets") or ()),
            heartbeat=_optional_float(value.get("heartbeat")),
            log=tuple(_log_piece(piece) for piece in _items(value, "log")),
            more=bool(value.get("more")),
            outputs=tuple(parse_output(output) for output in _items(value, "outputs")),
            series=_series(_items(value, "series")),
            series_read=_series_read(_items(value, "series")),
            gpu=_gpus(value),
            memory=_memory(_mapping(value.get("memory"))),
            disk=_disk(_mapping(value.get("disk"))),
            health=_health(_mapping(value.get("health"))),
        )
    except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise ValueError(f"not a status: {problem!r}") from problem


def parse_output(value: Mapping[str, Any]) -> OutputFile:
    sha256 = value.get("sha256")
    return OutputFile(
        path=str(value["path"]),
        kind=str(value.get("kind") or ""),
        size=parse_size(value["size"]),
        mtime=float(value.get("mtime") or 0.0),
        sha256=None if sha256 is None else parse_sha256(sha256),
    )


def parse_sha256(value: object) -> str:
    """Check a hash that a machine sent: it becomes part of file names at home. Raises ValueError."""
    if not _SHA256.fullmatch(str(value)):
        raise ValueError("not a SHA-256")
    return str(value)


def parse_size(value: object) -> int:
    size = int(str(value))
    if size < 0:
        raise ValueError("a file size is negative")
    return size


def _health(value: Mapping[str, Any]) -> HealthReport | None:
    if "ok" not in value:
        return None
    failure = value.get("failure")
    return HealthReport(
        ok=bool(value["ok"]),
        at=float(value.get("wall") or 0.0),
        failure=None if failure is None else str(failure),
        exit_code=_optional_int(value.get("exit_code")),
        tail=str(value.get("tail") or ""),
    )


def _supervisor(value: Mapping[str, Any]) -> Supervisor:
    return Supervisor(alive=bool(value.get("alive")), pid=_optional_int(value.get("pid")))


def _step(value: Mapping[str, Any]) -> StepStatus:
    return StepStatus(
        index=int(value["index"]),
        name=str(value["name"]),
        state=cast(StepState, str(value["state"])),
        training=bool(value.get("training")),
        try_number=int(value.get("try") or 0),
        exit_code=_optional_int(value.get("exit_code")),
        signal=_optional_int(value.get("signal")),
        exit_known=bool(value.get("exit_known", True)),
        started_at=_optional_float(value.get("started_at")),
        ended_at=_optional_float(value.get("ended_at")),
        pid=_optional_int(value.get("pid")),
        failure=None if value.get("failure") is None else str(value["failure"]),
        error=None if value.get("error") is None else str(value["error"]),
        cannot_pass=bool(value.get("cannot_pass")),
    )


def _finished(value: Mapping[str, Any]) -> Finished | None:
    if not value:
        return None
    return Finished(
        result=cast(Result, str(value["result"])),
        step=None if value.get("step") is None else str(value["step"]),
        exit_code=_optional_int(value.get("exit_code")),
        at=_optional_float(value.get("at")),
    )


def _log_piece(value: Mapping[str, Any]) -> LogPiece:
    return LogPiece(
        stream=str(value["stream"]),
        inode=int(value.get("inode") or 0),
        start=int(value["start"]),
        end=int(value["end"]),
        data=base64.b64decode(value.get("data") or "", validate=True),
        restarted=bool(value.get("restarted")),
        times=tuple((int(place), float(wall)) for place, wall in value.get("times") or ()),
    )


def _gpus(value: Mapping[str, Any]) -> tuple[Gpu, ...] | None:
    if value.get("gpu") is None:
        return None
    return tuple(
        Gpu(
            index=int(gpu["index"]),
            name=str(gpu.get("name") or ""),
            memory_used_mib=_optional_float(gpu.get("memory_used_mib")),
            memory_total_mib=_optional_float(gpu.get("memory_total_mib")),
            utilization_percent=_optional_float(gpu.get("utilization_percent")),
        )
        for gpu in _items(value, "gpu")
    )


def _memory(value: Mapping[str, Any]) -> MachineMemory | None:
    if not value:
        return None
    return MachineMemory(
        total_bytes=int(value["total_bytes"]),
        available_bytes=int(value["available_bytes"]),
        swap_used_bytes=int(value.get("swap_used_bytes") or 0),
    )


def _disk(value: Mapping[str, Any]) -> Disk | None:
    return Disk(total_bytes=int(value["total_bytes"]), free_bytes=int(value["free_bytes"])) if value else None


def _series(pieces: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    """The rows that can be used; a table that is not as it should be is left out."""
    room = _MOST_VALUES
    found = []
    for piece in pieces[:_MOST_TABLES]:
        table = table_from_json(piece.get("table"), piece.get("columns"), most_values=room)
        if table is not None:
            room -= len(table) * len(table.columns)
            found.append(table)
    return tuple(found)


def _series_read(pieces: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How far each table was sent. Rows that were left out count as read: they would be no better a second time."""
    read: dict[str, int] = {}
    for piece in pieces[:_MOST_TABLES]:
        table, last = piece.get("table"), piece.get("last")
        if isinstance(table, str) and len(table) <= _LONGEST_TABLE_NAME and _is_row_id(last):
            read = _furthest(read, {table: last})
    return read


def _is_row_id(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _LAST_ROW_ID


def _furthest(before: Mapping[str, int], read: Mapping[str, int]) -> dict[str, int]:
    """The larger position of each table; those of more tables than there can be are dropped."""
    positions = {**before, **{table: max(last, before.get(table, 0)) for table, last in read.items()}}
    return dict(list(positions.items())[:_MOST_TABLES])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Mapping[str, Any], key: str) -> tuple[Mapping[str, Any], ...]:
    return tuple(item for item in value.get(key) or () if isinstance(item, Mapping))


def _optional_int(value: Any) -> int | None:
    return None if value is None else int(value)


def _optional_float(value: Any) -> float | None:
    return None if value is None else float(value)
