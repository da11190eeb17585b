"""Pictures with captions for a measured training: plain colours with some noise, several shapes of about 1024²."""

from __future__ import annotations

from pathlib import Path

import numpy
from PIL import Image

SIZES = [(1024, 1024), (1152, 896), (896, 1152), (1216, 832)]
TRIGGER = "ohwx"


def make_pictures(folder: Path, count: int, *, control: bool) -> None:
    """Write `count` pictures with captions to `folder`, and the pictures they were made from to its `control`."""
    folder.mkdir(parents=True, exist_ok=True)
    for index in range(count):
        name = f"picture-{index:02}"
        _picture(index).save(folder / f"{name}.png", compress_level=1)
        caption = f"{TRIGGER}, a plain picture with number {index}, in a park under the trees"
        (folder / f"{name}.txt").write_text(caption)
        if control:
            (folder / "control").mkdir(exist_ok=True)
            _picture(index + 1000).resize(_size(index)).save(folder / "control" / f"{name}.png", compress_level=1)


def _size(index: int) -> tuple[int, int]:
    return SIZES[index % len(SIZES)]


def _picture(seed: int) -> Image.Image:
    width, height = _size(seed)
    random = numpy.random.default_rng(seed)
    colours = random.integers(0, 255, size=(height // 32, width // 32, 3), dtype=numpy.uint8)
    return Image.fromarray(colours).resize((width, height), Image.Resampling.BICUBIC)
