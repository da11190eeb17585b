"""Finds what a recipe runs without naming its exact version, so that others can change it between two jobs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from stationmaster.recipes.schema import Recipe

_COMMIT = re.compile(r"(?<![0-9a-f])[0-9a-f]{40}(?![0-9a-f])")
_DIGEST = "@sha256:"
_FETCHES = re.compile(r"\bgit\b[^\n]{0,120}?\b(?:clone|fetch|pull)\b")  # also as a list of words, in Python
_NO_COMMIT = "fetches a repository without naming a commit: it runs whatever is there that day"
_FETCH = "run `git init`, `git fetch --depth 1 URL COMMIT` and `git checkout COMMIT` with all 40 digits of a commit"

Finding = tuple[tuple[str | int, ...], str, str]
"""Where in the recipe, what is not pinned, and how to pin it."""


def unpinned(recipe: Recipe, files: Mapping[str, str]) -> Iterator[Finding]:
    """Images without a digest, unless the recipe says why, and repositories without a commit; `files` are its own."""
    if recipe.unpinned_image is None:
        yield from _images(recipe)
    for name in ("bootstrap", "steps", "cleanup"):
        for number, step in enumerate(getattr(recipe, name)):
            text = step.shell if step.shell is not None else " ".join(map(str, step.argv))
            if _is_moving(text, recipe):
                yield (name, number), _NO_COMMIT, _FETCH
    for number, file in enumerate(recipe.files):
        if _is_moving(files.get(file, ""), recipe):
            yield ("files", number), f"{file} {_NO_COMMIT}", _FETCH


def _images(recipe: Recipe) -> Iterator[Finding]:
    places = {("image",): recipe.image, ("container", "image"): recipe.container and recipe.container.image}
    for place, image in places.items():
        if image and _DIGEST not in image:
            fix = f"write {_name_of(image)}{_DIGEST}…, or say why not in `unpinned_image`"
            yield place, "the image has no digest: whoever publishes it can replace it", fix


def _name_of(image: str) -> str:
    """
    >>> _name_of("registry:5000/owner/trainer:latest"), _name_of("registry:5000/trainer")
    ('registry:5000/owner/trainer', 'registry:5000/trainer')
    """
    folder, separator, name = image.rpartition("/")
    return folder + separator + name.partition(":")[0]


def _is_moving(text: str, recipe: Recipe) -> bool:
    """Whether a script fetches a repository, and names no commit. A person may choose one: then its default counts."""
    if not _FETCHES.search(text) or _COMMIT.search(text):
        return False
    chosen = (name for name, each in recipe.parameters.items() if _COMMIT.fullmatch(str(each.default)))
    return not any(f"parameters.{name}" in text for name in chosen)
