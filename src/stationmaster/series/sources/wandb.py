"""The file that wandb writes offline (`run-*.wandb`): blocks of a LevelDB log, and the records in them."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Iterator

from stationmaster.series.sources.recording import MachineValue, Recording, Scalar, finite, step_number
from stationmaster.series.sources.wire import BrokenMessage, fields, message_of, signed, text

#: How the file begins: its name, a magic number and a version.
MARK = b":W&B\xe1\xbe\x00"

_BLOCK = 1 << 15
_HEAD = struct.Struct("<IHB")
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4

_HISTORY, _CONFIG, _STATS, _RUN, _EXIT = 2, 5, 7, 17, 18  # of a Record
_ITEM, _STEP = 1, 2  # of a HistoryRecord
_KEY, _NESTED_KEY, _VALUE_JSON = 1, 2, 16  # of an item
_TIMESTAMP, _STATS_ITEM = 2, 3  # of a StatsRecord
_PROJECT, _RUN_CONFIG, _DISPLAY_NAME, _START_TIME = 3, 4, 8, 17  # of a RunRecord
_UPDATE = 1  # of a ConfigRecord
_EXIT_CODE = 1  # of a RunExitRecord

_GB = 2.0**30
_LONGEST_SETTING = 200
_GPU_KEY = re.compile(r"^(?:system\.)?gpu\.(\d+)\.(\w+)$")
_GPU_COLUMNS = {
    "gpu": ("utilization_percent", 1.0),
    "memoryAllocatedBytes": ("memory_used_gb", 1 / _GB),
    "temp": ("temperature_c", 1.0),
    "powerWatts": ("power_watts", 1.0),
    "enforcedPowerLimitWatts": ("power_limit_watts", 1.0),
    "smClock": ("clock_mhz", 1.0),
}
_MEMORY_COLUMNS = {
    "cpu": ("cpu_utilization_percent", 1.0),
    "proc.memory.availableMB": ("available_memory_gb", 1 / 1024),
    "proc.memory.rssMB": ("main_process_memory_gb", 1 / 1024),
}


def read_wandb(data: bytes) -> Recording:
    """The history of a run, the statistics of its machine and how it ended; what is cut off ends up in the notes.

    Values that are no numbers (texts, pictures, tables) are left out.
    """
    scalars: list[Scalar] = []
    machine: list[MachineValue] = []
    info: dict[str, str] = {}
    notes: list[str] = []
    for record in _records(data, notes):
        try:
            for number, value in fields(record):
                if not isinstance(value, bytes):
                    continue
                if number == _HISTORY:
                    scalars += _history(value)
                elif number == _STATS:
                    machine += _statistics(value)
                elif number == _RUN:
                    info |= _run(value)
                elif number == _CONFIG:
                    info |= _config(value)
                elif number == _EXIT:
                    code = message_of(value).get(_EXIT_CODE, 0)
                    info["exit_code"] = str(signed(code) if isinstance(code, int) else 0)
        except BrokenMessage:
            notes.append("a record that cannot be read was left out")
    return Recording(scalars=scalars, machine=machine, info=info, notes=tuple(dict.fromkeys(notes)))


def _records(data: bytes, notes: list[str]) -> Iterator[bytes]:
    place, end = len(MARK), len(data)
    parts: list[bytes] | None = None
    while place < end:
        left = _BLOCK - place % _BLOCK
        if left < _HEAD.size:  # too little for a head: filled up with zeros
            place += left
            continue
        if place + _HEAD.size > end:
            break
        crc, size, kind = _HEAD.unpack_from(data, place)
        body = place + _HEAD.size
        if not crc and not size and not kind:  # the rest of the block was never written
            place += left
            continue
        if body + size > end:
            break
        part = data[body : body + size]
        place = body + size
        if zlib.crc32(part, zlib.crc32(bytes([kind]))) != crc:
            notes.append("a damaged record was left out")
            parts = None
        elif kind == _FULL:
            yield part
        elif kind == _FIRST:
            parts = [part]
        elif parts is not None and kind in (_MIDDLE, _LAST):
            parts.append(part)
            if kind == _LAST:
                yield b"".join(parts)
                parts = None
    if place < end or parts:
        notes.append("the last record is cut off")


def _history(record: bytes) -> list[Scalar]:
    step, at = None, None
    values: list[tuple[str, float]] = []
    for number, value in fields(record):
        if number == _STEP:
            counted = message_of(value).get(1, 0)
            step = signed(counted) if isinstance(counted, int) else None
        if number != _ITEM or not isinstance(value, bytes):
            continue
        name, found = _item(value)
        for path, one in _numbers(name, found):
            if path == "_step":
                step = int(one)
            elif path == "_timestamp":
                at = finite(one)
            elif not path.startswith("_"):
                values.append((path, one))
    known = None if step is None else step_number(step)
    return [] if known is None else [Scalar(name, known, at, finite(value)) for name, value in values]


def _statistics(record: bytes) -> Iterator[MachineValue]:
    at = None
    items: list[tuple[str, object]] = []
    for number, value in fields(record):
        if number == _TIMESTAMP:
            at = _instant(value)
        elif number == _STATS_ITEM and isinstance(value, bytes):
            items.append(_item(value))
    if at is None:
        return
    for name, found in items:
        if isinstance(found, bool) or not isinstance(found, int | float):
            continue
        if (card := _GPU_KEY.match(name)) and card[2] in _GPU_COLUMNS:
            column, factor = _GPU_COLUMNS[card[2]]
            yield MachineValue("GpuSample", column, at, int(card[1]), finite(found * factor))
        elif (known := _MEMORY_COLUMNS.get(name.removeprefix("system."))) is not None:
            yield MachineValue("MetricsSample", known[0], at, None, finite(found * known[1]))


def _run(record: bytes) -> dict[str, str]:
    run = message_of(record)
    started = _instant(run.get(_START_TIME, 0))
    found = {
        "project": text(run.get(_PROJECT, 0)),
        "run_name": text(run.get(_DISPLAY_NAME, 0)),
        "started_at": "" if started is None else str(started),
    }
    config = run.get(_RUN_CONFIG)
    known = {key: value for key, value in found.items() if value}
    return known | (_config(config) if isinstance(config, bytes) else {})


def _config(record: bytes) -> dict[str, str]:
    """The short values of the configuration, as `config.<name>`."""
    found: dict[str, str] = {}
    for number, value in fields(record):
        if number == _UPDATE and isinstance(value, bytes):
            found.update(_short_texts("config", *_item(value)))
    return found


def _short_texts(above: str, name: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _short_texts(f"{above}.{name}", key, inner)
    elif not name.startswith("_") and isinstance(value, str | int | float) and len(str(value)) <= _LONGEST_SETTING:
        yield f"{above}.{name}", str(value)


def _item(item: bytes) -> tuple[str, object]:
    """The name of an item, nested names joined by dots, and its value as JSON has it."""
    names: list[str] = []
    value: object = None
    for number, content in fields(item):
        if number == _KEY and content:
            names = [text(content)]
        elif number == _NESTED_KEY:
            names.append(text(content))
        elif number == _VALUE_JSON:
            try:
                value = json.loads(text(content))
            except (ValueError, RecursionError):
                value = None
    return ".".join(names), value


def _numbers(name: str, value: object) -> Iterator[tuple[str, float]]:
    """The numbers of a value by their names; wandb writes nan and infinity as numbers or as texts."""
    if isinstance(value, bool):
        return
    if isinstance(value, int | float):
        yield name, _as_float(value)
    elif value in ("NaN", "Infinity", "-Infinity"):
        yield name, float("nan")
    elif isinstance(value, dict) and "_type" not in value:  # a picture, a table or a histogram has a type
        for key, inner in value.items():
            yield from _numbers(f"{name}.{key}", inner)


def _as_float(value: int | float) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("nan")


def _instant(value: int | float | bytes) -> float | None:
    stamp = message_of(value)
    seconds, nanos = stamp.get(1), stamp.get(2, 0)
    if not isinstance(seconds, int) or not isinstance(nanos, int):
        return None
    return signed(seconds) + signed(nanos) / 1e9
