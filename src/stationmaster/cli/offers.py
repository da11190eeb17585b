"""`stationmaster offers`: what could be rented now, what a job would cost on it, and why the rest was left out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, finite, options_of, print_json, station_of

if TYPE_CHECKING:
    from stationmaster.model import Requirements
    from stationmaster.offers import Ranking


def offers(
    context: typer.Context,
    recipe: Annotated[str, typer.Option(help="The recipe whose needs count.")] = "tiny-lora@1",
    provider: Annotated[str | None, typer.Option("--provider", "--driver", help="Where to look.")] = None,
    account: Annotated[str | None, typer.Option(help="Which of the provider's accounts.")] = None,
    hours: Annotated[
        float, typer.Option(min=0.01, max=10_000, callback=finite, help="Hours the job takes on an RTX 4090.")
    ] = 1.0,
    max_price: Annotated[str | None, typer.Option(help="The most that an hour may cost, in dollars.")] = None,
    interruptible: Annotated[bool, typer.Option("--interruptible", help="Bids: cheaper, may be taken away.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="The best so many.")] = 15,
    as_json: JsonOption = False,
) -> None:
    """List what can be rented now, best first: preferred GPUs, preferred regions, then the cheapest for the whole job.

    Nothing is rented. Below it stands what was left out, by reason.

    Examples:

      stationmaster offers --recipe tiny-lora@1 --provider vastai

      stationmaster offers --hours 4 --max-price 0.60 --json
    """
    with station_of(context, wake=False) as station:
        found = station.provider(provider, account)
        want = _want(station.settings.recipes, recipe, hours=hours, max_price=max_price, interruptible=interruptible)
        ranking = asyncio.run(_ranking(found, want, hours=hours))
    if as_json or options_of(context).as_json:
        return print_json(_json(ranking))
    _show(ranking, limit=limit)
    return None


def _want(folders: Any, recipe: str, *, hours: float, max_price: str | None, interruptible: bool) -> Requirements:
    from stationmaster.model import Requirements
    from stationmaster.recipes.registry import find
    from stationmaster.station.job_file import price

    needs = find(recipe, folders=folders).recipe.needs
    return Requirements(
        gpus=needs.gpus,
        vram_gib=needs.vram_gib,
        disk_gib=needs.disk_gib,
        hours=hours,
        max_price_per_hour=price("max_price", max_price),
        interruptible=interruptible,
    )


async def _ranking(provider: Any, want: Requirements, *, hours: float) -> Ranking:
    """A provider without a market of its own has only its offers; each then takes the hours that were given."""
    from stationmaster.money import cost
    from stationmaster.offers import RankedOffer, Ranking

    if hasattr(provider, "ranking"):
        ranking: Ranking = await provider.ranking(want)
        return ranking
    chosen = [
        RankedOffer(offer=offer, hours=hours, job_cost=cost(offer.price_per_hour, hours * 3600))
        for offer in await provider.offers(want)
    ]
    return Ranking(chosen=tuple(chosen), left_out=())


def _json(ranking: Ranking) -> dict[str, Any]:
    return {
        "offers": [
            {
                "id": ranked.offer.id,
                "gpu": ranked.offer.gpu,
                "gpus": ranked.offer.gpus,
                "machine_id": ranked.offer.machine_id,
                "region": ranked.offer.region,
                "reliability": ranked.offer.reliability,
                "price_per_hour_usd": ranked.offer.price_per_hour / 1_000_000,
                "hours": ranked.hours,
                "job_cost_usd": ranked.job_cost / 1_000_000,
            }
            for ranked in ranking.chosen
        ],
        "left_out": [{"id": out.offer.id, "gpu": out.offer.gpu, "why": out.why} for out in ranking.left_out],
        "left_out_by_reason": [
            {
                "why": group.kind,
                "count": group.count,
                "from_price_per_hour_usd": group.cheapest.price_per_hour / 1_000_000,
            }
            for group in ranking.groups()
        ],
    }


def _show(ranking: Ranking, *, limit: int) -> None:
    from stationmaster.durations import format_duration
    from stationmaster.money import format_dollars

    if not ranking.chosen:
        typer.echo("nothing fits; raise --max-price, allow other GPUs (VASTAI_PREFERRED_GPUS), or look again later")
    else:
        typer.echo(f"{'ID':<12} {'GPU':<22} {'$/H':>8} {'TIME':>7} {'JOB':>8}  REGION")
    for ranked in ranking.chosen[:limit]:
        offer = ranked.offer
        gpu = f"{offer.gpus}x {offer.gpu}" if offer.gpus > 1 else (offer.gpu or "none")
        price, total = format_dollars(offer.price_per_hour, 3), format_dollars(ranked.job_cost)
        takes = format_duration(ranked.hours * 3600)
        typer.echo(f"{offer.id:<12} {gpu:<22} {price:>8} {takes:>7} {total:>8}  {offer.region or ''}")
    for group in ranking.groups():
        typer.echo(f"left out: {group.count} × {group.kind} (from {format_dollars(group.cheapest.price_per_hour)})")
