"""Finds images that look almost the same, by small signatures of their structure and colours."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

from PIL import Image

_ROWS = 16
_HASH_BITS = 2 * _ROWS * _ROWS
_MAX_DIFFERENT_BITS = 16
_MAX_COLOUR_DIFFERENCE = 24
_NOISE = 2  # smaller differences count as none, so that flat areas give the same bits after compression
_BAND_BITS = 16
_MAX_COMPARED = 64  # per band: limits the time for thousands of similar but different images


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSignature:
    """`structure`: where brightness rises along each row and each column (512 bits). `colours`: 4×4 mean colours."""

    structure: int
    colours: bytes

    def is_near(self, other: ImageSignature) -> bool:
        if (self.structure ^ other.structure).bit_count() > _MAX_DIFFERENT_BITS:
            return False
        return all(abs(a - b) <= _MAX_COLOUR_DIFFERENCE for a, b in zip(self.colours, other.colours, strict=True))


def signature_of(image: Image.Image) -> ImageSignature:
    """The signature of a decoded image; transparent parts count as grey."""
    small = _reduced(image)
    grey = small.convert("L")
    along, down = _rises(grey), _rises(grey.transpose(Image.Transpose.TRANSPOSE))
    return ImageSignature(
        structure=along << _HASH_BITS // 2 | down, colours=small.resize((4, 4), Image.Resampling.BOX).tobytes()
    )


def near_duplicates(seen: Iterable[tuple[str, ImageSignature]]) -> list[tuple[str, str]]:
    """Pairs (image, earlier image that it looks like), in the order given."""
    pairs: list[tuple[str, str]] = []
    bands: dict[tuple[int, int], list[tuple[str, ImageSignature]]] = defaultdict(list)
    for path, signature in seen:
        keys = list(_bands(signature))
        candidates = (known for key in keys for known in bands[key][-_MAX_COMPARED:])
        original = next((earlier for earlier, other in candidates if signature.is_near(other)), None)
        if original is not None:
            pairs.append((path, original))
            continue
        for key in keys:
            bands[key].append((path, signature))
    return pairs


def _reduced(image: Image.Image) -> Image.Image:
    size = (4 * (_ROWS + 1), 4 * _ROWS)
    if image.mode in ("1", "P", "PA"):  # palette numbers cannot be averaged
        small = image.resize(size, Image.Resampling.NEAREST)
    else:
        small = image.resize(size, Image.Resampling.BOX)
    if small.mode.startswith("I;16"):
        small = small.convert("I").point(lambda value: value / 256).convert("L")
    elif small.mode in ("I", "F"):
        small = small.convert("L")
    if small.has_transparency_data:
        layer = small.convert("RGBA")
        small = Image.alpha_composite(Image.new("RGBA", size, (128, 128, 128, 255)), layer)
    return small.convert("RGB")


def _rises(grey: Image.Image) -> int:
    """One bit for each two neighbours in each row: does brightness rise from left to right?"""
    values = grey.resize((_ROWS + 1, _ROWS), Image.Resampling.BOX).tobytes()
    bits = 0
    for start in range(0, len(values), _ROWS + 1):
        row = values[start : start + _ROWS + 1]
        for left, right in pairwise(row):
            bits = bits << 1 | (right > left + _NOISE)
    return bits


def _bands(signature: ImageSignature) -> Iterable[tuple[int, int]]:
    """Two near signatures share at least one: 16 different bits cannot touch all 32 bands."""
    for band in range(_HASH_BITS // _BAND_BITS):
        yield band, signature.structure >> band * _BAND_BITS & (1 << _BAND_BITS) - 1
