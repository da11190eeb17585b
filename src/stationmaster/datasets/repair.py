"""Writes a repaired copy of a dataset: only safe changes, and never in the source."""

from __future__ import annotations

import codecs
import os
import secrets
import shutil
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from PIL import Image, ImageOps

from stationmaster.datasets.captions import CAPTION_SUFFIXES
from stationmaster.datasets.file_names import safe_path
from stationmaster.datasets.image_file import BROKEN, FORMAT_OF_SUFFIX, ImageCheck, examine, max_pixels, quiet_pillow
from stationmaster.datasets.images import UNUSED_SUFFIXES
from stationmaster.datasets.report import DatasetReport
from stationmaster.datasets.rules import DatasetKind, DatasetRules
from stationmaster.datasets.tree import TreeEntry, TreeEntryKind, files_of, open_unchanged, scan, shown
from stationmaster.datasets.validate import check
from stationmaster.errors import UserError

_CONVERTIBLE = ("PNG", "JPEG", "WEBP", "GIF", "BMP", "TIFF")
_SUFFIX_OF_FORMAT = {"PNG": ".png", "JPEG": ".jpg", "WEBP": ".webp"}
_REPAIRABLE = frozenset({"image_animated", "image_exif_rotated", "image_transparent", "image_mode"})


def fix(folder: Path, target: Path, rules: DatasetRules) -> DatasetReport:
    """Write a repaired copy of `folder` to the new folder `target` and check it; the source is not changed.

    Images are rotated upright, converted to RGB and get the right suffix, names are made safe, hidden files and
    links out of the folder are skipped. What needs a decision (too small, missing, duplicate) stays and is reported.
    """
    entries = scan(folder)
    _require_new(folder, target)
    target.parent.mkdir(parents=True, exist_ok=True)
    partial = target.parent / f".{secrets.token_hex(8)}.partial"
    partial.mkdir()
    try:
        with quiet_pillow():
            repairs = tuple(_copy(entries, partial, rules))
        report = check(partial, rules)
        partial.rename(target)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return replace(report, repairs=repairs)


def _require_new(folder: Path, target: Path) -> None:
    if target.exists() and not (target.is_dir() and not any(target.iterdir())):
        raise UserError(f"{shown(str(target))} already exists", hint="choose a new folder for the repaired copy")
    source, copy = folder.resolve(), target.resolve()
    if copy.is_relative_to(source) or source.is_relative_to(copy):
        raise UserError("the repaired copy would be inside the dataset", hint="choose a folder next to it")


def _copy(entries: Sequence[TreeEntry], target: Path, rules: DatasetRules) -> Iterator[str]:
    files = files_of(entries)
    stems = _new_stems(files)
    for entry in entries:
        if entry.kind is TreeEntryKind.FILE:
            yield from _copy_file(entry, target, stems[entry.stem], rules)
        else:
            yield f"skipped {shown(entry.path)} ({entry.kind.value.replace('_', ' ')})"


def _new_stems(files: Sequence[TreeEntry]) -> dict[str, str]:
    """A safe stem for each old one, so that a caption keeps matching its image; safe names are kept."""
    old = list(dict.fromkeys(file.stem for file in files))
    wanted = {file.stem: os.path.splitext(safe_path(file.path))[0] for file in files}  # noqa: PTH122
    new = {stem: stem for stem in old if wanted[stem] == stem}
    taken = set(new)
    for stem in old:
        if stem not in new:
            new[stem] = _free(wanted[stem], taken)
            taken.add(new[stem])
    return new


