"""The wire format of protocol buffers, as far as scalars need it: numbers, texts and nested messages by number."""

from __future__ import annotations

import struct
from collections.abc import Iterator

Field = tuple[int, int | float | bytes]
"""The number of a field, and its value: an integer, a double or float, or the bytes of a text or message."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_DOUBLE, _FLOAT = struct.Struct("<d"), struct.Struct("<f")
_LONGEST_VARINT = 10


class BrokenMessage(ValueError):
    """The bytes are not a message."""


def fields(message: bytes) -> Iterator[Field]:
    """The fields of a message in their order; fixed numbers are read as double and float. Raises BrokenMessage.

    >>> list(fields(bytes.fromhex("0801 1203616263 1d0000803f")))
    [(1, 1), (2, b'abc'), (3, 1.0)]
    """
    place, end = 0, len(message)
    while place < end:
        key = message[place]
        if key < 0x80:  # nearly all keys and sizes are one byte: without a call, twice as fast
            place += 1
        else:
            key, place = _varint(message, place)
        kind = key & 7
        if kind == _BYTES:
            if place < end and message[place] < 0x80:
                size, place = message[place], place + 1
            else:
                size, place = _varint(message, place)
            value: int | float | bytes = message[place : place + size]
            place += size
        elif kind == _VARINT:
            value, place = _varint(message, place)
        elif kind == _FIXED64:
            value, place = _fixed(_DOUBLE, message, place)
        elif kind == _FIXED32:
            value, place = _fixed(_FLOAT, message, place)
        else:
            raise BrokenMessage(f"a field has the unknown wire type {kind}")
        if place > end:
            raise BrokenMessage("a field is longer than its message")
        yield key >> 3, value


def signed(number: int) -> int:
    """The number of a field of type int32 or int64, which are written as 64 bits.

    >>> signed(0xFFFF_FFFF_FFFF_FFFF)
    -1
    """
    return number - (1 << 64) if number >= 1 << 63 else number


def packed_varints(value: bytes) -> Iterator[int]:
    """The numbers of a repeated field that is written as one. Raises BrokenMessage."""
    place = 0
    while place < len(value):
        number, place = _varint(value, place)
        yield number


def text(value: int | float | bytes) -> str:
    """The text of a field; empty if it has another type."""
    return value.decode(errors="replace") if isinstance(value, bytes) else ""


def message_of(value: int | float | bytes) -> dict[int, int | float | bytes]:
    """The last value of each field of a nested message; empty if the field has another type. Raises BrokenMessage."""
    return dict(fields(value)) if isinstance(value, bytes) else {}


def _fixed(form: struct.Struct, message: bytes, place: int) -> tuple[float, int]:
    if place + form.size > len(message):
        raise BrokenMessage("a field is longer than its message")
    return form.unpack_from(message, place)[0], place + form.size


def _varint(message: bytes, place: int) -> tuple[int, int]:
    number = shift = 0
    for byte in message[place : place + _LONGEST_VARINT]:
        place += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, place
        shift += 7
    raise BrokenMessage("a number does not end")
