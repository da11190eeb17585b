"""Segments of trackside's journal: what a training recorded and nothing has folded into its database yet. Pure.

A segment has a header with the job, then records. Each ends with a mark that is written last, unless it was cut off.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stationmaster.series.schema import TABLES
from stationmaster.series.table import Table, table_of

MAGIC = b"TRKSIDE1"
SUFFIX = ".journal"

_HEADER_BYTES = 2048
_STEP, _RECORD, _VOID = 1, 2, 3
#: Type, batch size, step, timestamp, loss, learning rate, gradient norm, step time, mark.
_STEP_LAYOUT = struct.Struct("<B3xiqdddddI4x")
_RECORD_HEAD = struct.Struct("<B3xI")
_RECORD_END = struct.Struct("<I4x")
_MARK = 0x5AA55AA5
_PADDING = 8
_FIRST_ID = 1 << 40  # beyond those of the database

_STEP_COLUMNS = ("batch_size", "step", "timestamp", "loss", "learning_rate", "gradient_norm", "step_time_seconds")
_MEMORY_COLUMNS = ("total_memory_gb", "used_memory_gb", "available_memory_gb", "swap_used_gb")
_GPU_COLUMNS = tuple(name for name in TABLES["GpuSample"] if name not in ("id", "timestamp"))
_SAMPLE_COLUMNS = ("main_process_memory_gb", "worker_memory_gb", "worker_count", "cpu_utilization_percent")

_Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRows:
    """The rows of one segment, and whose they are."""

    job: str
    tables: tuple[Table, ...]


def read_segment(data: bytes, *, position: int) -> JournalRows | None:
    """Return what a segment holds behind `position`, up to which it was folded; None if it is no segment."""
    job = _job(data)
    if job is None:
        return None
    rows: _Rows = {}
    for found in _records(data, max(position, _HEADER_BYTES)):
        try:
            _add(rows, found)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue  # one that cannot be read does not cost the others
    return JournalRows(job=job, tables=tuple(_table(name, each) for name, each in rows.items()))


def _job(data: bytes) -> str | None:
    if not data.startswith(MAGIC) or len(data) < _HEADER_BYTES:
        return None
    (length,) = struct.unpack_from("<I", data, len(MAGIC))
    try:
        return str(json.loads(data[12 : 12 + min(length, _HEADER_BYTES)])["job"])
    except (ValueError, KeyError, TypeError):
        return None


def _records(data: bytes, at: int) -> Iterator[tuple[Any, ...] | Mapping[str, Any]]:
    """Yield each step as its fields, and each other record as its JSON object."""
    while at + _STEP_LAYOUT.size <= len(data):
        kind = data[at]
        if kind == _RECORD:
            _, length = _RECORD_HEAD.unpack_from(data, at)
            mark_at = at + _RECORD_HEAD.size + -(-length // _PADDING) * _PADDING
            if mark_at + _RECORD_END.size > len(data) or _RECORD_END.unpack_from(data, mark_at)[0] != _MARK:
                return
            yield _object(data[at + _RECORD_HEAD.size :][:length])
            at = mark_at + _RECORD_END.size
        elif kind in (_STEP, _VOID):
            fields = _STEP_LAYOUT.unpack_from(data, at)
            if kind == _STEP and fields[-1] == _MARK:
                yield fields
            at += _STEP_LAYOUT.size
        else:
            return


def _object(text: bytes) -> Mapping[str, Any]:
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _add(rows: _Rows, found: tuple[Any, ...] | Mapping[str, Any]) -> None:
    if isinstance(found, tuple):
        batch_size, *values = found[1:-1]
        known = (None if batch_size == -1 else batch_size, *values)
        rows.setdefault("StepMetric", []).append(dict(zip(_STEP_COLUMNS, known, strict=True)))
    elif found.get("kind") == "values":
        for name, value in found["values"].items():
            row = {"step": found["step"], "timestamp": found["at"], "name": name, "value": value}
            rows.setdefault("StepValue", []).append(row)
    elif found.get("kind") == "event":
        row = {"timestamp": found["at"], "event_type": found["type"], "details": json.dumps(found["details"])}
        rows.setdefault("TrainingEvent", []).append(row)
    elif found.get("kind") == "info":
        rows.setdefault("RunInfo", []).extend({"key": key, "value": str(each)} for key, each in found["values"].items())
    elif found.get("kind") == "sample":
        _add_sample(rows, found["sample"])


def _add_sample(rows: _Rows, sample: Mapping[str, Any]) -> None:
    at = sample["timestamp"]
    memory = dict(zip(_MEMORY_COLUMNS, sample["memory"], strict=False))
    own = {name: sample.get(name) for name in _SAMPLE_COLUMNS}
    rows.setdefault("MetricsSample", []).append({"timestamp": at, **memory, **own})
    for gpu in sample["gpus"]:
        rows.setdefault("GpuSample", []).append({"timestamp": at, **dict(zip(_GPU_COLUMNS, gpu, strict=False))})


def _table(name: str, rows: list[dict[str, Any]]) -> Table:
    columns: dict[str, list[Any]] = {"id": [*range(_FIRST_ID, _FIRST_ID + len(rows))]}
    for column in TABLES[name]:
        if column != "id" and any(column in row for row in rows):
            columns[column] = [row.get(column) for row in rows]
    return table_of(name, columns)
