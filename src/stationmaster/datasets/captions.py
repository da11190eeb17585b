"""Captions: one text file beside each image, of the same name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from stationmaster.datasets.report import DatasetProblem, error, warning
from stationmaster.datasets.rules import CaptionRule, DatasetRules
from stationmaster.datasets.tree import TreeEntry, open_unchanged, shown
from stationmaster.errors import DatasetInvalid

CAPTION_SUFFIXES = frozenset({".txt", ".caption"})

_MAX_BYTES = 65_536
_PLACEHOLDER = "[trigger]"  # trainers replace it with the trigger


def check_captions(
    captions: Sequence[TreeEntry], images: Sequence[TreeEntry], rules: DatasetRules
) -> Iterator[DatasetProblem]:
    """Check every rule about captions."""
    if rules.captions is CaptionRule.NONE:
        for caption in captions:
            yield warning("caption_unused", caption.path, "the recipe does not use captions", "remove it, or leave it")
        return
    image_stems = {image.stem for image in images}
    image_paths = {image.path for image in images}
    for caption in captions:
        if caption.stem not in image_stems:
            yield _orphan(caption, image_paths)
    yield from _check_coverage(captions, images, rules)
    texts: dict[str, str] = {}
    for caption in captions:
        if caption.stem in image_stems:
            text = read_caption(caption)
            if isinstance(text, DatasetProblem):
                yield text
                continue
            texts[caption.path] = text
            yield from check_text(caption.path, text, rules)
    yield from _check_repetition(texts)
    yield from _check_trigger(texts, rules.trigger)


def read_caption(entry: TreeEntry) -> str | DatasetProblem:
    """The caption, stripped, or the problem that prevents reading it."""
    if entry.size > _MAX_BYTES:
        text = f"{entry.size:,} bytes: too large for a caption"
        return error("caption_too_large", entry.path, text, "shorten it to a sentence or two")
    try:
        with open_unchanged(entry) as file:
            text = file.read().decode("utf-8-sig")
    except DatasetInvalid as exc:
        return error("unreadable", entry.path, str(exc), exc.hint or "")
    except UnicodeDecodeError:
        return error("caption_not_utf8", entry.path, "the text is not UTF-8", "save it as UTF-8")
    if "\0" in text:
        return error("caption_not_utf8", entry.path, "this is not a text file", "save it as UTF-8 text")
    return text.strip()


def _orphan(caption: TreeEntry, image_paths: set[str]) -> DatasetProblem:
    fix = "add the image, or remove or rename this file"
    if caption.stem in image_paths:  # cat.png.txt beside cat.png
        fix = f"rename it to {shown(caption.stem.rpartition('.')[0])}{caption.suffix}"
    return error("caption_without_image", caption.path, "no image with the same name", fix)


def _check_coverage(
    captions: Sequence[TreeEntry], images: Sequence[TreeEntry], rules: DatasetRules
) -> Iterator[DatasetProblem]:
    captioned = {caption.stem for caption in captions}
    missing = [image for image in images if image.stem not in captioned]
    if missing and len(missing) == len(images) and rules.captions is CaptionRule.OPTIONAL:
        fix = "add a .txt with the same name next to each image, or train with the trigger only"
        yield warning("captions_missing", "", "no image has a caption", fix)
        return
    judge = error if rules.captions is CaptionRule.REQUIRED else warning
    for image in missing:
        yield judge("caption_missing", image.path, "no caption", f"write one to {shown(image.stem)}.txt")


def check_text(path: str, text: str, rules: DatasetRules) -> Iterator[DatasetProblem]:
    """Check one caption by itself."""
    if not text:
        judge = error if rules.captions is CaptionRule.REQUIRED else warning
        yield judge("caption_empty", path, "the caption is empty", "describe the image in one sentence")
    elif len(text) > rules.max_caption_characters:
        length = f"{len(text):,} characters; text after about {rules.max_caption_characters:,} is cut off"
        yield warning("caption_too_long", path, length, "shorten it; put the most important words first")


def _check_repetition(texts: Mapping[str, str]) -> Iterator[DatasetProblem]:
    by_text: dict[str, list[str]] = defaultdict(list)
    for path, text in texts.items():
        if text:
            by_text[" ".join(text.split()).casefold()].append(path)
    for paths in by_text.values():
        if len(paths) > 1:
            others = ", ".join(shown(path) for path in paths[1:4]) + (", …" if len(paths) > 4 else "")
            text = f"{len(paths)} images have the same caption; the others: {others}"
            yield warning("caption_duplicate", paths[0], text, "describe what differs in each image")


def _check_trigger(texts: Mapping[str, str], trigger: str | None) -> Iterator[DatasetProblem]:
    if not trigger or not texts:
        return
    whole_word = re.compile(rf"(?<!\w){re.escape(trigger)}(?!\w)", re.IGNORECASE)
    missing = [
        path for path, text in texts.items() if text and _PLACEHOLDER not in text and not whole_word.search(text)
    ]
    if len(missing) == len(texts):
        text = f"no caption contains the trigger {shown(trigger)}"
        yield warning("trigger_missing", "", text, "begin every caption with it, or prompts with it have no effect")
        return
    for path in missing:
        yield warning("trigger_missing", path, f"the trigger {shown(trigger)} is missing", "begin the caption with it")
