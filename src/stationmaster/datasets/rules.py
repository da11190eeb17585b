"""The rules that a dataset is checked against."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stationmaster.recipes.schema import Dataset


class DatasetKind(StrEnum):
    IMAGES = "images"  # images, usually each with a caption file
    TEXT = "text"  # JSON lines: texts, prompts or chats


class CaptionRule(StrEnum):
    REQUIRED = "required"  # an image without a caption is an error
    OPTIONAL = "optional"  # an image without a caption is a warning
    NONE = "none"  # captions are not used


class RowFormat(StrEnum):
    TEXT = "text"  # {"text": "..."}
    PROMPT = "prompt"  # {"prompt": "...", "completion": "..."} or {"instruction": ..., "input": ..., "output": ...}
    CHAT = "chat"  # {"messages": [{"role": "user", "content": "..."}, ...]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRules:
    """A recipe's rules for its dataset; the defaults suit most image trainings."""

    kind: DatasetKind = DatasetKind.IMAGES

    min_images: int = 10
    recommended_images: int | None = None
    """Fewer is a warning."""
    captions: CaptionRule = CaptionRule.OPTIONAL
    max_caption_characters: int = 1500
    trigger: str | None = None
    """The word for the trained subject in prompts; captions should contain it."""
    min_side: int = 256
    """Minimum pixels of the shorter side; less is an error."""
    recommended_side: int | None = None
    """Recommended pixels of the shorter side; less is a warning."""
    max_aspect: float = 3.0
    """Maximum ratio of the longer to the shorter side; more is a warning."""
    control_folder: str | None = None
    """Subfolder with a control image with the same name for every image."""
    subfolders: bool = True
    """Whether the trainer reads subfolders."""

    text_format: RowFormat | None = None
    """None: any format, but the same in the whole dataset."""
    min_rows: int = 10
    max_row_characters: int = 100_000

    max_pixels: int = 64_000_000
    """A larger image is rejected without decoding: it would need gigabytes of memory."""
    max_image_bytes: int = 256_000_000


def rules_of(dataset: Dataset, *, trigger: str | None = None, resolution: int | None = None) -> DatasetRules:
    """The rules from a recipe's declaration of its dataset.

    `resolution` is what pictures are trained at: where a side is recommended at all, that is the one that matters.
    """
    has_both = resolution is not None and dataset.recommended_side is not None
    return DatasetRules(
        kind=DatasetKind(dataset.kind),
        min_images=dataset.min_images,
        recommended_images=dataset.recommended_images,
        captions=CaptionRule(dataset.captions),
        trigger=trigger,
        min_side=dataset.min_side,
        recommended_side=resolution if has_both else dataset.recommended_side,
        control_folder=dataset.control_folder,
        subfolders=dataset.subfolders,
        text_format=None if dataset.text_format is None else RowFormat(dataset.text_format),
        min_rows=dataset.min_rows,
    )
