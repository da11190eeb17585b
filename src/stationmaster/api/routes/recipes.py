"""Recipes: what can be trained, and how."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from stationmaster.api.problems import problems
from stationmaster.api.visit import Reading
from stationmaster.recipes.schema import Recipe
from stationmaster.station.wire.recipes import RecipeListDocument, RecipeProblemsDocument, RecipeTextRequest

routes = APIRouter(prefix="/api", tags=["recipes"], responses=problems(400, 401, 403, 404, 422))


@routes.get("/recipes", operation_id="list_recipes", summary="The recipes, each in its newest version")
def list_recipes(
    visit: Reading,
    with_older: Annotated[bool, Query(description="Also older versions.")] = False,
    with_definitions: Annotated[bool, Query(description="Also the whole recipes.")] = False,
) -> RecipeListDocument:
    found = visit.station.recipes.listed(with_older=with_older)
    return RecipeListDocument.of(found, with_definitions=with_definitions)


@routes.post(
    "/recipes/lint",
    operation_id="lint_recipe",
    summary="Check a recipe that is being written",
    description="Nothing is stored. Files that it names, and the name of its folder, are not checked.",
)
def lint_recipe(visit: Reading, body: RecipeTextRequest) -> RecipeProblemsDocument:
    return RecipeProblemsDocument.of(visit.station.recipes.lint_text(body.text))


# The name may have any character, a slash too: whatever it is, the answer says that there is no such recipe.
@routes.get("/recipes/{recipe:path}", operation_id="get_recipe", summary="A recipe", response_model_by_alias=True)
def get_recipe(
    visit: Reading,
    recipe: Annotated[
        str,
        Path(
            max_length=200, description="As `name@version`, or `name` for its newest version.", examples=["tiny-lora"]
        ),
    ],
) -> Recipe:
    return visit.station.recipes.find(recipe)
