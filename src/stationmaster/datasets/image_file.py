"""Checks one image file: whether it opens, its size, and its visual signature."""

from __future__ import annotations

import struct
import threading
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import BinaryIO

from PIL import Image

from stationmaster.datasets.image_header import ImageHeader, count_jpeg_scans, read_header
from stationmaster.datasets.near_duplicates import ImageSignature, signature_of
from stationmaster.datasets.report import DatasetProblem, error, warning
from stationmaster.datasets.rules import DatasetRules
from stationmaster.datasets.tree import TreeEntry, open_unchanged
from stationmaster.errors import DatasetInvalid

FORMAT_OF_SUFFIX = {".png": "PNG", ".jpg": "JPEG", ".jpeg": "JPEG", ".webp": "WEBP"}
FORMATS = ("PNG", "JPEG", "WEBP")
BROKEN = (  # what Pillow raises on damaged files
    OSError, SyntaxError, ValueError, EOFError, ArithmeticError, LookupError, TypeError, AttributeError, MemoryError,
    struct.error, zlib.error, Image.DecompressionBombError,
)  # fmt: skip

_TINY_SIDE = 32
_MAX_JPEG_SCANS = 100
_GIANT_PIXELS = 16_000_000
_ONE_GIANT_AT_A_TIME = threading.Lock()  # decoding several at once would need gigabytes
_THUMBNAIL = (64, 64)
_ORIENTATION = 0x0112
_PLAIN_MODES = frozenset({"RGB", "RGBA", "L", "LA", "P", "1"})  # every trainer converts these to RGB correctly


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Properties that need decoding. `orientation` is the EXIF value; 1 is upright."""

    mode: str
    has_transparency: bool
    orientation: int
    is_animated: bool
    signature: ImageSignature


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCheck:
    """An image and its problems. `decoded` is None if it cannot be read."""

    entry: TreeEntry
    problems: tuple[DatasetProblem, ...]
    header: ImageHeader | None = None
    decoded: Decoded | None = None


def examine(entry: TreeEntry, rules: DatasetRules) -> ImageCheck:
    """Decode and check one image; time and memory are bounded even for hostile content."""
    header = None
    try:
        with open_unchanged(entry) as file:
            header = read_header(file)
            if refusal := _refusal(entry, header, file, rules):
                return ImageCheck(entry=entry, problems=(refusal,), header=header)
            decoded = _decode(file, giant=header is not None and header.pixels > _GIANT_PIXELS)
    except DatasetInvalid as exc:
        return ImageCheck(entry=entry, problems=(error("image_unreadable", entry.path, str(exc), exc.hint or ""),))
    except BROKEN as exc:
        return ImageCheck(entry=entry, problems=(_damage(entry, exc),), header=header)
    problems = tuple(_judge(entry, header, decoded, rules)) if header else ()
    return ImageCheck(entry=entry, problems=problems, header=header, decoded=decoded)


@contextmanager
def quiet_pillow() -> Iterator[None]:
    """Suppress Pillow's warnings about damaged EXIF blocks: our report covers them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def max_pixels(rules: DatasetRules) -> int:
    """The limit in the rules, at most Pillow's own limit against decompression bombs."""
    return min(rules.max_pixels, Image.MAX_IMAGE_PIXELS or rules.max_pixels)


def _refusal(
    entry: TreeEntry, header: ImageHeader | None, file: BinaryIO, rules: DatasetRules
) -> DatasetProblem | None:
    """The problem if the file must not be decoded at all."""
    path = entry.path
    if entry.size == 0:
        return error("image_empty", path, "the file is empty", "replace it with a complete copy, or remove it")
    if header is None:
        return error("image_unreadable", path, "this is not an image", "replace it with a complete copy, or remove it")
    if header.format not in FORMATS:
        text = f"a {header.format} file with the suffix of another image format"
        return error("image_format", path, text, "export it as PNG or JPEG (--fix converts GIF, BMP and TIFF)")
    if entry.size > rules.max_image_bytes:
        limit = f"{entry.size / 1e6:,.0f} MB; the limit is {rules.max_image_bytes / 1e6:,.0f} MB"
        return error("image_too_large", path, limit, "export it smaller")
    if header.pixels > max_pixels(rules):
        text = f"{header.width}×{header.height} pixels; the limit is {max_pixels(rules) / 1e6:,.0f} million"
        return error("image_too_large", path, text, "scale it down, as trainers do anyway")
    if header.format == "JPEG" and count_jpeg_scans(file) > _MAX_JPEG_SCANS:
        return error("image_unreadable", path, "the JPEG has far too many scans", "remove it, or export it again")
    return None


