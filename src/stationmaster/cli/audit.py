"""`stationmaster audit`: who changed what through the HTTP service."""

from __future__ import annotations

from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, options_of, print_json, station_of
from stationmaster.printable import one_line
from stationmaster.station.wire.audit import AuditEntryDocument
from stationmaster.times import time_text


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
    for one in found:
        who, where = one_line(one.user or "unknown"), one_line(one.address or "")
        what = one_line(f"{one.action} {one.subject or ''}").rstrip()
        typer.echo(f"{time_text(one.at, now=now):<17} {one.status} {who:<15} {where:<15} {what}")
    if not found:
        typer.echo("no entries; `stationmaster serve` writes them")
    return None
