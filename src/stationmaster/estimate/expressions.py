"""The numbers that a recipe's models of time and memory give for a job's parameters."""

from __future__ import annotations

from stationmaster.errors import RecipeInvalid
from stationmaster.recipes.schema import Recipe
from stationmaster.recipes.templating import TemplateFault, Values, evaluate


def number_of(recipe: Recipe, model: str, expression: str | float, values: Values) -> float:
    """The value of an expression in a model (`time`, `memory`). Raises RecipeInvalid unless it is a number from 0."""
    number = number_or_none(recipe, model, expression, values)
    if number is None:
        raise RecipeInvalid(f"{recipe.reference}: {model}: `{expression}` is None, not a number of at least 0")
    return number


def number_or_none(recipe: Recipe, model: str, expression: str | float, values: Values) -> float | None:
    """The same where an expression may be `none`: the recipe does not know the number."""
    try:
        value = evaluate(expression, values) if isinstance(expression, str) else expression
    except TemplateFault as fault:
        raise RecipeInvalid(f"{recipe.reference}: {model}: {fault}") from None
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise RecipeInvalid(f"{recipe.reference}: {model}: `{expression}` is {value!r}, not a number of at least 0")
    return value
