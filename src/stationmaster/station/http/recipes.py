"""The recipes of a server; files on this computer are checked and written here."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stationmaster.errors import NotFound
from stationmaster.recipes import registry, skeleton
from stationmaster.recipes.schema import Recipe
from stationmaster.station.http.connection import Connection, segment
from stationmaster.station.recipes import Problem, RecipeList
from stationmaster.station.wire.recipes import RecipeListDocument, RecipeProblemsDocument, RecipeTextRequest


class HttpRecipes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def listed(self, *, with_older: bool = False) -> RecipeList:
        found = self._connection.get("/api/recipes", RecipeListDocument, with_older=with_older, with_definitions=True)
        return found.value()

    def find(self, reference: str) -> Recipe:
        if not reference:  # would be the address of the list
            raise NotFound("the name of the recipe is empty", hint="write name@version, as in tiny-lora@1")
        return self._connection.get(f"/api/recipes/{segment(reference)}", Recipe)

    def lint(self, path: Path) -> Sequence[Problem]:
        return registry.lint(path)

    def lint_text(self, text: str) -> Sequence[Problem]:
        body = RecipeTextRequest.checked(text=text)
        return self._connection.post("/api/recipes/lint", RecipeProblemsDocument, body).value()

    def write_skeleton(self, folder: Path) -> Path:
        return skeleton.write_skeleton(folder)
