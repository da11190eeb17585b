"""Small pictures of sample pictures, made once and kept in a folder of bounded size.

The pictures come from strangers' machines: sizes are checked before anything is decoded, and the result is encoded
anew, without any of the original's metadata.
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

from PIL import Image

from stationmaster.datasets.image_file import BROKEN, quiet_pillow
from stationmaster.datasets.image_header import count_jpeg_scans, read_header
from stationmaster.errors import PictureInvalid
from stationmaster.files import write_atomically

MEDIA_TYPE = "image/webp"
_MOST_BYTES = 32 << 20  # of a picture's file
MOST_PIXELS = 25_000_000  # 100 MB when decoded
_MOST_JPEG_SCANS = 100
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_QUALITY = 80
_KEPT_FILES = 2000
_KEPT_BYTES = 100 << 20
_HASH = re.compile(r"[0-9a-f]{64}")


class ThumbnailCache:
    """Thumbnails by job, hash of the picture and width; the longest unused ones are removed."""

    def __init__(self, folder: Path, *, most_files: int = _KEPT_FILES, most_bytes: int = _KEPT_BYTES) -> None:
        self._folder = folder
        self._most_files = most_files
        self._most_bytes = most_bytes

    def get(self, job_id: str, sha256: str, width: int) -> bytes | None:
        path = self._path(job_id, sha256, width)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        return data

    def put(self, job_id: str, sha256: str, width: int, data: bytes) -> None:
        path = self._path(job_id, sha256, width)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
        self._remove_oldest()

    def _path(self, job_id: str, sha256: str, width: int) -> Path:
        assert _HASH.fullmatch(sha256), "a verified file has a SHA-256"
        return self._folder / job_id / f"{sha256}-{width}.webp"

    def _remove_oldest(self) -> None:
        kept = []
        for path in self._folder.glob("*/*.webp"):
            try:
                about = path.stat()
            except OSError:
                continue  # another process has removed it
            kept.append((about.st_mtime, about.st_size, path))
        kept.sort(reverse=True)
        total = 0
        for place, (_, size, path) in enumerate(kept):
            total += size
            if place >= self._most_files or total > self._most_bytes:
                path.unlink(missing_ok=True)


def scaled_down(data: bytes, width: int) -> bytes:
    """The first frame of a PNG, JPEG, WebP or GIF as WebP, at most so wide and twice as high.

    Raises PictureInvalid for what is broken, another format, or too large to be decoded safely.
    """
    require_size(len(data))
    file = io.BytesIO(data)
    try:
        with quiet_pillow():
            _require_harmless(file)
            with Image.open(file, formats=_FORMATS) as image:
                _require_pixels(image.width, image.height)
                image.draft("RGB", (width, 2 * width))  # JPEG: decodes only as large as needed
                plain = image.convert("RGBA" if image.has_transparency_data else "RGB")
            plain.info.clear()
            plain.thumbnail((width, 2 * width), reducing_gap=2.0)
            made = io.BytesIO()
            plain.save(made, "WEBP", quality=_QUALITY)
    except PictureInvalid:
        raise
    except BROKEN as problem:
        raise PictureInvalid(f"the picture cannot be read: {type(problem).__name__}") from None
    return made.getvalue()


def require_size(size: int) -> None:
    """Raises PictureInvalid for a file of more bytes than are read."""
    if size > _MOST_BYTES:
        raise PictureInvalid(f"the picture has {size / 2**20:.0f} MiB; at most {_MOST_BYTES >> 20} are shown")


def _require_harmless(file: io.BytesIO) -> None:
    header = read_header(file)
    if header is None or header.format not in _FORMATS:
        raise PictureInvalid("this is not a picture in PNG, JPEG, WebP or GIF format")
    _require_pixels(header.width, header.height)
    if header.format == "JPEG" and count_jpeg_scans(file) > _MOST_JPEG_SCANS:
        raise PictureInvalid("the JPEG has far too many scans")
    file.seek(0)


def _require_pixels(width: int, height: int) -> None:
    if width * height > MOST_PIXELS:
        limit = f"at most {MOST_PIXELS // 1_000_000} million pixels are shown"
        raise PictureInvalid(f"the picture has {width}×{height} pixels; {limit}")
