"""Checks the images of a dataset together: their number, duplicates, pairs with control images."""

from __future__ import annotations

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from stationmaster.datasets.image_file import FORMAT_OF_SUFFIX, ImageCheck, examine, quiet_pillow
from stationmaster.datasets.near_duplicates import near_duplicates
from stationmaster.datasets.report import DatasetProblem, error, warning
from stationmaster.datasets.rules import DatasetRules
from stationmaster.datasets.tree import TreeEntry, open_unchanged, shown

UNUSED_SUFFIXES = frozenset({".gif", ".bmp", ".tif", ".tiff", ".avif", ".heic", ".heif", ".jfif", ".jxl", ".psd"})

_MAX_THREADS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class ImageSet:
    """The training images, and the control images."""

    subjects: tuple[TreeEntry, ...]
    controls: tuple[TreeEntry, ...]


def find_images(files: Sequence[TreeEntry], rules: DatasetRules) -> ImageSet:
    images = [file for file in files if file.suffix in FORMAT_OF_SUFFIX]
    return ImageSet(
        subjects=tuple(image for image in images if not is_control(image, rules)),
        controls=tuple(image for image in images if is_control(image, rules)),
    )


def is_control(entry: TreeEntry, rules: DatasetRules) -> bool:
    return rules.control_folder is not None and entry.path.startswith(_control_prefix(rules.control_folder))


def check_images(images: ImageSet, rules: DatasetRules) -> Iterator[DatasetProblem]:
    """Check every rule about images."""
    seen = examine_all((*images.subjects, *images.controls), rules)
    for image in seen:
        yield from image.problems
    subjects = seen[: len(images.subjects)]
    yield from _check_count(len(images.subjects), rules)
    yield from _check_names(images.subjects, rules)
    yield from _check_duplicates(subjects)
    if rules.control_folder is not None:
        yield from _check_pairs(images, rules.control_folder)


def examine_all(images: Sequence[TreeEntry], rules: DatasetRules) -> list[ImageCheck]:
    """Examine the images in several threads; results in the same order."""
    with quiet_pillow(), ThreadPoolExecutor(min(_MAX_THREADS, os.cpu_count() or 1)) as threads:
        return list(threads.map(lambda entry: examine(entry, rules), images))


def _control_prefix(folder: str) -> str:
    return folder.strip("/") + "/"


def _check_count(count: int, rules: DatasetRules) -> Iterator[DatasetProblem]:
    if count < rules.min_images:
        text = (
            f"{count} image{'' if count == 1 else 's'} (png, jpg, webp); the recipe needs at least {rules.min_images}"
        )
        yield error("too_few_images", "", text, "add images; is this the right folder?")
    elif rules.recommended_images is not None and count < rules.recommended_images:
        text = f"{count} images; at least {rules.recommended_images} are recommended"
        yield warning("few_images", "", text, "add images if you have more")


def _check_names(subjects: Sequence[TreeEntry], rules: DatasetRules) -> Iterator[DatasetProblem]:
    by_stem: dict[str, list[TreeEntry]] = defaultdict(list)
    for image in subjects:
        by_stem[image.stem].append(image)
        if not rules.subfolders and image.folder:
            text = "the recipe ignores subfolders"
            yield warning("image_in_subfolder", image.path, text, "move it to the top folder of the dataset")
    for same in by_stem.values():
        for image in same[1:]:
            text = f"differs from {shown(same[0].path)} only in the suffix, so they share a caption"
            yield warning("image_same_stem", image.path, text, "rename one of them")


def _check_duplicates(subjects: Sequence[ImageCheck]) -> Iterator[DatasetProblem]:
    duplicates = dict(_exact_duplicates([image.entry for image in subjects if image.decoded]))
    for path, original in duplicates.items():
        text = f"identical to {shown(original)}"
        yield warning("image_duplicate", path, text, "remove one of them, or it is trained on twice")
    decoded = [(image.entry.path, image.decoded.signature) for image in subjects if image.decoded]
    for path, original in near_duplicates([pair for pair in decoded if pair[0] not in duplicates]):
        text = f"almost identical to {shown(original)}"
        yield warning("image_near_duplicate", path, text, "keep the better one")


def _exact_duplicates(images: Sequence[TreeEntry]) -> Iterator[tuple[str, str]]:
    by_size: dict[int, list[TreeEntry]] = defaultdict(list)
    for image in images:
        by_size[image.size].append(image)
    for same_size in by_size.values():
        if len(same_size) == 1:
            continue  # a unique size needs no hash
        first_with: dict[bytes, str] = {}
        for image in same_size:
            original = first_with.setdefault(_digest(image), image.path)
            if original != image.path:
                yield image.path, original


def _digest(entry: TreeEntry) -> bytes:
    with open_unchanged(entry) as file:
        return hashlib.file_digest(file, "sha256").digest()


def _check_pairs(images: ImageSet, control_folder: str) -> Iterator[DatasetProblem]:
    prefix = _control_prefix(control_folder)
    subjects = {image.stem for image in images.subjects}
    controls = {control.stem.removeprefix(prefix) for control in images.controls}
    for image in images.subjects:
        if image.stem not in controls:
            text = f"no control image with the same name in {shown(prefix)}"
            yield error("control_missing", image.path, text, f"add {shown(prefix + image.stem)}.png")
    for control in images.controls:
        if control.stem.removeprefix(prefix) not in subjects:
            text = "control image without a result image with the same name; it is not used"
            yield warning("control_unused", control.path, text, "add the result image, or remove this one")
