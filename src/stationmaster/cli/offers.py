"""`stationmaster offers`: what you can rent now, what a job costs on it, and why other offers were left out."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, finite, options_of, print_json, print_lines, station_of
from stationmaster.cli.offer_table import COLUMNS, offer_row
from stationmaster.cli.speaking import extra
from stationmaster.cli.table import print_table
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
    number of offers left out, by reason. TIME and TOTAL are of a job that takes --hours on an RTX 4090. To rent one of
    them, pass its id as `train --offer`. Rents nothing.

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
    rows = [
        offer_row(
            number,
            ranked.offer,
            hours=ranked.hours,
            total=ranked.job_cost,
            remark="recommended" if number == 1 else "",
        )
        for number, ranked in enumerate(shown, 1)
    ]
    print_table(COLUMNS, rows)
    for group in ranking.groups():
        extra(f"left out: {group.count} × {group.kind} (from {format_dollars(group.cheapest.price_per_hour)})")
    if ranking.invalid:
        extra(f"left out: {ranking.invalid} × without a valid price")


def _show_why_none(ranking: Ranking) -> None:
    typer.echo("no offer fits")
    if ranking.no_offer is not None:
        print_lines(f"left out: {reason}" for reason in ranking.no_offer.reasons)
        typer.echo(f"what helps: {ranking.no_offer.what_helps}")
