"""Checks file names that may fail on other disks, in scripts without quoting, or in archives."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from stationmaster.datasets.report import DatasetProblem, error, warning
from stationmaster.datasets.tree import TreeEntry, shown

_SHELL_CHARACTERS = frozenset("'\"`$&;|<>()[]{}*?!\\#~%^=")
_MAX_NAME_BYTES = 200  # file systems allow 255, but trainers add suffixes for their caches


def check_names(files: Sequence[TreeEntry]) -> Iterator[DatasetProblem]:
    """Check for names that are lost, mixed up or dangerous on other systems."""
    for file in files:
        if problem := _judge(file.path):
            yield problem
    yield from _check_twins(files)


def safe_path(path: str) -> str:
    """`path` without anything that `check_names` reports; unchanged if it reports nothing.

    >>> safe_path("my $(rm) set/it's.png"), safe_path("-rf/caf\\u0065\\u0301.txt"), safe_path("plain/a.png")
    ('my __rm_ set/it_s.png', '_rf/café.txt', 'plain/a.png')
    """
    return "/".join(_safe_part(part) for part in path.split("/"))


def _judge(path: str) -> DatasetProblem | None:
    if any(0xDC80 <= ord(character) <= 0xDCFF for character in path):
        return error("name_not_utf8", path, "the name is not UTF-8", "rename it (--fix does it)")
    if any(unicodedata.category(character) == "Cc" for character in path):
        text = "the name contains a line break or another control character"
        return error("name_control_character", path, text, "rename it (--fix does it)")
    if unicodedata.normalize("NFC", path) != path:
        text = "the name has decomposed accents, as macOS writes them; other programs may not find it"
        return warning("name_not_normalised", path, text, "rename it (--fix does it)")
    if any(not _is_safe_part(part) for part in path.split("/")):
        text = "the name contains characters that break scripts without quoting"
        return warning("name_unsafe", path, text, "rename it (--fix does it)")
    if any(len(part.encode()) > _MAX_NAME_BYTES for part in path.split("/")):
        text = "the name is too long: a trainer's cache files add a suffix to it"
        return warning("name_too_long", path, text, "shorten it (--fix does it)")
    return None


def _check_twins(files: Sequence[TreeEntry]) -> Iterator[DatasetProblem]:
    normalised: dict[str, str] = {}
    folded: dict[str, str] = {}
    for file in files:
        same = unicodedata.normalize("NFC", file.path)
        twin = normalised.setdefault(same, file.path)
        alike = folded.setdefault(same.casefold(), file.path)
        if twin != file.path:
            text = f"looks the same as {shown(twin)}, but has other bytes"
            yield error("name_twin", file.path, text, "rename or remove one of them")
        elif alike != file.path:
            text = f"differs from {shown(alike)} only in upper and lower case; on some disks one overwrites the other"
            yield warning("name_case_twin", file.path, text, "rename one of them")


def _is_safe_part(part: str) -> bool:
    return _safe_characters(part) == part


def _safe_part(part: str) -> str:
    stem, dot, suffix = _safe_characters(unicodedata.normalize("NFC", part)).rpartition(".")
    room = _MAX_NAME_BYTES - len((dot + suffix).encode()) if stem else _MAX_NAME_BYTES
    if room < 1 or not stem:
        return _cut(stem + dot + suffix, _MAX_NAME_BYTES)
    return _cut(stem, room) + dot + suffix


def _safe_characters(part: str) -> str:
    kept = "".join("_" if _is_unsafe(character) else character for character in part)
    return "_" + kept[1:] if kept[0] in "- " else kept


def _is_unsafe(character: str) -> bool:
    return character in _SHELL_CHARACTERS or unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp")


def _cut(text: str, room: int) -> str:
    return text.encode()[:room].decode("utf-8", "ignore")
