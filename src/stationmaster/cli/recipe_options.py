"""A recipe's parameters as options of the commands that take a recipe: `train --recipe tiny-lora@1 --rank 16`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from stationmaster.cli.context import Options, station_of
from stationmaster.cli.help_pages import PageCommand
from stationmaster.documents import Unreadable, read_document
from stationmaster.errors import StationmasterError, UserError
from stationmaster.recipes.parameters import allowed
from stationmaster.recipes.schema import BoolParameter, Recipe

_OPTIONS = "stationmaster.recipe_options"
_VALUES = "stationmaster.recipe_parameters"


class RecipeCommand(PageCommand):
    """A command that also has the parameters of the recipe in its arguments as options, and in its help."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {word for parameter in super().get_params(ctx) for word in parameter.opts}
        recipe, problem = _recipe_of(args, ctx)
        ctx.meta[_VALUES] = {}
        ctx.meta[_OPTIONS] = [] if recipe is None else [one for one in _options(recipe) if own.isdisjoint(one.opts)]
        try:
            return super().parse_args(ctx, args)
        except typer.Exit:
            raise
        except Exception:
            if problem is not None:  # the option is unknown because the recipe is
                raise problem from None
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        return [*super().get_params(ctx), *ctx.meta.get(_OPTIONS, ())]


def given_parameters(context: Any) -> dict[str, str]:
    """The recipe's parameters that were given as options, as typed."""
    return dict(context.meta.get(_VALUES, {}))


def parse_pairs(words: list[str]) -> dict[str, str]:
    """Parse texts of the form NAME=VALUE. Raises UserError.

    >>> parse_pairs(["rank=16", "prompt=a=b"])
    {'rank': '16', 'prompt': 'a=b'}
    """
    found = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UserError(f"{word!r} is not NAME=VALUE", hint="for example: -p rank=16")
        found[name] = value
    return found


def _recipe_of(words: list[str], context: Any) -> tuple[Recipe | None, StationmasterError | None]:
    """The recipe in the arguments, or the error of the one that they name."""
    if context.find_object(Options) is None:
        return None, None
    problem = None
    for reference, is_named in _references(words):
        try:
            with station_of(context, wake=False) as station:
                return station.recipes.find(reference), None
        except StationmasterError as wrong:
            problem = wrong if is_named else problem
    return None, problem


def _references(words: list[str]) -> Iterator[tuple[str, bool]]:
    """The words that may name the recipe, the likeliest first, and whether each certainly does.

    >>> list(_references(["--name", "x", "--recipe=tiny-lora@1"]))
    [('tiny-lora@1', True), ('x', False)]
    """
    for word, following in zip(words, [*words[1:], ""], strict=False):
        option, _, value = word.partition("=")
        if option in ("--recipe", "--tool"):
            yield value or following, True
    plain = [word for word in words if not word.startswith("-")]
    for reference in _recipes_in_job_files(word for word in plain if word.endswith((".yaml", ".yml"))):
        yield reference, True
    for word in plain:
        yield word, False


def _recipes_in_job_files(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        try:
            data = read_document(Path(name).read_text(encoding="utf-8"), is_json=False).data
        except (OSError, ValueError, Unreadable):
            continue
        if isinstance(data, dict) and (reference := data.get("recipe") or data.get("tool")):
            yield str(reference)


def _options(recipe: Recipe) -> list[Any]:
    """The options, built by Typer from a function that takes them all: this works alike in all of its versions."""
    app = typer.Typer(add_completion=False)
    app.command()(_function_taking(recipe))
    made: list[Any] = typer.main.get_command(app).params
    return made


def _function_taking(recipe: Recipe) -> Callable[..., None]:
    def take(**_values: Any) -> None:
        raise AssertionError("only the signature is used")

    signature = []
    for name, parameter in recipe.parameters.items():
        option = name.replace("_", "-")
        is_switch = isinstance(parameter, BoolParameter)
        declared = typer.Option(
            f"--{option}/--no-{option}" if is_switch else f"--{option}",
            help=f"{parameter.help} ({allowed(parameter)}; default {parameter.default})",
            metavar=None if is_switch else "VALUE",
            expose_value=False,
            callback=_recorder(name),
        )
        annotation = Annotated[bool | None, declared] if is_switch else Annotated[str | None, declared]
        signature.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation))
    take.__annotations__ = {one.name: one.annotation for one in signature}
    take.__signature__ = inspect.Signature(signature)  # type: ignore[attr-defined]
    return take


def _recorder(name: str) -> Callable[[typer.Context, Any], Any]:
    def keep(context: typer.Context, value: Any) -> Any:
        if value is not None:
            context.meta[_VALUES][name] = str(value).lower() if isinstance(value, bool) else value
        return value

    return keep
