"""Tar headers with name, size and kind only: owner 0, fixed mode, time 0.

Not by `tarfile`, whose bytes have changed between versions of Python: an archive's hash must not change.
"""

from __future__ import annotations

from functools import lru_cache

BLOCK = 512
RECORD = 20 * BLOCK

_NAME_BYTES = 100
_SIZE_LIMIT = 8 << 30  # eleven octal digits
_PAX_NAME = b"././@PaxHeader"
_FILE, _FOLDER, _PAX = b"0", b"5", b"x"

# The fields between name, size and checksum never change; the checksum counts itself as eight spaces.
_MODE = {_FILE: b"0000644\0", _FOLDER: b"0000755\0", _PAX: b"0000644\0"}
_OWNER = b"0000000\0" * 2
_TIME = b"00000000000\0"
_TAIL = bytes(100) + b"ustar\x0000" + bytes(247)
_FIXED_SUM = {kind: sum(mode + _OWNER + _TIME + kind + _TAIL) + 8 * ord(" ") for kind, mode in _MODE.items()}
_BLOCK = {kind: b"%b" + mode + _OWNER + b"%b" + _TIME + b"%06o\0 " + kind + _TAIL for kind, mode in _MODE.items()}


def file_header(path: str, size: int) -> bytes:
    """The header of a file; plain ustar, preceded by a PAX record if the name or size does not fit."""
    return _header(path, size, _FILE)


def folder_header(path: str) -> bytes:
    return _header(path + "/", 0, _FOLDER)


def _header(path: str, size: int, kind: bytes) -> bytes:
    if size < _SIZE_LIMIT and len(path) <= _NAME_BYTES and path.isascii():
        return _block(path.encode(), size, kind)
    records = b""
    if len(path) > _NAME_BYTES or not path.isascii():
        records += _pax_record(b"path", path.encode())
    if size >= _SIZE_LIMIT:
        records += _pax_record(b"size", b"%d" % size)
    block = _block(path.encode("ascii", "replace")[:_NAME_BYTES], size if size < _SIZE_LIMIT else 0, kind)
    return _block(_PAX_NAME, len(records), _PAX) + records + bytes(-len(records) % BLOCK) + block


def _block(name: bytes, size: int, kind: bytes) -> bytes:
    octal_size, size_sum = _octal(size)
    return _BLOCK[kind] % (name.ljust(_NAME_BYTES, b"\0"), octal_size, _FIXED_SUM[kind] + sum(name) + size_sum)


@lru_cache(maxsize=4096)  # captions have few different sizes
def _octal(size: int) -> tuple[bytes, int]:
    """The size as octal digits, and their sum for the checksum."""
    digits = b"%011o\0" % size
    return digits, sum(digits)


def _pax_record(key: bytes, value: bytes) -> bytes:
    """`length key=value`; the length includes its own digits."""
    body = b" " + key + b"=" + value + b"\n"
    length = len(body)
    while length != len(body) + len(b"%d" % length):
        length = len(body) + len(b"%d" % length)
    return b"%d" % length + body