def _free(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 2
    while name in taken:
        name, number = f"{wanted}_{number}", number + 1
    return name


def _copy_file(entry: TreeEntry, target: Path, stem: str, rules: DatasetRules) -> Iterator[str]:
    suffix = os.path.splitext(safe_path(entry.name))[1]  # noqa: PTH122
    if rules.kind is DatasetKind.IMAGES and entry.suffix in {*FORMAT_OF_SUFFIX, *UNUSED_SUFFIXES}:
        picture, suffix = _repaired_picture(entry, suffix, rules)
    else:
        picture = None
    path = _free_path(target, stem, suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    if picture is not None:
        _save(picture, path)
        yield f"converted {shown(entry.path)}"
    elif rules.kind is DatasetKind.IMAGES and entry.suffix in CAPTION_SUFFIXES:
        yield from _copy_caption(entry, path)
    else:
        _copy_bytes(entry, path)
    if (name := path.relative_to(target).as_posix()) != entry.path:
        yield f"renamed {shown(entry.path)} to {shown(name)}"


def _free_path(target: Path, stem: str, suffix: str) -> Path:
    path, number = target / f"{stem}{suffix}", 2
    while path.exists():  # a.gif became a.png, and a.png is there
        path, number = target / f"{stem}_{number}{suffix}", number + 1
    return path


def _repaired_picture(entry: TreeEntry, suffix: str, rules: DatasetRules) -> tuple[Image.Image | None, str]:
    """The image to write instead of the file, if any, and the suffix for its format."""
    if entry.suffix in UNUSED_SUFFIXES:
        picture = _upright(entry, rules)
        return picture, ".png" if picture else suffix
    seen = examine(entry, rules)
    if _needs_conversion(seen):
        kind = seen.header.format if seen.header else ""
        picture = _upright(entry, rules)
        return picture, (".jpg" if kind == "JPEG" else ".png") if picture else suffix
    if seen.header is not None and seen.decoded is not None and FORMAT_OF_SUFFIX[entry.suffix] != seen.header.format:
        return None, _SUFFIX_OF_FORMAT[seen.header.format]
    return None, suffix


def _needs_conversion(seen: ImageCheck) -> bool:
    codes = {problem.code for problem in seen.problems}
    return "image_format" in codes or (seen.decoded is not None and bool(codes & _REPAIRABLE))


def _upright(entry: TreeEntry, rules: DatasetRules) -> Image.Image | None:
    """The first frame of the file, upright, in RGB, without metadata; None if it cannot be decoded safely."""
    try:
        with open_unchanged(entry) as file:
            return _read_upright(file, rules)
    except BROKEN:
        return None


def _read_upright(file: BinaryIO, rules: DatasetRules) -> Image.Image | None:
    with Image.open(file, formats=_CONVERTIBLE) as image:
        if image.width * image.height > max_pixels(rules):
            return None
        profile = image.info.get("icc_profile") if image.mode in ("RGB", "RGBA") else None
        picture = _in_rgb(ImageOps.exif_transpose(image))
    picture.info = {"icc_profile": profile} if profile else {}
    return picture


def _in_rgb(image: Image.Image) -> Image.Image:
    if image.mode.startswith("I;16"):  # 16-bit grey: keep the upper eight bits
        image = image.convert("I").point(lambda value: value / 256).convert("L")
    if image.has_transparency_data:
        layer = image.convert("RGBA")
        image = Image.alpha_composite(Image.new("RGBA", layer.size, "white"), layer)
    return image.convert("RGB")


def _save(picture: Image.Image, path: Path) -> None:
    profile = picture.info.get("icc_profile")
    if path.suffix == ".jpg":
        picture.save(path, format="JPEG", quality=95, subsampling=0, icc_profile=profile)
    else:
        picture.save(path, format="PNG", icc_profile=profile)


def _copy_caption(entry: TreeEntry, path: Path) -> Iterator[str]:
    with open_unchanged(entry) as file:
        start = file.read(3)
    encoding = _marked_encoding(start)
    if encoding is None:
        _copy_bytes(entry, path)
        return
    with open_unchanged(entry) as file:
        data = file.read()
    try:
        path.write_text(unicodedata.normalize("NFC", data.decode(encoding)), encoding="utf-8", newline="")
    except UnicodeDecodeError:
        path.write_bytes(data)
        return
    yield f"rewrote {shown(entry.path)} as plain UTF-8"


def _marked_encoding(start: bytes) -> str | None:
    """The encoding by the byte order mark; None without a mark, because guessing is unsafe."""
    if start.startswith(codecs.BOM_UTF8):
        return "utf-8-sig"
    return "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else None


def _copy_bytes(entry: TreeEntry, path: Path) -> None:
    with open_unchanged(entry) as source, path.open("xb") as copy:
        shutil.copyfileobj(source, copy, 1 << 20)
