"""`stationmaster models`: the catalogue of trained models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from stationmaster.cli.context import (
    JsonOption,
    given_path,
    named,
    options_of,
    print_document,
    print_json,
    print_lines,
    station_of,
    with_hint,
)
from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.progress_bars import transfer_bar
from stationmaster.cli.table import Cell, Column, Row, print_table
from stationmaster.errors import DeliveryError
from stationmaster.model import TrainedModel

app = CommandGroup(help="List, show, publish and download trained models.")

_COLUMNS = (
    Column("MODEL"),
    Column("FAMILY", leaves=2),
    Column("SIZE", right=True, leaves=1),
    Column("WHERE", shrinks_to=10),
    Column("TRAINED", leaves=3),
)

ModelArgument = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="Slug of the model (or its beginning), its name, or its job.",
        callback=named("model", "models list"),
    ),
]


@app.command("list")
def list_models(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the models of the catalogue, newest first.

    Examples:

      stationmaster models list

      stationmaster models list --json
    """
    with station_of(context, wake=False) as station:
        found = station.models.listed()
    if as_json or options_of(context).as_json:
        return print_json([_json(model) for model in found])
    if found:
        print_table(_COLUMNS, map(_row, found))
    else:
        typer.echo("no models yet; the models of finished trainings appear here")
    return None


@app.command("show")
def show(context: typer.Context, model: ModelArgument, as_json: JsonOption = False) -> None:
    """Show one model: what it is, how it was made, where it is.

    Examples:

      stationmaster models show cats-0a1b2c

      stationmaster models show cats --json
    """
    with station_of(context, wake=False) as station:
        found = station.models.find(model)
    if as_json or options_of(context).as_json:
        return print_json(_json(found))
    print_lines(f"{name:<14} {value}" for name, value in _lines(found))
    return None


@app.command("publish")
def publish(context: typer.Context, model: ModelArgument, as_json: JsonOption = False) -> None:
    """Publish a local model to the Hub, with samples and card.

    Files that are already there are not uploaded again.

    Examples:

      HF_TOKEN=$MY_TOKEN stationmaster models publish cats-0a1b2c

      stationmaster models publish cats --json
    """
    retry = "check hub.url and the network, then publish it again; no file is uploaded twice"
    with station_of(context) as station, with_hint(retry, DeliveryError):
        published = station.models.publish(model)
    place = published.place("hub")
    if as_json or options_of(context).as_json:
        return print_json(_json(published))
    print_lines([f"published: {place.link if place else published.slug}"])
    return None


@app.command("download")
def download(
    context: typer.Context,
    model: ModelArgument,
    target: Annotated[Path, typer.Argument(parser=given_path, metavar="[DIR]", help="Target folder.")] = Path(),
    as_json: JsonOption = False,
) -> None:
    """Copy a model's weights to a folder.

    They come from the local files, the bucket or the Hub; the copy is verified.

    Examples:

      stationmaster models download cats-0a1b2c

      stationmaster models download cats ./loras
    """
    with (
        station_of(context, wake=False) as station,
        transfer_bar(f"downloading {model}", hidden=as_json) as progress,
        as_the_person(),
    ):
        copy = station.models.download(model, target, progress=progress)
    if as_json or options_of(context).as_json:
        from stationmaster.cli.answers import CopiedFile

        return print_document(CopiedFile(file=str(copy)))
    print_lines([str(copy)])
    return None


def _row(model: TrainedModel) -> Row:
    kinds = ", ".join(place.kind for place in model.places) or "nowhere"
    state = Cell("complete") if model.complete else Cell("incomplete", "yellow")
    return model.slug, model.family or "-", f"{model.size / 1e6:,.1f} MB", kinds, state


def _json(model: TrainedModel) -> dict[str, Any]:
    from stationmaster.station.wire.models import ModelDocument  # pydantic: only where JSON is asked for

    return ModelDocument.of(model).model_dump(mode="json")


def _lines(model: TrainedModel) -> Iterator[tuple[str, str]]:
    details = model.details
    steps = "/".join(str(details[name]) for name in ("steps", "target_steps") if details.get(name) is not None)
    known = {
        "model": model.slug,
        "name": model.name,
        "family": model.family,
        "trigger": model.trigger,
        "file": f"{model.file_name}, {model.size:,} bytes",
        "sha256": model.sha256,
        "trained": f"{'complete' if model.complete else 'incomplete'}, step {steps}" if steps else None,
        "recipe": model.recipe,
        "base model": model.base_model,
        "dataset": model.dataset_sha256,
        "job": model.job_id,
    }
    yield from ((name, str(value)) for name, value in known.items() if value is not None)
    for place in model.places:
        yield place.kind, place.address + (f"  {place.link}" if place.link else "")
    for preview in model.previews:
        yield "preview", f"{preview.path}  {preview.text}"
    for place_name, problem in (details.get("not_published") or {}).items():
        yield "not sent", f"{place_name}: {problem}"
    state, note = model.registration.state, model.registration.note
    if state != "NO":
        yield "registration", f"{state.lower()}{f': {note}' if note else ''}"
    elif note:
        yield "registration", note
