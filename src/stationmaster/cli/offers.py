"""`stationmaster offers`: what you can rent now, what a job costs on it, and why other offers were left out."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, finite, options_of, print_json, print_lines, station_of
from stationmaster.durations import format_duration
from stationmaster.money import format_dollars
from stationmaster.station.job_file import price
from stationmaster.station.offers import OfferSearch, Ranking


def offers(
    context: typer.Context,
    recipe: Annotated[str, typer.Option(help="Recipe that the machine must be able to run.")] = "tiny-lora@1",
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Provider to search.")] = None,
    account: Annotated[str | None, typer.Option(help="Account at the provider, if there are several.")] = None,
    gpus: Annotated[
        int | None, typer.Option(min=0, max=64, help="GPUs of the machine; by default as many as the recipe needs.")
    ] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, max=10_000, callback=finite, help="Hours the job takes on an RTX 4090.")
    ] = 1.0,
    max_price: Annotated[str | None, typer.Option(help="Maximum price per hour, in dollars.")] = None,
    interruptible: Annotated[
        bool, typer.Option("--interruptible", help="Search interruptible offers: cheaper, but you can be outbid.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="Show at most this many offers.")] = 15,
    as_json: JsonOption = False,
) -> None:
    """List what you can rent now, best first.

    Preferred GPUs come first, then preferred regions, then the lowest cost for the whole job. The list ends with the
    number of offers left out, by reason. Rents nothing.

    Examples:

      stationmaster offers --recipe tiny-lora@1 --provider vastai

      stationmaster offers --hours 4 --max-price 0.60 --json
    """
    search = OfferSearch(
        recipe=recipe,
        provider=provider,
        account=account,
        gpus=gpus,
        hours=hours,
        max_price=price("max_price", max_price),
        interruptible=interruptible,
    )
    with station_of(context, wake=False) as station:
        ranking = station.offers.ranking(search)
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.offers import RankingDocument

        return print_json(RankingDocument.of(ranking).model_dump(mode="json"))
    _show(ranking, limit=limit)
    return None


def _show(ranking: Ranking, *, limit: int) -> None:
    if not ranking.chosen:
        _show_why_none(ranking)
        return
    shown = ranking.chosen[:limit]
    wide = max(12, *(len(ranked.offer.id) for ranked in shown))
    typer.echo(f"{'ID':<{wide}} {'GPU':<22} {'$/H':>8} {'TIME':>7} {'JOB':>8}  REGION")
    for ranked in shown:
        offer = ranked.offer
        gpu = f"{offer.gpus}x {offer.gpu}" if offer.gpus > 1 else (offer.gpu or "none")
        hourly, total = format_dollars(offer.price_per_hour, 3), format_dollars(ranked.job_cost)
        takes = format_duration(ranked.hours * 3600)
        where = ", ".join(filter(None, (offer.region, offer.note)))
        print_lines([f"{offer.id:<{wide}} {gpu:<22} {hourly:>8} {takes:>7} {total:>8}  {where}".rstrip()])
    for group in ranking.groups():
        typer.echo(f"left out: {group.count} × {group.kind} (from {format_dollars(group.cheapest.price_per_hour)})")
    if ranking.invalid:
        typer.echo(f"left out: {ranking.invalid} × without a valid price")


def _show_why_none(ranking: Ranking) -> None:
    typer.echo("no offer fits")
    if ranking.no_offer is not None:
        print_lines(f"left out: {reason}" for reason in ranking.no_offer.reasons)
        typer.echo(f"what helps: {ranking.no_offer.what_helps}")
