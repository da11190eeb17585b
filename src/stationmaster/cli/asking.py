"""Asking before money is spent."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from stationmaster.model import Quote
    from stationmaster.station.base import Station


def confirm_price(quote: Quote, *, yes: bool) -> None:
    """Go on only if the person wants to; what costs nothing needs no question."""
    from stationmaster.errors import UserError

    if yes or not quote.cost_high:
        return
    if not sys.stdin.isatty():
        raise UserError("this costs money and nobody can be asked", hint="add --yes")
    if not typer.confirm("Go ahead?"):
        raise typer.Exit(0)


def is_submitted(station: Station, job_id: str | None) -> bool:
    """Whether this very id was submitted before: then there is nothing to check, to quote or to ask."""
    from stationmaster.errors import NotFound

    try:
        return job_id is not None and station.jobs.find(job_id).id == job_id
    except NotFound:
        return False
