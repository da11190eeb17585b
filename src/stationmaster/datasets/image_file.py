"""One image file under the glass: whether it opens, how large it is, what it looks like."""

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
BROKEN = (  # what Pillow's readers raise on damaged files
    OSError, SyntaxError, ValueError, EOFError, ArithmeticError, LookupError, TypeError, AttributeError, MemoryError,
    struct.error, zlib.error, Image.DecompressionBombError,
)  # fmt: skip

_TINY_SIDE = 32
_MAX_JPEG_SCANS = 100
_GIANT_PIXELS = 16_000_000
_ONE_GIANT_AT_A_TIME = threading.Lock()  # several decoded at once would need gigabytes
_THUMBNAIL = (64, 64)
_ORIENTATION = 0x0112
_PLAIN_MODES = frozenset({"RGB", "RGBA", "L", "LA", "P", "1"})  # what every trainer turns into RGB rightly


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """What only a full reading shows. `orientation` is EXIF's, 1 being upright."""

    mode: str
    has_transparency: bool
    orientation: int
    is_animated: bool
    likeness: ImageSignature


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageCheck:
    """One image and what is wrong with it. `decoded` is None when it cannot be read."""

    entry: TreeEntry
    problems: tuple[DatasetProblem, ...]
    header: ImageHeader | None = None
    decoded: Decoded | None = None


def examine(entry: TreeEntry, rules: DatasetRules) -> ImageCheck:
    """Read one image through and judge it; hostile content costs bounded time and memory, and is a problem."""
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
    """Keeps Pillow's remarks on damaged EXIF blocks off stderr: the report is ours to write."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"PIL\.")
        yield


def max_pixels(rules: DatasetRules) -> int:
    """The rules' limit, but never so much that Pillow itself would cry bomb."""
    return min(rules.max_pixels, Image.MAX_IMAGE_PIXELS or rules.max_pixels)


def _refusal(
    entry: TreeEntry, header: ImageHeader | None, file: BinaryIO, rules: DatasetRules
) -> DatasetProblem | None:
    """Why the file is not even given to a decoder."""
    path = entry.path
    if entry.size == 0:
        return error("image_empty", path, "the file is empty", "replace it with a whole copy, or remove it")
    if header is None:
        return error("image_unreadable", path, "this is not an image", "replace it with a whole copy, or remove it")
    if header.format not in FORMATS:
        text = f"this is a {header.format} file under the name of an image that trainers read"
        return error("image_format", path, text, "export it as PNG or JPEG (--fix does it for GIF, BMP and TIFF)")
    if entry.size > rules.max_image_bytes:
        limit = f"{entry.size / 1e6:,.0f} MB, at most {rules.max_image_bytes / 1e6:,.0f} MB are read"
        return error("image_too_large", path, limit, "export it smaller")
    if header.pixels > max_pixels(rules):
        text = f"{header.width}×{header.height} pixels, at most {max_pixels(rules) / 1e6:,.0f} million are read"
        return error("image_too_large", path, text, "scale it down; trainers do so anyway")
    if header.format == "JPEG" and count_jpeg_scans(file) > _MAX_JPEG_SCANS:
        return error("image_unreadable", path, "the JPEG is made to keep decoders busy", "remove it, or export it anew")
    return None


def _decode(file: BinaryIO, *, giant: bool) -> Decoded:
    with _ONE_GIANT_AT_A_TIME if giant else nullcontext():
        file.seek(0)
        with Image.open(file, formats=FORMATS) as image:
            kind = image.format
            if kind == "PNG":
                image.verify()  # the checksums, which loading leaves out
        file.seek(0)
        with Image.open(file, formats=FORMATS) as image:
            mode = image.mode
            animated = kind != "MPO" and getattr(image, "is_animated", False)  # MPO: a camera's JPEG with its preview
            image.draft("RGB", _THUMBNAIL)  # JPEG: reads all of the file, but computes an eighth of each side
            image.load()
            return Decoded(
                mode=mode,
                has_transparency=_has_transparency(image),
                orientation=_orientation(image),
                is_animated=animated,
                likeness=signature_of(image),
            )


def _has_transparency(image: Image.Image) -> bool:
    if "A" in image.getbands():  # many programs write an alpha channel that hides nothing
        return image.getchannel("A").getextrema() != (255, 255)
    return image.has_transparency_data


def _orientation(image: Image.Image) -> int:
    try:
        value = image.getexif().get(_ORIENTATION, 1)
    except BROKEN:
        return 1  # a damaged EXIF block does not spoil the picture; nobody else reads an orientation from it either
    return value if isinstance(value, int) and 1 <= value <= 8 else 1


def _damage(entry: TreeEntry, exc: BaseException) -> DatasetProblem:
    truncated = isinstance(exc, EOFError) or "truncated" in str(exc).lower()
    code = "image_truncated" if truncated else "image_unreadable"
    text = "the file is cut short" if truncated else "the file is damaged"
    return error(code, entry.path, text, "replace it with a whole copy, or remove it")


def _judge(entry: TreeEntry, header: ImageHeader, decoded: Decoded, rules: DatasetRules) -> Iterator[DatasetProblem]:
    path = entry.path
    if FORMAT_OF_SUFFIX[entry.suffix] != header.format:
        text = f"named {entry.suffix} but holds a {header.format} image"
        yield warning("image_wrong_suffix", path, text, "rename it to fit its content (--fix does it)")
    if decoded.is_animated:
        text = "the image is animated; only its first picture is used"
        yield warning("image_animated", path, text, "export the picture you want (--fix takes the first)")
    if decoded.orientation != 1:
        text = "the image is turned by its EXIF note only, which some trainers ignore"
        yield warning("image_exif_rotated", path, text, "turn the pixels (--fix does it)")
    if decoded.has_transparency:
        text = "transparent parts become black in some trainers and white in others"
        yield warning("image_transparent", path, text, "put it on a background (--fix takes white)")
    elif decoded.mode not in _PLAIN_MODES:
        yield warning("image_mode", path, f"colours are stored as {decoded.mode}", "convert to RGB (--fix does it)")
    yield from _judge_size(path, header, rules)


def _judge_size(path: str, header: ImageHeader, rules: DatasetRules) -> Iterator[DatasetProblem]:
    short, long = sorted((header.width, header.height))
    size = f"{header.width}×{header.height} pixels"
    if short < _TINY_SIDE:
        yield error("image_tiny", path, f"{size}: too small to learn from", "remove it, or use the original")
    elif short < rules.min_side:
        text = f"{size}: the recipe needs at least {rules.min_side} on the shorter side"
        yield error("image_too_small", path, text, "use a larger original, or remove the image")
    elif rules.recommended_side is not None and short < rules.recommended_side:
        text = f"{size}: {rules.recommended_side} or more on the shorter side train better"
        yield warning("image_small", path, text, "use a larger original if there is one")
    if long > rules.max_aspect * short:
        text = f"{size}: longer than {rules.max_aspect:g} to 1, most of it would be cropped"
        yield warning("image_aspect", path, text, "crop it to the part that matters")
