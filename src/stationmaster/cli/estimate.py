"""`stationmaster estimate`: what a training would take and cost, before there is even a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of
from stationmaster.cli.recipe_options import given_parameters


def estimate(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="As in flux-lora@2.")],
    images: Annotated[int, typer.Option(min=0, max=100_000_000, help="How many images the dataset has.")] = 20,
    steps: Annotated[int | None, typer.Option(help="How many steps to train.")] = None,
    parameter: Annotated[
        list[str] | None, typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="A recipe's parameter.")
    ] = None,
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Where it would run.")] = None,
    max_price: Annotated[str | None, typer.Option(help="The most that an hour may cost, in dollars.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate time and cost by the recipe, by earlier runs like it, and by what can be rented now; nothing is rented.

    Examples:

      stationmaster estimate tiny-lora@1 --images 12

      stationmaster estimate flux-lora@2 --steps 2000 --provider vastai --json
    """
    from stationmaster.cli.render import price_lines, quote_json
    from stationmaster.cli.train import money, pairs

    parameters: dict[str, object] = {**given_parameters(context), **pairs(parameter or [])}
    if steps is not None:
        parameters["steps"] = steps
    with station_of(context, wake=False) as station:
        quote, notes = station.quote(
            recipe, parameters, images=images, provider=provider, max_price=money("max_price", max_price)
        )
        where = station.provider(provider).name
    if as_json or options_of(context).as_json:
        return print_json({"recipe": recipe, "provider": where, **quote_json(quote), "notes": list(notes)})
    typer.echo(f"{recipe} on {where}, {images} images")
    for line in price_lines(quote):
        typer.echo(line)
    for note in notes:
        typer.echo(f"  note   {note}")
    return None
