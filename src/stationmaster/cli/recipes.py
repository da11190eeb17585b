"""`stationmaster recipes`: what can be trained, and how."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.cli.context import (
    JsonOption,
    given_path,
    local_station_of,
    options_of,
    print_document,
    print_json,
    print_lines,
    station_of,
)
from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.table import Column, print_table
from stationmaster.errors import RecipeInvalid
from stationmaster.printable import one_line
from stationmaster.recipes.parameters import allowed
from stationmaster.recipes.schema import Recipe

app = CommandGroup(help="List, show, check and create recipes.")

RecipeArgument = Annotated[str, typer.Argument(metavar="RECIPE", help="Recipe, e.g. tiny-lora@1.")]


@app.command("list")
def list_recipes(
    context: typer.Context,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Also list older versions.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List the recipes, each in its newest version.

    Examples:

      stationmaster recipes list

      stationmaster recipes list --all --json
    """
    with station_of(context, wake=False) as station:
        found = station.recipes.listed(with_older=everything)
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.recipes import ListedRecipeDocument

        listed = (ListedRecipeDocument.of(recipe) for recipe in found.recipes)
        return print_json([each.model_dump(mode="json", exclude={"definition"}) for each in listed])
    columns = (Column("RECIPE"), Column("TITLE", shrinks_to=24))
    print_table(columns, ((recipe.reference, recipe.title) for recipe in found.recipes))
    for problem in found.problems:
        typer.echo(f"broken: {one_line(str(problem))}", err=True)
    return None


@app.command("show")
def show_recipe(context: typer.Context, recipe: RecipeArgument, as_json: JsonOption = False) -> None:
    """Show a recipe's requirements and parameters.

    Examples:

      stationmaster recipes show tiny-lora@1

      stationmaster recipes show tiny-lora --json
    """
    with station_of(context, wake=False) as station:
        found = station.recipes.find(recipe)
    if as_json or options_of(context).as_json:
        return print_json(found.model_dump(mode="json", by_alias=True))
    typer.echo(f"{found.reference}: {found.title}\n\n{found.description}\n")
    needs = found.needs
    cuda = f", CUDA {needs.cuda:g} or newer" if needs.cuda else ""
    typer.echo(f"needs {needs.gpus} GPU with {needs.vram_gib:g} GiB of memory, {needs.disk_gib:g} GiB of disk{cuda}")
    print_lines(_other_needs(found))
    typer.echo()
    for name, parameter in found.parameters.items():
        typer.echo(f"  {name:<18} {parameter.help} ({allowed(parameter)}; default {parameter.default})")
    return None


def _other_needs(recipe: Recipe) -> Iterator[str]:
    if recipe.container is not None:
        yield f"runs in {recipe.runtime} containers of {recipe.container.image}"
    if recipe.secrets:
        yield f"receives the secrets {', '.join(recipe.secrets)}"
    for gated in recipe.gated:
        yield f"needs access to a gated model ({gated.repository}) with {gated.secret}"


@app.command("lint")
def lint_recipe(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(parser=given_path, help="A recipe.yaml, or its folder.")],
    as_json: JsonOption = False,
) -> None:
    """Check a recipe; print each problem with file, line and fix.

    Warns of images without a digest and of repositories that are fetched without a commit.

    Examples:

      stationmaster recipes lint ./my-recipes/portrait

      stationmaster recipes lint recipe.yaml --json
    """
    with local_station_of(context, wake=False) as station:
        problems = station.recipes.lint(path)
    as_json = as_json or options_of(context).as_json
    if as_json:
        from stationmaster.station.wire.recipes import RecipeProblemDocument

        print_json([RecipeProblemDocument.of(found).model_dump(mode="json") for found in problems])
    else:
        for found in problems:
            print_lines([f"{found}; {found.fix}" if found.fix else str(found)])
    errors = [found for found in problems if not found.is_warning]
    if errors:
        count = "1 problem" if len(errors) == 1 else f"{len(errors)} problems"
        raise RecipeInvalid(f"{path} is not valid: {count}", hint=errors[0].fix)
    if not as_json:
        typer.echo(f"{path} is valid")


@app.command("new")
def new_recipe(
    context: typer.Context,
    folder: Annotated[
        Path, typer.Argument(parser=given_path, help="Folder to create; its name becomes the recipe's name.")
    ],
    as_json: JsonOption = False,
) -> None:
    """Write a commented recipe that works, to edit into your own.

    Examples:

      stationmaster recipes new ./recipes/portrait

      stationmaster recipes new ~/recipes/my-tool --json
    """
    with local_station_of(context, wake=False) as station, as_the_person():
        written = station.recipes.write_skeleton(folder)
    if as_json or options_of(context).as_json:
        from stationmaster.cli.answers import WrittenRecipe

        return print_document(WrittenRecipe(recipe=str(written)))
    typer.echo(f"wrote {written}")
    typer.echo(f"next: edit it, then run `stationmaster recipes lint {shlex.quote(str(folder))}`")
    return None
