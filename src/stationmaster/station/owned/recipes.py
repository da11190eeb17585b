"""Recipes, as users see them: all that can be used, and nothing of the server's files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from stationmaster.errors import Forbidden, RecipeInvalid
from stationmaster.station.recipes import Problem, RecipeList, Recipes

if TYPE_CHECKING:
    from stationmaster.recipes.schema import Recipe


class OwnedRecipes:
    def __init__(self, recipes: Recipes) -> None:
        self._all = recipes

    def listed(self, *, with_older: bool = False) -> RecipeList:
        return RecipeList(recipes=self._all.listed(with_older=with_older).recipes, problems=())

    def find(self, reference: str) -> Recipe:
        with no_recipe_files():
            return self._all.find(reference)

    def lint(self, path: Path) -> Sequence[Problem]:
        _on_the_server()

    def lint_text(self, text: str) -> Sequence[Problem]:
        return self._all.lint_text(text)

    def write_skeleton(self, folder: Path) -> Path:
        _on_the_server()


@contextmanager
def no_recipe_files() -> Iterator[None]:
    """The error of a recipe that is not valid names a file of the server: users are not told which."""
    try:
        yield
    except RecipeInvalid:
        raise RecipeInvalid("the recipe is not valid", hint="ask the operator to correct it") from None


def _on_the_server() -> NoReturn:
    raise Forbidden("only administrators may see and change files of the server")
