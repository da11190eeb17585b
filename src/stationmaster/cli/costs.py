"""`stationmaster costs`: what every machine cost, as a table, CSV or JSON."""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JsonOption, named, options_of, print_json, station_of
from stationmaster.cli.job_facts import dollars_text
from stationmaster.cli.speaking import extra, note
from stationmaster.cli.table import Column, Row, print_table
from stationmaster.errors import NotFound, UserError
from stationmaster.money import MicroDollars, format_dollars
from stationmaster.station.costs import (
    SECONDS_OF,
    USUAL_PARTS,
    CostsOverTime,
    PaidLine,
    Part,
    Shares,
    SplitBy,
    of_removed_job,
    period_until,
)
from stationmaster.times import time_text

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; this command needs few

EXPORTED = (
    "job", "rental", "kind", "rate_per_hour_micros", "started_at", "ended_at", "amount_micros", "training_micros",
    "stalled_micros", "idle_micros", "setup_micros", "source",
)  # fmt: skip

_BAR = 40
_COLUMNS = (
    Column("JOB"),
    Column("KIND"),
    Column("STARTED", leaves=3),
    Column("COST", right=True),
    Column("TRAINING", right=True, leaves=2),
    Column("STALLED", right=True, leaves=4),
    Column("IDLE", right=True, leaves=5),
    Column("SOURCE", leaves=1),
)


def costs(
    context: typer.Context,
    job: Annotated[
        str | None,
        typer.Option(
            "--job", help="Only the costs of this job; of a removed one by its id.", callback=named("job", "jobs --all")
        ),
    ] = None,
    over_time: Annotated[
        Part | None,
        typer.Option("--over-time", metavar="|".join(Part), help="Show what all machines cost in each hour or day."),
    ] = None,
    since: Annotated[
        datetime | None,
        typer.Option("--since", help="With --over-time: when the first hour or day begins (default: 48 h, 30 days)."),
    ] = None,
    budget: Annotated[bool, typer.Option("--budget", help="Show your limits, and how much of them is used.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV; amounts are whole micro-dollars.")] = False,
    as_json: JsonOption = False,
) -> None:
    """List what machines cost, as estimated or as billed.

    Each line is split into training, stalled and idle time. A line whose source is the provider is final and never
    changes. With --over-time, machines that still run count until now.

    Examples:

      stationmaster costs --job cats

      stationmaster costs --csv > costs.csv

      stationmaster costs --over-time day --since 2026-11-01

      stationmaster costs --over-time hour --json

      stationmaster costs --budget
    """
    if budget:
        return _budget(context, as_json=as_json, unusable=job is not None or as_csv or over_time is not None)
    if over_time is not None:
        return _over_time(context, over_time, since, as_json=as_json, unusable=job is not None or as_csv)
    if since is not None:
        raise UserError("--since has an effect only with --over-time", hint="add --over-time day")
    with station_of(context, wake=False) as station:
        lines = station.costs.lines() if job is None else _lines_of_job(station, job)
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


def _lines_of_job(station: Station, reference: str) -> Sequence[PaidLine]:
    """The lines of a job, also of one that was removed, by its whole id. Raises NotFound."""
    try:
        return station.costs.lines(station.jobs.find(reference).id)
    except NotFound:
        if not (left := of_removed_job(station.costs.lines(), reference)):
            raise
    note(f"job {reference} was removed; its costs stay")
    return left


def _budget(context: typer.Context, *, as_json: bool, unusable: bool) -> None:
    if unusable:
        raise UserError("--budget cannot be used with --job, --csv or --over-time", hint="leave them out")
    with station_of(context, wake=False) as station:
        found = station.costs.budget()
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.costs import BudgetDocument

        return print_json(BudgetDocument.of(found).model_dump(mode="json"))
    used = format_dollars(found.committed)
    limit = "no limit (limits.daily_spend)" if found.daily_limit is None else f"of {format_dollars(found.daily_limit)}"
    alert = "never" if found.hourly_alert is None else f"above {format_dollars(found.hourly_alert)} per hour in all"
    typer.echo(f"last 24 hours     {used} {limit}")
    typer.echo(f"operators told    {alert}")
    typer.echo(f"machines at once  {found.max_rentals} per account")
    return None


def _over_time(context: typer.Context, part: Part, since: datetime | None, *, as_json: bool, unusable: bool) -> None:
    if unusable:
        raise UserError("--over-time cannot be used with --job or --csv", hint="leave them out")
    with station_of(context, wake=False) as station:
        now = station.now()
        start = _beginning(now, part) if since is None else since.timestamp()
        found = station.costs.over_time(period_until(now, part, start=start), split_by=SplitBy.PROVIDER)
    if as_json or options_of(context).as_json:
        from stationmaster.station.wire.costs import CostsOverTimeDocument

        return print_json(CostsOverTimeDocument.of(found).model_dump(mode="json"))
    _show_over_time(found, part)
    return None


def _beginning(now: float, part: Part) -> float:
    """Where the usual number of hours or days begins, at a whole one of this computer's time zone."""
    today = datetime.fromtimestamp(now).replace(minute=0, second=0, microsecond=0)
    whole = today.replace(hour=0) if part is Part.DAY else today
    return whole.timestamp() - (USUAL_PARTS[part] - 1) * SECONDS_OF[part]


def _show_over_time(found: CostsOverTime, part: Part) -> None:
    if not found.total:
        typer.echo("no costs in this time")
        return
    most = max(found.amounts)
    typer.echo(f"{part.value.upper():<13} {'COST':>9}")
    spent = [place for place, amount in enumerate(found.amounts) if amount]
    for place in range(spent[0], spent[-1] + 1):
        began, amount = found.period.start + place * found.period.seconds, found.amounts[place]
        when = datetime.fromtimestamp(began).strftime("%d %b" if part is Part.DAY else "%d %b %H:%M")
        typer.echo(f"{when:<13} {format_dollars(amount, 4):>9}  {'#' * round(_BAR * amount / most)}".rstrip())
    typer.echo(f"{'total':<13} {format_dollars(found.total, 4):>9}")


def _json(paid: PaidLine) -> dict[str, Any]:
    from stationmaster.station.wire.costs import PaidLineDocument

    return PaidLineDocument.of(paid).model_dump(mode="json")


def _show(lines: Sequence[PaidLine], *, now: float) -> None:
    if not lines:
        typer.echo("no costs yet")
        return
    total = sum((paid.shares for paid in lines), Shares())
    rows = [_row(paid, now=now) for paid in lines]
    print_table(_COLUMNS, [*rows, ("total", "", "", *_amounts(total), "")])
    before, after = dollars_text(total.setup), dollars_text(MicroDollars(total.idle - total.setup))
    extra(f"{dollars_text(total.total)} in total, {before} of it before trainings and {after} after them")


def _row(paid: PaidLine, *, now: float) -> Row:
    line = paid.line
    source = f"{line.source} (still open)" if line.ended_at is None else line.source
    return line.job_id, line.kind, time_text(line.started_at, now=now), *_amounts(paid.shares), source


def _amounts(shares: Shares) -> tuple[str, ...]:
    parts = (shares.total, shares.training, shares.stalled, shares.idle)
    return tuple(format_dollars(part, 4) for part in parts)
