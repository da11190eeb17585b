"""The pictures of an upload, each with the caption beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stationmaster.datasets.captions import CAPTION_SUFFIXES, read_caption
from stationmaster.datasets.image_file import FORMAT_OF_SUFFIX
from stationmaster.datasets.tree import TreeEntry, entry_of, files_of, scan
from stationmaster.datasets.uploads.names import require_valid_name
from stationmaster.errors import NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptionedPicture:
    entry: TreeEntry
    caption: str | None  # None: there is none, or it is no text


def pictures_in(folder: Path, *, after: str | None = None, limit: int) -> list[CaptionedPicture]:
    """The pictures behind the path `after`, by path. Only the captions of these are read."""
    files = files_of(scan(folder))
    captions = {file.stem: file for file in files if file.suffix in CAPTION_SUFFIXES}
    pictures = [file for file in files if is_picture(file) and (after is None or file.path > after)]
    return [
        CaptionedPicture(entry=file, caption=_text(captions.get(file.stem)))
        for file in sorted(pictures, key=lambda file: file.path)[:limit]
    ]


def picture_at(folder: Path, path: str) -> TreeEntry:
    """Raises NotFound, DatasetInvalid for a name that cannot be."""
    require_valid_name(path)
    try:
        found = entry_of(folder, path)
    except OSError:
        raise _no_picture(path) from None
    if not is_picture(found):
        raise _no_picture(path)
    return found


def is_picture(entry: TreeEntry) -> bool:
    return entry.suffix in FORMAT_OF_SUFFIX


def _text(caption: TreeEntry | None) -> str | None:
    found = None if caption is None else read_caption(caption)
    return found if isinstance(found, str) else None


def _no_picture(path: str) -> NotFound:
    return NotFound(f"the upload has no picture {path[:200]!r}", hint="list its pictures")
