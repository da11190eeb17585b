"""The dataset: pictures of a folder, each with the caption in the text file of the same name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from adapter import CAPTION_VALUES, PATCH, PATCH_VALUES, Adapter, caption_values
from PIL import Image, ImageOps

_SUFFIXES = {".png", ".jpg", ".jpeg", ".webp"}
_SAMPLE_SIDE = 192


@dataclasses.dataclass(frozen=True)
class Dataset:
    """Pictures cut into patches, one row of patches per picture, and their captions as numbers."""

    patches: np.ndarray  # pictures x patches x patch values
    captions: np.ndarray  # pictures x caption values
    resolution: int

    def __len__(self) -> int:
        return len(self.patches)

    def batch(self, size: int, seed: int, step: int) -> tuple[np.ndarray, np.ndarray]:
        """The pictures of one step, chosen by seed and step alone, so that a resumed run sees the same ones."""
        count = min(size, len(self))
        chosen = np.random.default_rng([seed, step]).choice(len(self), count, replace=False)
        return self._rows(chosen)

    def loss(self, adapter: Adapter) -> float:
        """The adapter's mean loss over every picture."""
        return float(np.mean([adapter.loss(*self._rows([index])) for index in range(len(self))]))

    def side_by_side(self, adapter: Adapter, index: int) -> Image.Image:
        """A picture as it is, and beside it as the model shows it."""
        patches, captions = self._rows([index])
        both = [_picture(rows, self.resolution) for rows in (patches, adapter.reconstruct(patches, captions))]
        scale = max(1, _SAMPLE_SIDE // self.resolution)
        image = Image.fromarray(np.concatenate(both, axis=1))
        return image.resize((image.width * scale, image.height * scale), Image.Resampling.NEAREST)

    def _rows(self, chosen: Any) -> tuple[np.ndarray, np.ndarray]:
        patches, captions = self.patches[chosen], self.captions[chosen]
        repeated = np.repeat(captions, patches.shape[1], axis=0)
        return patches.reshape(-1, PATCH_VALUES), repeated


def find_images(folder: Path) -> list[Path]:
    """Every picture in the folder and below it, in a fixed order; raises FileNotFoundError if there is none."""
    found = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _SUFFIXES and not _is_hidden(path))
    if not found:
        raise FileNotFoundError(f"no pictures (png, jpg, webp) in {folder}")
    return found


def load_dataset(images: list[Path], *, resolution: int, trigger: str, seen: Callable[[], None]) -> Dataset:
    """All pictures at one size, with their captions; `seen` is called after each."""
    side = max(PATCH, resolution // PATCH * PATCH)
    patches = np.empty((len(images), (side // PATCH) ** 2, PATCH_VALUES), dtype=np.float32)
    captions = np.zeros((len(images), CAPTION_VALUES), dtype=np.float32)
    for index, path in enumerate(images):
        patches[index] = _patches(_pixels(path, side))
        captions[index] = caption_values(read_caption(path, trigger))
        seen()
    return Dataset(patches=patches, captions=captions, resolution=side)


def read_caption(image: Path, trigger: str) -> str:
    """The picture's caption, with the trigger in place of [trigger] or before a caption that lacks it."""
    file = image.with_suffix(".txt")
    text = file.read_text(encoding="utf-8", errors="replace").strip() if file.is_file() else ""
    text = text.replace("[trigger]", trigger)
    return text if trigger in text else trigger + " " + text


def _is_hidden(path: Path) -> bool:
    return path.name.startswith(".")


def _pixels(path: Path, side: int) -> np.ndarray:
    with Image.open(path) as image:
        upright = ImageOps.exif_transpose(image).convert("RGB")
        fitted = ImageOps.fit(upright, (side, side), Image.Resampling.BICUBIC)
    return np.asarray(fitted, dtype=np.float32) / np.float32(127.5) - np.float32(1.0)


def _patches(pixels: np.ndarray) -> np.ndarray:
    across = len(pixels) // PATCH
    blocks = pixels.reshape(across, PATCH, across, PATCH, 3).transpose(0, 2, 1, 3, 4)
    return blocks.reshape(across * across, PATCH_VALUES)


def _picture(patches: np.ndarray, side: int) -> np.ndarray:
    across = side // PATCH
    blocks = patches.reshape(across, across, PATCH, PATCH, 3).transpose(0, 2, 1, 3, 4)
    pixels = (blocks.reshape(side, side, 3) + 1.0) * 127.5
    return np.clip(np.nan_to_num(pixels), 0, 255).round().astype(np.uint8)
