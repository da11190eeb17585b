"""What a training expects of its dataset."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stationmaster.recipes.schema import Dataset


class DatasetKind(StrEnum):
    IMAGES = "images"  # pictures, mostly with a caption file each
    TEXT = "text"  # JSON lines: texts, prompts or chats


class CaptionRule(StrEnum):
    REQUIRED = "required"  # an image without caption is an error
    OPTIONAL = "optional"  # an image without caption is a warning
    NONE = "none"  # captions are not used


class RowFormat(StrEnum):
    TEXT = "text"  # {"text": "..."}
    PROMPT = "prompt"  # {"prompt": "...", "completion": "..."} or {"instruction": ..., "input": ..., "output": ...}
    CHAT = "chat"  # {"messages": [{"role": "user", "content": "..."}, ...]}


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetRules:
    """A recipe's rules for the data; the defaults suit most image trainings."""

    kind: DatasetKind = DatasetKind.IMAGES

    min_images: int = 10
    recommended_images: int | None = None
    """Fewer is a warning."""
    captions: CaptionRule = CaptionRule.OPTIONAL
    max_caption_characters: int = 1500
    trigger: str | None = None
    """The word that calls the trained subject; captions should hold it."""
    min_side: int = 256
    """Pixels of the shorter side; below is an error."""
    recommended_side: int | None = None
    """Pixels of the shorter side; below is a warning."""
    max_aspect: float = 3.0
    """Longer side over shorter side; above is a warning."""
    control_folder: str | None = None
    """Sub-folder with a control image of the same name for every image."""
    subfolders: bool = True
    """Whether the trainer looks into sub-folders."""

    text_format: RowFormat | None = None
    """None: any format, but one for the whole set."""
    min_rows: int = 10
    max_row_characters: int = 100_000

    max_pixels: int = 64_000_000
    """An image above is refused unread: it would need gigabytes of memory."""
    max_image_bytes: int = 256_000_000


def rules_of(dataset: Dataset, *, trigger: str | None = None) -> DatasetRules:
    """What a recipe declares about its dataset, as the rules that a check follows."""
    return DatasetRules(
        kind=DatasetKind(dataset.kind),
        min_images=dataset.min_images,
        recommended_images=dataset.recommended_images,
        captions=CaptionRule(dataset.captions),
        trigger=trigger,
        min_side=dataset.min_side,
        recommended_side=dataset.recommended_side,
        control_folder=dataset.control_folder,
        subfolders=dataset.subfolders,
        text_format=None if dataset.text_format is None else RowFormat(dataset.text_format),
        min_rows=dataset.min_rows,
    )
