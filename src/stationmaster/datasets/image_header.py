"""Reads an image's format and size from its first bytes, before a decoder allocates memory."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import BinaryIO

_FIRST_BYTES = 32
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}  # SOF markers; the others are tables
_JPEG_START_OF_SCAN = b"\xff\xda"
_CHUNK = 1 << 20

_OTHER_FORMATS = (
    (0, b"GIF8", "GIF"),
    (0, b"BM", "BMP"),
    (0, b"II*\0", "TIFF"),
    (0, b"MM\0*", "TIFF"),
    (4, b"ftypavi", "AVIF"),
    (4, b"ftyphei", "HEIC"),
    (4, b"ftypmif1", "HEIC"),
    (0, b"%PDF", "PDF"),
    (0, b"8BPS", "PSD"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageHeader:
    """`width` and `height` are 0 for formats that trainers do not read."""

    format: str
    width: int = 0
    height: int = 0

    @property
    def pixels(self) -> int:
        return self.width * self.height


def read_header(file: BinaryIO) -> ImageHeader | None:
    """Format and size by the content, not the name; None if it is no known image format."""
    file.seek(0)
    first = file.read(_FIRST_BYTES)
    if first.startswith(b"\x89PNG\r\n\x1a\n"):
        return _read_png(first)
    if first.startswith(b"\xff\xd8\xff"):
        return _read_jpeg(file)
    if first.startswith(b"RIFF") and first[8:12] == b"WEBP":
        return _read_webp(first)
    for offset, magic, name in _OTHER_FORMATS:
        if first[offset:].startswith(magic):
            return ImageHeader(format=name)
    return None


def count_jpeg_scans(file: BinaryIO) -> int:
    """Number of scans. A scan takes only a few bytes: thousands of them keep a decoder busy for hours."""
    file.seek(0)
    scans, last = 0, b""
    while data := file.read(_CHUNK):
        scans += (last + data).count(_JPEG_START_OF_SCAN)
        last = data[-1:]
    return scans


def _read_png(first: bytes) -> ImageHeader | None:
    if len(first) < 24 or first[12:16] != b"IHDR":
        return None
    width, height = struct.unpack_from(">II", first, 16)
    return ImageHeader(format="PNG", width=width, height=height)


def _read_jpeg(file: BinaryIO) -> ImageHeader | None:
    file.seek(2)
    while True:
        marker = file.read(2)
        if len(marker) < 2 or marker[0] != 0xFF:
            return None
        if marker[1] == 0xFF:  # fill byte: the marker begins one byte later
            file.seek(-1, 1)
            continue
        segment = file.read(7 if marker[1] in _JPEG_FRAMES else 2)
        if len(segment) < 2 or (length := struct.unpack_from(">H", segment)[0]) < 2:
            return None
        if marker[1] in _JPEG_FRAMES:
            if len(segment) < 7:
                return None
            height, width = struct.unpack_from(">HH", segment, 3)
            return ImageHeader(format="JPEG", width=width, height=height)
        file.seek(length - 2, 1)


def _read_webp(first: bytes) -> ImageHeader | None:
    kind, data = first[12:16], first[20:]
    if kind == b"VP8X" and len(data) >= 10:
        width = int.from_bytes(data[4:7], "little") + 1
        height = int.from_bytes(data[7:10], "little") + 1
    elif kind == b"VP8L" and len(data) >= 5:
        bits = int.from_bytes(data[1:5], "little")
        width, height = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    elif kind == b"VP8 " and len(data) >= 10:
        width, height = (side & 0x3FFF for side in struct.unpack_from("<HH", data, 6))
    else:
        return None
    return ImageHeader(format="WEBP", width=width, height=height)
