"""What trackside reports about a job, and how far home has read it."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypeGuard, TypeVar, get_args

from stationmaster.model import OutputFile
from stationmaster.model.intake_limits import (
    GPUS,
    KNOWN_STREAMS,
    LARGEST_INTEGER,
    LARGEST_TIME,
    LOG_STREAMS,
    MESSAGE_CHARACTERS,
    NAME_CHARACTERS,
    OUTPUT_FILES,
    PATH_CHARACTERS,
    PLAN_STEPS,
    SECRET_NAMES,
    SERIES_TABLES,
    SERIES_VALUES,
    TIME_MARKS,
)
from stationmaster.series.table import Table, table_from_json

_SHA256 = re.compile("[0-9a-f]{64}")
_STREAM = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")  # step and try

StepState = Literal["pending", "running", "done", "failed", "stopped"]
Result = Literal["done", "failed", "stopped"]
_STEP_STATES: tuple[StepState, ...] = get_args(StepState)
_RESULTS: tuple[Result, ...] = get_args(Result)

_NO_MARKS: Mapping[str, LogMark] = MappingProxyType({})
_NO_ROWS: Mapping[str, int] = MappingProxyType({})
_LONGEST_TABLE_NAME = 64


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
        marks = {**{stream: mark for stream, mark in self.log.items() if stream not in read}, **read}
        return Since(
            log=dict(list(marks.items())[-KNOWN_STREAMS:]),
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
    outputs_left_out: int = 0
    """How many more outputs there are."""
    series: tuple[Table, ...] = ()
    series_read: Mapping[str, int] = field(default_factory=lambda: _NO_ROWS)
    """The id of the last row by table, also of tables that this version does not know."""
    gpu: tuple[Gpu, ...] | None = None
    memory: MachineMemory | None = None
    disk: Disk | None = None
    health: HealthReport | None = None
    unwritten: str | None = None  # why the machine could not write what this call leaves there, such as for its guard


def parse_status(value: Mapping[str, Any]) -> Status:
    """Parse a status, ignoring unknown keys and with defaults for optional ones. Raises ValueError if it is none.

    The sender is not trusted: lists are cut at their limits, texts at theirs, and a number that cannot be one is an
    error.
    """
    try:
        return Status(
            wall=_time(value["wall"]),
            monotonic=_time(value["monotonic"]),
            boot_id=parse_text(value.get("boot_id") or "", NAME_CHARACTERS),
            started=bool(value["started"]),
            version=parse_text(value.get("version") or "", NAME_CHARACTERS),
            supervisor=_supervisor(_mapping(value.get("supervisor"))),
            steps=tuple(_step(step) for step in _items(value, "steps", PLAN_STEPS)),
            finished=_finished(_mapping(value.get("finished"))),
            training_alive=bool(value.get("training_alive")),
            needs_secrets=_names(value.get("needs_secrets")),
            heartbeat=_optional_time(value.get("heartbeat")),
            log=tuple(_log_piece(piece) for piece in _items(value, "log", LOG_STREAMS) if _is_stream(piece)),
            more=bool(value.get("more")),
            outputs=tuple(parse_output(output) for output in _items(value, "outputs", OUTPUT_FILES)),
            outputs_left_out=_left_out(value),
            series=_series(_items(value, "series", SERIES_TABLES)),
            series_read=_series_read(_items(value, "series", SERIES_TABLES)),
            gpu=_gpus(value),
            memory=_memory(_mapping(value.get("memory"))),
            disk=_disk(_mapping(value.get("disk"))),
            health=_health(_mapping(value.get("health"))),
            unwritten=_optional_text(value.get("unwritten"), MESSAGE_CHARACTERS),
        )
    except (LookupError, TypeError, AttributeError, ValueError, OverflowError) as problem:
        raise ValueError(f"not a status: {problem!r}") from problem


def parse_output(value: Mapping[str, Any]) -> OutputFile:
    sha256 = value.get("sha256")
    return OutputFile(
        path=_path(value["path"]),
        kind=parse_text(value.get("kind") or "", NAME_CHARACTERS),
        size=parse_size(value["size"]),
        mtime=_time(value.get("mtime") or 0.0),
        sha256=None if sha256 is None else parse_sha256(sha256),
    )


def parse_sha256(value: object) -> str:
    """Check a hash that a machine sent: it becomes part of file names at home. Raises ValueError."""
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError("not a SHA-256")
    return value


def parse_size(value: object) -> int:
    """Check a number of bytes or files that a machine sent. Raises ValueError."""
    size = _integer(value)
    if size < 0:
        raise ValueError("a size is negative")
    return size


def parse_text(value: object, most_characters: int) -> str:
    """A text that a machine sent, cut to its limit."""
    return str(value)[:most_characters] if isinstance(value, str | int | float | bool | None) else ""


def _path(value: object) -> str:
    """A cut path would name another file."""
    if not isinstance(value, str) or len(value) > PATH_CHARACTERS:
        raise ValueError("not a path")
    return value


def _names(value: object) -> tuple[str, ...]:
    names = value if isinstance(value, list) else []
    return tuple(parse_text(name, NAME_CHARACTERS) for name in names[:SECRET_NAMES])


def _left_out(value: Mapping[str, Any]) -> int:
    """How many outputs are not in the status: those that the machine left out, and those past our own limit."""
    listed = value.get("outputs")
    past_limit = max(0, len(listed) - OUTPUT_FILES) if isinstance(listed, list) else 0
    return past_limit + parse_size(value.get("outputs_left_out") or 0)


def _health(value: Mapping[str, Any]) -> HealthReport | None:
    if "ok" not in value:
        return None
    return HealthReport(
        ok=bool(value["ok"]),
        at=_time(value.get("wall") or 0.0),
        failure=_optional_text(value.get("failure"), NAME_CHARACTERS),
        exit_code=_optional_integer(value.get("exit_code")),
        tail=parse_text(value.get("tail") or "", MESSAGE_CHARACTERS),
    )


def _supervisor(value: Mapping[str, Any]) -> Supervisor:
    return Supervisor(alive=bool(value.get("alive")), pid=_optional_integer(value.get("pid")))


def _step(value: Mapping[str, Any]) -> StepStatus:
    return StepStatus(
        index=_integer(value["index"]),
        name=parse_text(value["name"], NAME_CHARACTERS),
        state=_one_of(_STEP_STATES, value["state"]),
        training=bool(value.get("training")),
        try_number=_integer(value.get("try") or 0),
        exit_code=_optional_integer(value.get("exit_code")),
        signal=_optional_integer(value.get("signal")),
        exit_known=bool(value.get("exit_known", True)),
        started_at=_optional_time(value.get("started_at")),
        ended_at=_optional_time(value.get("ended_at")),
        pid=_optional_integer(value.get("pid")),
        failure=_optional_text(value.get("failure"), MESSAGE_CHARACTERS),
        error=_optional_text(value.get("error"), MESSAGE_CHARACTERS),
        cannot_pass=bool(value.get("cannot_pass")),
    )


def _finished(value: Mapping[str, Any]) -> Finished | None:
    if not value:
        return None
    return Finished(
        result=_one_of(_RESULTS, value["result"]),
        step=_optional_text(value.get("step"), NAME_CHARACTERS),
        exit_code=_optional_integer(value.get("exit_code")),
        at=_optional_time(value.get("at")),
    )


def _is_stream(piece: Mapping[str, Any]) -> bool:
    """Whether a piece of the log belongs to a step; positions of anything else would grow without end."""
    stream = piece.get("stream")
    return isinstance(stream, str) and _STREAM.fullmatch(stream) is not None


def _log_piece(value: Mapping[str, Any]) -> LogPiece:
    start, end = parse_size(value["start"]), parse_size(value["end"])
    data = base64.b64decode(value.get("data") or "", validate=True)
    if len(data) > end - start:
        raise ValueError("a piece of the log has more bytes than its place in the file")
    return LogPiece(
        stream=value["stream"],
        inode=_integer(value.get("inode") or 0, most=2**64),
        start=start,
        end=end,
        data=data,
        restarted=bool(value.get("restarted")),
        times=tuple((parse_size(place), _time(wall)) for place, wall in (value.get("times") or ())[:TIME_MARKS]),
    )


def _gpus(value: Mapping[str, Any]) -> tuple[Gpu, ...] | None:
    if value.get("gpu") is None:
        return None
    return tuple(
        Gpu(
            index=_integer(gpu["index"]),
            name=parse_text(gpu.get("name") or "", NAME_CHARACTERS),
            memory_used_mib=_optional_number(gpu.get("memory_used_mib")),
            memory_total_mib=_optional_number(gpu.get("memory_total_mib")),
            utilization_percent=_optional_number(gpu.get("utilization_percent")),
        )
        for gpu in _items(value, "gpu", GPUS)
    )


def _memory(value: Mapping[str, Any]) -> MachineMemory | None:
    if not value:
        return None
    return MachineMemory(
        total_bytes=parse_size(value["total_bytes"]),
        available_bytes=parse_size(value["available_bytes"]),
        swap_used_bytes=parse_size(value.get("swap_used_bytes") or 0),
    )


def _disk(value: Mapping[str, Any]) -> Disk | None:
    if not value:
        return None
    return Disk(total_bytes=parse_size(value["total_bytes"]), free_bytes=parse_size(value["free_bytes"]))


def _series(pieces: Sequence[Mapping[str, Any]]) -> tuple[Table, ...]:
    """The rows that can be used; a table that is not as it should be is left out."""
    room = SERIES_VALUES
    found = []
    for piece in pieces[:SERIES_TABLES]:
        table = table_from_json(piece.get("table"), piece.get("columns"), most_values=room)
        if table is not None:
            room -= len(table) * len(table.columns)
            found.append(table)
    return tuple(found)


def _series_read(pieces: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """How far each table was sent. Rows that were left out count as read: they would be no better a second time."""
    read: dict[str, int] = {}
    for piece in pieces[:SERIES_TABLES]:
        table, last = piece.get("table"), piece.get("last")
        if isinstance(table, str) and len(table) <= _LONGEST_TABLE_NAME and _is_row_id(last):
            read = _furthest(read, {table: last})
    return read


def _is_row_id(value: object) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= LARGEST_INTEGER


def _furthest(before: Mapping[str, int], read: Mapping[str, int]) -> dict[str, int]:
    """The larger position of each table; those of more tables than there can be are dropped."""
    positions = {**before, **{table: max(last, before.get(table, 0)) for table, last in read.items()}}
    return dict(list(positions.items())[:SERIES_TABLES])


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: Mapping[str, Any], key: str, most: int) -> tuple[Mapping[str, Any], ...]:
    found = value.get(key)
    return tuple(item for item in found[:most] if isinstance(item, Mapping)) if isinstance(found, list) else ()


_T = TypeVar("_T", bound=str)


def _one_of(known: tuple[_T, ...], value: object) -> _T:
    found = next((each for each in known if each == value), None)
    if found is None:
        raise ValueError("an unknown state")
    return found


def _number(value: object, most: float) -> float:
    """A finite number; a text or a boolean is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -most <= value <= most:
        raise ValueError("not a number")
    return float(value)


def _time(value: object) -> float:
    return _number(value, LARGEST_TIME)


def _optional_time(value: object) -> float | None:
    return None if value is None else _time(value)


def _optional_number(value: object) -> float | None:
    return None if value is None else _number(value, LARGEST_INTEGER)


def _integer(value: object, most: int = LARGEST_INTEGER) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > most:
        raise ValueError("not a whole number")
    return value


def _optional_integer(value: object) -> int | None:
    return None if value is None else _integer(value)


def _optional_text(value: object, most_characters: int) -> str | None:
    return None if value is None else parse_text(value, most_characters)
