"""Names of files that may be uploaded: they become paths below the upload's folder."""

from __future__ import annotations

import os
import unicodedata

from stationmaster.datasets.captions import CAPTION_SUFFIXES
from stationmaster.datasets.image_file import FORMAT_OF_SUFFIX
from stationmaster.datasets.images import UNUSED_SUFFIXES
from stationmaster.datasets.text_rows import ROW_SUFFIXES
from stationmaster.datasets.tree import is_hidden, shown
from stationmaster.errors import DatasetInvalid

ARCHIVE_SUFFIXES = (".tar", ".zip", ".tar.gz", ".tgz", ".tar.bz2", ".tar.xz")
_OTHER_SUFFIXES = frozenset({".json", ".toml", ".yaml", ".yml", ".csv", ".md"})
_SUFFIXES = frozenset({*FORMAT_OF_SUFFIX, *UNUSED_SUFFIXES, *CAPTION_SUFFIXES, *ROW_SUFFIXES, *_OTHER_SUFFIXES})
_MOST_PARTS = 16
_MOST_BYTES = 1000
_MOST_PART_BYTES = 200  # trainers add suffixes for their caches


def is_archive(name: str) -> bool:
    return name.lower().endswith(ARCHIVE_SUFFIXES)


def require_valid_name(path: str) -> None:
    """Raises DatasetInvalid unless the file can be stored below the upload's folder and be part of a dataset."""
    if reason := _refusal(path):
        readable = path[:_MOST_BYTES].encode("utf-8", "replace").decode()
        raise DatasetInvalid(
            f"{shown(readable) or 'a file without a name'} cannot be uploaded: {reason}",
            hint="use a relative path such as cats/01.png, with the suffix of an image, a text or an archive",
        )


def _refusal(path: str) -> str | None:
    parts = path.split("/")
    if any(unicodedata.category(letter) in ("Cc", "Cs") for letter in path) or "\\" in path:
        return "its name contains a control character or a backslash"
    if len(parts) > _MOST_PARTS or len(path.encode()) > _MOST_BYTES:
        return "its path is too long"
    if any(part in ("", ".", "..") for part in parts):
        return "its path leads out of the dataset, or has an empty part"
    if any(len(part.encode()) > _MOST_PART_BYTES for part in parts):
        return "its name is too long"
    if any(is_hidden(part) for part in parts):
        return "it is hidden, or a file manager's own"
    if os.path.splitext(path)[1].lower() not in _SUFFIXES and not is_archive(path):  # noqa: PTH122 - an untrusted name
        return "no training reads files with this suffix"
    return None
