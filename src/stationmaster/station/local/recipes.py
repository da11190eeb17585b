"""The recipes that come with the program, and those in the folders that the settings name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stationmaster.recipes import registry, skeleton
from stationmaster.recipes.problems import Problem
from stationmaster.recipes.schema import Recipe
from stationmaster.station.local.installation import Installation
from stationmaster.station.recipes import RecipeList


class LocalRecipes:
    def __init__(self, installation: Installation) -> None:
        self._folders = installation.settings.recipes

    def listed(self, *, with_older: bool = False) -> RecipeList:
        found = registry.list_recipes(folders=self._folders)
        stored = found.recipes if with_older else registry.newest(found.recipes)
        return RecipeList(recipes=tuple(one.recipe for one in stored), problems=found.problems)

    def find(self, reference: str) -> Recipe:
        return registry.find(reference, folders=self._folders).recipe

    def lint(self, path: Path) -> Sequence[Problem]:
        return registry.lint(path)

    def lint_text(self, text: str) -> Sequence[Problem]:
        return registry.lint_text(text)

    def write_skeleton(self, folder: Path) -> Path:
        return skeleton.write_skeleton(folder)
