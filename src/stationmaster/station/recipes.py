"""Recipes: what can be trained, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stationmaster.recipes.problems import Problem

if TYPE_CHECKING:
    from stationmaster.recipes.schema import Recipe  # slow to import, and most commands need no recipe

__all__ = ["Problem", "RecipeList", "Recipes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeList:
    """The valid recipes, by name and version, and the problems of the others."""

    recipes: tuple[Recipe, ...]
    problems: tuple[Problem, ...]


class Recipes(Protocol):
    def listed(self, *, with_older: bool = False) -> RecipeList:
        """Every recipe in its newest version, or in every version. An invalid one is a problem and hides no other.

        Raises NotFound if a folder of recipes in the settings does not exist.
        """

    def find(self, reference: str) -> Recipe:
        """The recipe `name@version`, or the newest one of `name`.

        Raises NotFound with the nearest names as hint, RecipeInvalid if the recipe found is not valid.
        """

    def lint(self, path: Path) -> Sequence[Problem]:
        """All problems of the recipe in a file or folder; empty if it is valid.

        Raises NotFound if there is no recipe.
        """

    def lint_text(self, text: str) -> Sequence[Problem]:
        """All problems of the recipe in a text, without what is wrong with files beside it; empty if it is valid."""

    def write_skeleton(self, folder: Path) -> Path:
        """Write a new, commented recipe that works, in a folder with the recipe's name, and return its file.

        Raises UserError if the folder exists, cannot be written, or has a name that no recipe can have.
        """
