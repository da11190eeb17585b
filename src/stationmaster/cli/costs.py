"""`stationmaster costs`: what every machine cost, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, named, options_of, print_json, station_of
from stationmaster.cli.times import time_text
from stationmaster.money import format_dollars
from stationmaster.station.costs import PaidLine, Shares

EXPORTED = (
    "job", "rental", "kind", "rate_per_hour_micros", "started_at", "ended_at", "amount_micros", "training_micros",
    "stalled_micros", "idle_micros", "source",
)  # fmt: skip


def costs(
    context: typer.Context,
    job: Annotated[
        str | None, typer.Option("--job", help="Only the costs of this job.", callback=named("job", "jobs --all"))
    ] = None,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV; amounts are whole micro-dollars.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what machines cost, as estimated or as billed.

    Each line is split into training, stalled and idle time. A line whose source is the provider is final and never
    changes.

    Examples:

      stationmaster costs --job cats

      stationmaster costs --csv > costs.csv
    """
    with station_of(context, wake=False) as station:
        lines = station.costs.lines(station.jobs.find(job).id if job else None)
        now = station.now()
    if as_json or options_of(context).as_json:
        return print_json([_json(line) for line in lines])
    if as_csv:
        writer = csv.DictWriter(sys.stdout, EXPORTED, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_json(line) for line in lines)
        return None
    _show(lines, now=now)
    return None


def _json(paid: PaidLine) -> dict[str, Any]:
    from stationmaster.station.wire.costs import PaidLineDocument

    return PaidLineDocument.of(paid).model_dump(mode="json")


def _show(lines: Sequence[PaidLine], *, now: float) -> None:
    if not lines:
        typer.echo("no costs yet")
        return
    typer.echo(
        f"{'JOB':<12} {'KIND':<8} {'STARTED':<17} {'COST':>9} {'TRAINING':>9} {'STALLED':>9} {'IDLE':>9}  SOURCE"
    )
    for paid in lines:
        line, shares = paid.line, paid.shares
        started = time_text(line.started_at, now=now)
        open_now = " (still open)" if line.ended_at is None else ""
        typer.echo(f"{line.job_id:<12} {line.kind:<8} {started:<17} {_amounts(shares)}  {line.source}{open_now}")
    total = sum((paid.shares for paid in lines), Shares())
    typer.echo(f"{'total':<12} {'':<8} {'':<17} {_amounts(total)}")
    typer.echo(f"{format_dollars(total.total)} in total, {format_dollars(total.idle)} of it before and after trainings")


def _amounts(shares: Shares) -> str:
    parts = (shares.total, shares.training, shares.stalled, shares.idle)
    return " ".join(f"{format_dollars(part, 4):>9}" for part in parts)