def _decode(file: BinaryIO, *, giant: bool) -> Decoded:
    with _ONE_GIANT_AT_A_TIME if giant else nullcontext():
        file.seek(0)
        with Image.open(file, formats=FORMATS) as image:
            kind = image.format
            if kind == "PNG":
                image.verify()  # also checks the checksums
        file.seek(0)
        with Image.open(file, formats=FORMATS) as image:
            mode = image.mode
            animated = kind != "MPO" and getattr(image, "is_animated", False)  # MPO: a camera's JPEG with a preview
            image.draft("RGB", _THUMBNAIL)  # JPEG: reads the whole file, but decodes an eighth of each side
            image.load()
            return Decoded(
                mode=mode,
                has_transparency=_has_transparency(image),
                orientation=_orientation(image),
                is_animated=animated,
                signature=signature_of(image),
            )


def _has_transparency(image: Image.Image) -> bool:
    if "A" in image.getbands():  # many programs write a fully opaque alpha channel
        return image.getchannel("A").getextrema() != (255, 255)
    return image.has_transparency_data


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except BROKEN:
        return 1  # a damaged EXIF block: other programs ignore it too
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _damage(entry: TreeEntry, exc: BaseException) -> DatasetProblem:
    truncated = isinstance(exc, EOFError) or "truncated" in str(exc).lower()
    code = "image_truncated" if truncated else "image_unreadable"
    text = "the file is truncated" if truncated else "the file is damaged"
    return error(code, entry.path, text, "replace it with a complete copy, or remove it")


def _judge(entry: TreeEntry, header: ImageHeader, decoded: Decoded, rules: DatasetRules) -> Iterator[DatasetProblem]:
    path = entry.path
    if FORMAT_OF_SUFFIX[entry.suffix] != header.format:
        text = f"the suffix is {entry.suffix}, but the file is a {header.format} image"
        yield warning("image_wrong_suffix", path, text, "rename it (--fix does it)")
    if decoded.is_animated:
        text = "the image is animated; only the first frame is used"
        yield warning("image_animated", path, text, "export the frame you want (--fix takes the first)")
    if decoded.orientation != 1:
        text = "the image is rotated by its EXIF tag, which some trainers ignore"
        yield warning("image_exif_rotated", path, text, "rotate the pixels (--fix does it)")
    if decoded.has_transparency:
        text = "transparent parts become black in some trainers and white in others"
        yield warning("image_transparent", path, text, "put it on a background (--fix takes white)")
    elif decoded.mode not in _PLAIN_MODES:
        yield warning("image_mode", path, f"the colour mode is {decoded.mode}", "convert to RGB (--fix does it)")
    yield from _judge_size(path, header, rules)


def _judge_size(path: str, header: ImageHeader, rules: DatasetRules) -> Iterator[DatasetProblem]:
    short, long = sorted((header.width, header.height))
    size = f"{header.width}×{header.height} pixels"
    if short < _TINY_SIDE:
        yield error("image_tiny", path, f"{size}: too small for training", "remove it, or use the original")
    elif short < rules.min_side:
        text = f"{size}: the recipe needs at least {rules.min_side} on the shorter side"
        yield error("image_too_small", path, text, "use a larger original, or remove the image")
    elif rules.recommended_side is not None and short < rules.recommended_side:
        text = f"{size}: at least {rules.recommended_side} on the shorter side is recommended"
        yield warning("image_small", path, text, "use a larger original if there is one")
    if long > rules.max_aspect * short:
        text = f"{size}: the aspect ratio is over {rules.max_aspect:g}:1, so most of it would be cropped"
        yield warning("image_aspect", path, text, "crop it to the part that matters")
