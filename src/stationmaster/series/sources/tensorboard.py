"""Event files of TensorBoard: the records of a TFRecord file, and the scalars in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from functools import lru_cache

from stationmaster.series.sources.recording import Recording, Scalar, finite, step_number
from stationmaster.series.sources.wire import BrokenMessage, fields, packed_varints, signed, text

#: Part of the name of every event file.
MARK = ".tfevents."

_HEAD = struct.Struct("<QI")
_CRC = struct.Struct("<I")
#: A longer record is a picture or a graph.
_LONGEST_RECORD = 1 << 20

_WALL_TIME, _STEP, _SUMMARY = 1, 2, 5  # of an Event
_VALUE = 1  # of a Summary
_TAG, _SIMPLE_VALUE, _TENSOR = 1, 2, 8  # of a Value
_DTYPE, _CONTENT, _FLOAT_VAL, _DOUBLE_VAL, _HALF_VAL = 1, 4, 5, 6, 13  # of a Tensor
_SIGNED_VALS, _UNSIGNED_VALS = (7, 10, 11), (16, 17)  # int, int64, bool; uint32, uint64
_BFLOAT16 = 14
#: How one number of each data type is packed in `tensor_content`.
_CONTENT_FORMS = {
    1: "<f", 2: "<d", 3: "<i", 4: "<B", 5: "<h", 6: "<b", 9: "<q", 10: "<?", 17: "<H", 19: "<e", 22: "<I", 23: "<Q",
}  # fmt: skip


def read_event_files(files: Mapping[str, bytes]) -> Recording:
    """The scalars of all event files of a folder, by their paths in it.

    Files in one folder continue each other. If several folders have files, each is a run of its own: the names of
    values get the folder in front, as TensorBoard shows them.
    """
    folders = sorted({path.rpartition("/")[0] for path in files})
    scalars: list[Scalar] = []
    notes: list[str] = []
    for path in sorted(files):
        folder = path.rpartition("/")[0]
        prefix = f"{folder}/" if folder and len(folders) > 1 else ""
        found = read_events(files[path])
        scalars += [scalar._replace(name=prefix + scalar.name) for scalar in found.scalars] if prefix else found.scalars
        notes += [f"{path}: {note}" for note in found.notes]
    return Recording(scalars=scalars, notes=tuple(notes))


def read_events(data: bytes) -> Recording:
    """The scalars of one event file. A record that is cut off or damaged ends up in the notes; nothing is raised."""
    scalars: list[Scalar] = []
    notes: list[str] = []
    for record in _records(data, notes):
        try:
            scalars += _scalars(record)
        except BrokenMessage:
            notes.append("a record that cannot be read was left out")
    return Recording(scalars=scalars, notes=tuple(dict.fromkeys(notes)))


def are_events(data: bytes) -> bool:
    """Whether these are the first bytes of an event file."""
    if len(data) < _HEAD.size:
        return False
    size, crc = _HEAD.unpack_from(data)
    return bool(crc == _masked_crc(data[:8])) and size < _LONGEST_RECORD


def _records(data: bytes, notes: list[str]) -> Iterator[bytes]:
    place, end = 0, len(data)
    while place < end:
        if place + _HEAD.size > end:
            notes.append("the last record is cut off")
            return
        size, crc = _HEAD.unpack_from(data, place)
        if crc != _length_crc(data[place : place + 8]):
            notes.append(f"the file is damaged at byte {place}; what follows was left out")
            return
        body = place + _HEAD.size
        place = body + size + _CRC.size
        if place > end:
            notes.append("the last record is cut off")
            return
        if size > _LONGEST_RECORD:
            continue
        record = data[body : body + size]
        if _CRC.unpack_from(data, body + size)[0] != _masked_crc(record):
            notes.append("a damaged record was left out")
            continue
        yield record


def _scalars(record: bytes) -> Iterator[Scalar]:
    at, step = 0.0, 0
    summaries: list[bytes] = []
    for number, value in fields(record):
        if number == _WALL_TIME and isinstance(value, float):
            at = value
        elif number == _STEP and isinstance(value, int):
            step = signed(value)
        elif number == _SUMMARY and isinstance(value, bytes):
            summaries.append(value)
    known_step, known_at = step_number(step), finite(at)
    if known_step is None:
        return
    for summary in summaries:
        for number, value in fields(summary):
            if number != _VALUE or not isinstance(value, bytes):
                continue
            found = _named_number(value)
            if found is not None:
                yield Scalar(found[0], known_step, known_at, finite(found[1]))


def _named_number(value: bytes) -> tuple[str, float] | None:
    tag, number = "", None
    for field, content in fields(value):
        if field == _TAG:
            tag = text(content)
        elif field == _SIMPLE_VALUE and isinstance(content, float):
            number = content
        elif field == _TENSOR and isinstance(content, bytes):
            number = _tensor_number(content)
    return (tag, number) if tag and number is not None else None


def _tensor_number(tensor: bytes) -> float | None:
    """The number of a tensor with one element; None for every other tensor."""
    dtype, content, numbers = 0, b"", list[float]()
    for field, value in fields(tensor):
        if field == _DTYPE and isinstance(value, int):
            dtype = value
        elif field == _CONTENT and isinstance(value, bytes):
            content = value
        elif field == _FLOAT_VAL:
            numbers += _unpacked("<f", value)
        elif field == _DOUBLE_VAL:
            numbers += _unpacked("<d", value)
        elif field in (*_SIGNED_VALS, *_UNSIGNED_VALS, _HALF_VAL):
            whole = list(packed_varints(value)) if isinstance(value, bytes) else [int(value)]
            numbers += [_as_number(number, field=field, dtype=dtype) for number in whole]
    if content and dtype in _CONTENT_FORMS and len(content) == struct.calcsize(_CONTENT_FORMS[dtype]):
        return float(struct.unpack(_CONTENT_FORMS[dtype], content)[0])
    if content and dtype == _BFLOAT16 and len(content) == 2:
        return _bfloat16(int.from_bytes(content, "little"))
    return numbers[0] if len(numbers) == 1 and not content else None


def _as_number(number: int, *, field: int, dtype: int) -> float:
    if field == _HALF_VAL:
        bits = number & 0xFFFF
        return _bfloat16(bits) if dtype == _BFLOAT16 else float(struct.unpack("<e", bits.to_bytes(2, "little"))[0])
    return float(number if field in _UNSIGNED_VALS else signed(number))


def _bfloat16(bits: int) -> float:
    return float(struct.unpack("<f", bytes(2) + bits.to_bytes(2, "little"))[0])


def _unpacked(form: str, value: int | float | bytes) -> list[float]:
    """One number, or those of a field that is written packed."""
    if isinstance(value, bytes):
        size = struct.calcsize(form)
        return [number for (number,) in struct.iter_unpack(form, value[: len(value) // size * size])]
    return [float(value)]


@lru_cache(maxsize=1024)
def _length_crc(length: bytes) -> int:
    """Return the checksum of a record's length: most records of a file have one of a few lengths."""
    return _masked_crc(length)


def _crc_table() -> tuple[int, ...]:
    table = []
    for byte in range(256):
        for _ in range(8):
            byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
        table.append(byte)
    return tuple(table)


_CRC_TABLE = _crc_table()


def _masked_crc(data: bytes) -> int:
    """The CRC-32C of the bytes, rotated and shifted as TFRecord files store it.

    >>> hex(_masked_crc(b"123456789"))
    '0xc78ab0e5'
    """
    table, crc = _CRC_TABLE, 0xFFFF_FFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= 0xFFFF_FFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFF_FFFF
