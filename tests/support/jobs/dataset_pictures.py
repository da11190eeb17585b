"""Pictures, captions and hostile files for the dataset tests."""

from __future__ import annotations

import io
import struct
import tempfile
import zlib
from functools import cache
from pathlib import Path
from random import Random

from PIL import Image

from stationmaster.datasets.sample_set import write_sample_set


def good_set(folder: Path, *, images: int = 10) -> Path:
    """A captioned set that has no problem at all (trigger: smland)."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in _painted(images).items():
        (folder / name).write_bytes(content)
    return folder


def picture(*, size: tuple[int, int] = (256, 256), mode: str = "RGB", seed: int = 1) -> Image.Image:
    """A few rectangles on a gradient: structured, and different for each seed."""
    random = Random(seed)
    image = Image.linear_gradient("L").resize(size).convert("RGB")
    for _ in range(6):
        left, top = random.randrange(size[0] * 3 // 4), random.randrange(size[1] * 3 // 4)
        colour = (random.randrange(256), random.randrange(256), random.randrange(256))
        image.paste(colour, (left, top, left + size[0] // 4 + 1, top + size[1] // 4 + 1))
    return image.convert(mode)


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, format=form, **options)
    return buffer.getvalue()


def png_bomb(*, side: int = 30_000) -> bytes:
    """A real PNG of a few hundred kilobytes that unfolds to `side`² pixels."""
    packer = zlib.compressobj(9)
    row = bytes(1 + (side + 7) // 8)
    data = b"".join(packer.compress(row) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + _chunk(b"IHDR", header) + _chunk(b"IDAT", data) + _chunk(b"IEND", b"")


def webp_bomb() -> bytes:
    """The header of the largest WebP there is, with next to nothing behind it."""
    dimensions = (16382 | 16382 << 14).to_bytes(4, "little")
    body = b"WEBP" + b"VP8L" + struct.pack("<I", 10) + b"\x2f" + dimensions + bytes(5)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def endless_jpeg(*, scans: int = 3000) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    data = encoded(picture(), "JPEG", progressive=True)
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * scans + data[-2:]


@cache
def _painted(images: int) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as temporary:
        write_sample_set(Path(temporary), images=images)
        return {file.name: file.read_bytes() for file in Path(temporary).iterdir()}


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
