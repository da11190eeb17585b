"""`stationmaster monitor`: machines rented at Vast.ai, including those that Stationmaster did not rent."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from typing import Annotated

import typer

from stationmaster.cli.context import JsonOption, Options, local_station_of, options_of
from stationmaster.cli.monitor_output import show
from stationmaster.station.monitoring import MonitorFeed, MonitorLook, Watched

_log = logging.getLogger("stationmaster.monitor")
_COMPLETE_SECONDS = 10.0  # the longest that a machine's log may take


def monitor(
    context: typer.Context,
    instances: Annotated[
        str | None, typer.Option(metavar="ID,ID", help="Only these machines.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All running machines of the account.")] = False,
    interval: Annotated[float, typer.Option(min=1, help="Seconds between updates.")] = 10.0,
    log_path: Annotated[
        str | None,
        typer.Option(metavar="GLOB", help="Log files on the machines. Default: /workspace/output/*/training.log."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Print the state once, then exit.")] = False,
    mock: Annotated[bool, typer.Option("--mock", help="Show made-up machines; needs no account.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch rented machines: progress, health, cost and logs.

    Runs until Ctrl-C unless you pass --once. What it shows is stored, except with --mock: see
    `stationmaster metrics vastai/INSTANCE`.

    Examples:

      stationmaster monitor --instances 30007012,30007267

      stationmaster monitor --mock --once --json
    """
    options = options_of(context)
    _log_to_stderr(options)
    watched = Watched(ids=_ids(instances), only_running=everything, log_path=log_path, made_up=mock)
    with (
        local_station_of(context, wake=False) as station,
        closing(station.monitoring.feed(watched, every_seconds=interval)) as feed,
    ):
        for look in _looks(feed, every_seconds=interval):
            for warning in look.warnings:
                _log.warning(warning)
            show(look.snapshot, as_json=as_json or options.as_json, repeated=not once)
            if once:
                raise typer.Exit(1 if look.snapshot.stale else 0)


def _looks(feed: MonitorFeed, *, every_seconds: float) -> Iterator[MonitorLook]:
    """One look per interval: the first complete one, or at its end the newest."""
    while True:
        began, newest = time.monotonic(), None
        limit = max(every_seconds, _COMPLETE_SECONDS)
        while newest is None or not newest.complete:
            left = began + limit - time.monotonic()
            if left <= 0 and newest is not None:
                break
            look = feed.next(seconds=max(0.1, left))
            if look is not None:
                newest = (
                    look
                    if newest is None
                    else replace(
                        look, warnings=(*newest.warnings, *look.warnings), notices=(*newest.notices, *look.notices)
                    )
                )
        yield newest
        time.sleep(max(0.0, began + every_seconds - time.monotonic()))


def _log_to_stderr(options: Options) -> None:
    """Log to standard error: time, logger, level, message."""
    level = options.log_level.upper() if options.log_level else "WARNING"
    logging.basicConfig(
        level=logging.getLevelNamesMapping().get(level, logging.WARNING),
        format="%(asctime)s - %(name)s - %(levelname)s - %(message)s",
        stream=sys.stderr,
    )
    logging.getLogger("asyncssh").setLevel(logging.ERROR)


def _ids(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip().lstrip("#") for word in (text or "").split(",") if word.strip())
