"""Recipes: what can be trained, and how."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from stationmaster.recipes.problems import Problem

if TYPE_CHECKING:
    from stationmaster.recipes.schema import Recipe  # takes long to load, and most faces never look at a recipe

__all__ = ["Problem", "RecipeList", "Recipes"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeList:
    """The recipes that can be used, by name and version, and what is wrong with the others."""

    recipes: tuple[Recipe, ...]
    problems: tuple[Problem, ...]


class Recipes(Protocol):
    def listed(self, *, with_older: bool = False) -> RecipeList:
        """Every recipe in its newest version, or in every version. A broken one is a problem and hides no other.

        Raises NotFound where a folder of recipes that the settings name is not there.
        """

    def find(self, reference: str) -> Recipe:
        """The recipe `name@version`, or the newest one of `name`.

        Raises NotFound with the nearest names as hint, RecipeInvalid if the recipe found is not valid.
        """

    def lint(self, path: Path) -> Sequence[Problem]:
        """Everything that is wrong with the recipe in a file, or in the folder that holds it; empty if it can be used.

        Raises NotFound where there is no recipe.
        """

    def write_skeleton(self, folder: Path) -> Path:
        """The file of a new, commented recipe that works as it is, in a folder of the recipe's name.

        Raises UserError if the folder is there already, cannot be written, or cannot be a recipe's name.
        """
