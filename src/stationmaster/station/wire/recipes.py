"""Recipes, and what is wrong with those that cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from pydantic import Field

from stationmaster.recipes.schema import Recipe
from stationmaster.station.recipes import Problem, RecipeList
from stationmaster.station.wire.document import Document, RequestDocument

LONGEST_RECIPE = 200_000
"""Characters; the longest of the built-in ones has 20,000."""


class ListedRecipeDocument(Document):
    """A recipe in a list."""

    recipe: str = Field(examples=["flux-lora@2"])
    """How requests name it: name@version."""
    title: str
    """What it trains."""
    definition: Recipe | None = None
    """The whole recipe, if it was asked for."""

    @classmethod
    def of(cls, recipe: Recipe, *, with_definition: bool = False) -> Self:
        return cls(recipe=recipe.reference, title=recipe.title, definition=recipe if with_definition else None)


class RecipeProblemDocument(Document):
    """One thing to change in one recipe file."""

    file: str
    """The recipe's file."""
    line: int | None
    """The line in that file; null: not known."""
    field: str
    """The field that is wrong, such as `steps.0.run`."""
    message: str
    """What is wrong."""
    fix: str | None
    """What to write instead; null: see the message."""
    is_warning: bool = False
    """The recipe can be used all the same."""

    @classmethod
    def of(cls, problem: Problem) -> Self:
        return cls(**{name: getattr(problem, name) for name in cls.model_fields})

    def value(self) -> Problem:
        return Problem(**{name: getattr(self, name) for name in type(self).model_fields})


class RecipeTextRequest(RequestDocument):
    """A recipe that is being written."""

    text: str = Field(max_length=LONGEST_RECIPE, examples=["name: portrait\nversion: 1\n"])
    """What is in recipe.yaml."""


class RecipeProblemsDocument(Document):
    """What is wrong with a recipe; nothing if it can be used. Files that it names are not looked for."""

    problems: tuple[RecipeProblemDocument, ...]
    """Everything that is wrong; empty: nothing."""

    @classmethod
    def of(cls, found: Sequence[Problem]) -> Self:
        return cls(problems=tuple(RecipeProblemDocument.of(each) for each in found))

    def value(self) -> tuple[Problem, ...]:
        return tuple(each.value() for each in self.problems)


class RecipeListDocument(Document):
    """The recipes that can be used, by name and version."""

    items: tuple[ListedRecipeDocument, ...]
    """The recipes."""
    next: str | None = Field(default=None, examples=[None])
    """Always null: all recipes are on one page."""
    problems: tuple[RecipeProblemDocument, ...] = ()
    """What is wrong with the recipes that cannot be used; for administrators."""

    @classmethod
    def of(cls, found: RecipeList, *, with_definitions: bool = False) -> Self:
        return cls(
            items=tuple(ListedRecipeDocument.of(each, with_definition=with_definitions) for each in found.recipes),
            problems=tuple(RecipeProblemDocument.of(each) for each in found.problems),
        )

    def value(self) -> RecipeList:
        recipes = tuple(each.definition for each in self.items if each.definition is not None)
        return RecipeList(recipes=recipes, problems=tuple(each.value() for each in self.problems))
