"""`stationmaster estimate`: the time, cost and GPU memory of a training, without a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, finite, options_of, print_json, print_sentences, station_of
from stationmaster.cli.recipe_options import given_parameters, parse_pairs
from stationmaster.cli.render import price_lines
from stationmaster.model import MachineWish
from stationmaster.station.job_file import price
from stationmaster.station.proposals import EstimateRequest


def estimate(
    context: typer.Context,
    recipe: Annotated[str, typer.Argument(metavar="RECIPE", help="Recipe, e.g. flux-lora@2.")],
    images: Annotated[int, typer.Option(min=0, max=100_000_000, help="Images in the dataset.")] = 20,
    steps: Annotated[int | None, typer.Option(help="Steps to train.")] = None,
    parameter: Annotated[
        list[str] | None,
        typer.Option("--parameter", "-p", metavar="NAME=VALUE", help="Parameter of the recipe; also --NAME VALUE."),
    ] = None,
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Provider of the machine.")] = None,
    max_price: Annotated[str | None, typer.Option(help="Maximum price per hour, in dollars.")] = None,
    gpu: Annotated[
        str | None, typer.Option(metavar="NAME", help="Estimate for this GPU instead of the best offer.")
    ] = None,
    vram: Annotated[
        float | None,
        typer.Option(metavar="GiB", min=1, max=10_000, callback=finite, help="Estimate for a GPU with this memory."),
    ] = None,
    gpus: Annotated[
        int | None, typer.Option(min=0, max=64, help="GPUs of the machine; by default as many as the recipe needs.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Estimate a training's time, cost and GPU memory; rents nothing.

    Based on the recipe, on earlier runs like it, and on what can be rented now. A warning tells you when the training
    will not fit the GPU, and what would help.

    Examples:

      stationmaster estimate tiny-lora@1 --images 12

      stationmaster estimate flux-lora@2 --steps 2000 --provider vastai --json

      stationmaster estimate flux-lora@2 --batch-size 4 --gpu "RTX 4090"
    """
    parameters: dict[str, object] = {**given_parameters(context), **parse_pairs(parameter or [])}
    if steps is not None:
        parameters["steps"] = steps
    with station_of(context, wake=False) as station:
        found = station.proposals.estimate(
            EstimateRequest(
                recipe=recipe,
                parameters=parameters,
                images=images,
                provider=provider,
                max_price=price("max_price", max_price),
                gpu=gpu,
                vram_gib=vram,
                machine=MachineWish(gpus=gpus),
            )
        )
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.proposals import EstimateDocument

        return print_json(EstimateDocument.of_estimate(found, recipe=recipe).model_dump(mode="json"))
    typer.echo(f"{recipe} on {found.provider}, {images} images")
    most = found.max_price_per_hour if found.is_offered else None
    print_sentences(price_lines(found.quote, most_per_hour=most))
    for note in found.notes:
        print_sentences([f"  note   {note}"])
    return None
