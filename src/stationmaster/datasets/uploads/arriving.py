"""Checks one file of a dataset as soon as it has arrived, with the words of the check of the whole dataset."""

from __future__ import annotations

import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from stationmaster.datasets.captions import CAPTION_SUFFIXES, check_text, read_caption
from stationmaster.datasets.file_names import check_names
from stationmaster.datasets.image_file import FORMAT_OF_SUFFIX, examine, quiet_pillow
from stationmaster.datasets.report import DatasetProblem, error
from stationmaster.datasets.rules import DatasetKind, DatasetRules
from stationmaster.datasets.text_rows import ROW_SUFFIXES, check_rows
from stationmaster.datasets.tree import TreeEntry, entry_of
from stationmaster.datasets.uploads.names import is_archive
from stationmaster.datasets.validate import unused

_ABOUT_ALL_ROWS = "too_few_rows"  # only the whole dataset can have this problem


def check_arrived(root: Path, path: str, rules: DatasetRules) -> tuple[DatasetProblem, ...]:
    """What is wrong with this file by itself; what needs the others is found when the whole dataset is checked."""
    entry = entry_of(root, path)
    return (*check_names([entry]), *_check_content(entry, rules))


def _check_content(entry: TreeEntry, rules: DatasetRules) -> Iterator[DatasetProblem]:
    is_text_set = rules.kind is DatasetKind.TEXT
    if is_archive(entry.path):
        yield from _check_archive(entry)
    elif entry.suffix in FORMAT_OF_SUFFIX and not is_text_set:
        with quiet_pillow():
            yield from examine(entry, rules).problems
    elif entry.suffix in CAPTION_SUFFIXES and not is_text_set:
        text = read_caption(entry)
        yield from [text] if isinstance(text, DatasetProblem) else check_text(entry.path, text, rules)
    elif entry.suffix in ROW_SUFFIXES and is_text_set:
        yield from (one for one in check_rows([entry], rules).problems if one.code != _ABOUT_ALL_ROWS)
    else:
        yield unused(entry)


def _check_archive(entry: TreeEntry) -> Iterator[DatasetProblem]:
    """Only whether it is one: its files are checked with the whole dataset, which unpacks it."""
    try:
        is_readable = zipfile.is_zipfile(entry.source) or tarfile.is_tarfile(entry.source)
    except (OSError, EOFError, ValueError):
        is_readable = False
    if not is_readable:
        text = "it is damaged, encrypted or of an unknown format"
        yield error("archive_unreadable", entry.path, text, "pack the dataset again, or upload its files")
