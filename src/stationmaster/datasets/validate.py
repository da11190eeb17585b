"""Checks a dataset against every rule and returns one report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from stationmaster.datasets.captions import CAPTION_SUFFIXES, check_captions
from stationmaster.datasets.file_names import check_names
from stationmaster.datasets.images import UNUSED_SUFFIXES, check_images, find_images, is_control
from stationmaster.datasets.report import DatasetProblem, DatasetReport, Severity, warning
from stationmaster.datasets.rules import DatasetKind, DatasetRules
from stationmaster.datasets.text_rows import ROW_SUFFIXES, check_rows
from stationmaster.datasets.tree import TreeEntry, TreeEntryKind, files_of, scan

_DEFAULT_RULES = DatasetRules()


def check(folder: Path, rules: DatasetRules = _DEFAULT_RULES) -> DatasetReport:
    """Check the dataset in `folder`; changes nothing. Raises NotFound if there is no such folder."""
    entries = scan(folder)
    files = files_of(entries)
    problems = [*_check_tree(entries), *check_names(files)]
    if rules.kind is DatasetKind.TEXT:
        return _check_text_set(files, problems, rules)
    return _check_image_set(files, problems, rules)


def _check_image_set(files: Sequence[TreeEntry], problems: list[DatasetProblem], rules: DatasetRules) -> DatasetReport:
    images = find_images(files, rules)
    captions = [file for file in files if file.suffix in CAPTION_SUFFIXES and not is_control(file, rules)]
    problems += check_images(images, rules)
    problems += check_captions(captions, images.subjects, rules)
    used = {*images.subjects, *images.controls, *captions}
    problems += [unused(file) for file in files if file not in used]
    return _report(files, problems, images=len(images.subjects), captions=len(captions))


def _check_text_set(files: Sequence[TreeEntry], problems: list[DatasetProblem], rules: DatasetRules) -> DatasetReport:
    rows_in = [file for file in files if file.suffix in ROW_SUFFIXES]
    found = check_rows(rows_in, rules)
    problems += found.problems
    problems += [unused(file) for file in files if file.suffix not in ROW_SUFFIXES]
    return _report(files, problems, rows=found.rows)


def _check_tree(entries: Sequence[TreeEntry]) -> Iterator[DatasetProblem]:
    for entry in entries:
        if entry.kind is not TreeEntryKind.FILE:
            severity, code, message, fix = _TREE_PROBLEMS[entry.kind]
            yield DatasetProblem(severity=severity, code=code, path=entry.path, message=message, fix=fix)


_TREE_PROBLEMS: dict[TreeEntryKind, tuple[Severity, str, str, str]] = {
    TreeEntryKind.HIDDEN: (
        Severity.WARNING, "hidden_file", "hidden file; it is not packed", "remove it if you do not need it",
    ),
    TreeEntryKind.LINK_OUT: (
        Severity.ERROR, "link_out_of_folder", "a link out of the dataset", "replace it with a copy of the file",
    ),
    TreeEntryKind.LINK_BROKEN: (
        Severity.ERROR, "link_broken", "a broken link", "remove it, or replace it with the file",
    ),
    TreeEntryKind.LINK_TO_FOLDER: (
        Severity.ERROR, "link_to_folder", "a link to a folder", "replace it with the folder, or remove it",
    ),
    TreeEntryKind.SPECIAL: (Severity.ERROR, "not_a_file", "neither a file nor a folder", "remove it"),
    TreeEntryKind.UNREADABLE: (Severity.ERROR, "unreadable", "no permission to read it", "fix its permissions"),
}  # fmt: skip


def unused(file: TreeEntry) -> DatasetProblem:
    """The warning about a file that no rule is about."""
    if file.suffix in UNUSED_SUFFIXES:
        text = f"trainers do not read {file.suffix} images"
        return warning("image_format", file.path, text, "export it as PNG or JPEG (--fix converts GIF, BMP and TIFF)")
    return warning("file_unused", file.path, "the recipe does not use this file", "remove it, or leave it")


def _report(
    files: Sequence[TreeEntry], problems: Sequence[DatasetProblem], *, images: int = 0, captions: int = 0, rows: int = 0
) -> DatasetReport:
    ordered = sorted(problems, key=lambda problem: (problem.severity is Severity.WARNING, problem.path, problem.code))
    total = sum(file.size for file in files)
    return DatasetReport(
        problems=tuple(ordered), files=len(files), bytes=total, images=images, captions=captions, rows=rows
    )
