"""Recipes as texts: their names, titles and parameters without checking them, for who cannot wait for the schema.

Completion asks for them at each press of a key. A recipe that is not valid is left out or offered; using it says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stationmaster.documents import Unreadable, read_document
from stationmaster.recipes.places import BUILTIN, FILE_NAMES

_VERSION = re.compile(r'^\s*"?version"?:\s*([1-9][0-9]{0,8})\b', re.MULTILINE)
_TITLE = re.compile(r"""^\s*"?title"?:\s*["']?(.{1,100}?)["']?,?\s*$""", re.MULTILINE)
_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeText:
    reference: str
    title: str
    file: Path


def recipe_texts(folders: Sequence[Path] = ()) -> list[RecipeText]:
    """All recipes by name and version; of the same one in several folders the first."""
    found: dict[str, RecipeText] = {}
    for registry in (*folders, BUILTIN):
        for recipe in _recipes_in(registry):
            found.setdefault(recipe.reference, recipe)
    return sorted(found.values(), key=lambda recipe: recipe.reference)


def find_recipe_text(reference: str, folders: Sequence[Path] = ()) -> RecipeText | None:
    """The recipe of this name and version, or the newest one of this name."""
    fitting = [
        recipe
        for recipe in recipe_texts(folders)
        if reference in (recipe.reference, recipe.reference.partition("@")[0])
    ]
    return max(fitting, key=lambda recipe: int(recipe.reference.partition("@")[2]), default=None)


def parameters_in(recipe: RecipeText) -> Mapping[str, Mapping[str, Any]]:
    """Name and declaration of each parameter, as far as they can be read."""
    try:
        text = recipe.file.read_text(encoding="utf-8")
        data = read_document(text, is_json=recipe.file.suffix == ".json").data
    except (OSError, ValueError, Unreadable):
        return {}
    declared = data.get("parameters") if isinstance(data, dict) else None
    if not isinstance(declared, dict):
        return {}
    return {str(name): about for name, about in declared.items() if isinstance(about, dict)}


def _recipes_in(registry: Path) -> Iterator[RecipeText]:
    try:
        folders = sorted(registry.iterdir())
    except OSError:  # a folder of the settings that does not exist
        return
    for folder in folders:
        for file in (folder / name for name in FILE_NAMES):
            try:
                text = file.read_text(encoding="utf-8")[:_LONGEST]
            except (OSError, UnicodeDecodeError):
                continue
            if (version := _VERSION.search(text)) is not None:
                title = _TITLE.search(text)
                name = folder.name.partition("@")[0]
                yield RecipeText(reference=f"{name}@{version[1]}", title=title[1] if title else "", file=file)
            break
