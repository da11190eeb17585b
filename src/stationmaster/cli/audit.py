"""`stationmaster audit`: who changed what through the HTTP service."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of
from stationmaster.cli.table import Column, print_table
from stationmaster.station.wire.audit import AuditEntryDocument
from stationmaster.times import time_text

_COLUMNS = (
    Column("TIME"),
    Column("STATUS"),
    Column("USER"),
    Column("ADDRESS", leaves=1),
    Column("ACTION", shrinks_to=16),
)


def audit(
    context: typer.Context,
    user: Annotated[str | None, typer.Option(help="Only what this user did.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, max=1_000_000, help="Show at most this many entries.")] = 50,
    as_json: JsonOption = False,
) -> None:
    """List who changed what through the HTTP service, newest first.

    Refused requests are listed as well. Commands without --server are not.

    Examples:

      stationmaster audit

      stationmaster audit --user ann --limit 500 --json
    """
    with station_of(context, wake=False) as station:
        found, now = station.audit.entries(limit=limit, user=user), station.now()
    if as_json or options_of(context).as_json:
        return print_json([AuditEntryDocument.of(one).model_dump(mode="json") for one in found])
    if found:
        rows = (
            (
                time_text(one.at, now=now),
                str(one.status),
                one.user or "unknown",
                one.address or "",
                f"{one.action} {one.subject or ''}".rstrip(),
            )
            for one in found
        )
        print_table(_COLUMNS, rows)
    else:
        typer.echo("no entries; `stationmaster serve` writes them")
    return None
