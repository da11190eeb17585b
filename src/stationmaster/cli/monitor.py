"""`stationmaster monitor`: machines rented at Vast.ai, including those that Stationmaster did not rent."""

from __future__ import annotations

import sys
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.browser import opened_or_reason
from stationmaster.cli.context import JsonOption, Options, finite, local_station_of, options_of
from stationmaster.cli.logging import quiet_logging
from stationmaster.cli.monitor_log import LoggedFeed, log_to_file, log_to_stderr
from stationmaster.cli.monitor_output import JsonOutput, PlainOutput, TableOutput, print_looks
from stationmaster.cli.terminal import can_draw, keys_from_terminal
from stationmaster.errors import UserError
from stationmaster.near_names import did_you_mean
from stationmaster.station.monitoring import Watched

if TYPE_CHECKING:
    from stationmaster.station.local.station import LocalStation


def monitor(
    context: typer.Context,
    instances: Annotated[
        str | None, typer.Option(metavar="ID,ID", help="Only these machines.", show_default=False)
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="All running machines of the account.")] = False,
    group: Annotated[
        str | None, typer.Option(metavar="NAME", help="Only the machines of this group (setting monitor.groups).")
    ] = None,
    interval: Annotated[
        float,
        typer.Option(min=1, callback=finite, help="Seconds between updates. The account is listed every 10 at most."),
    ] = 10.0,
    log_path: Annotated[
        str | None,
        typer.Option(metavar="GLOB", help="Log files on the machines. Default: /workspace/output/*/training.log."),
    ] = None,
    listing: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Read the machines from the JSON of `vastai show instances --raw` in this file, or - for standard "
            "input; needs no API key.",
            show_default=False,
        ),
    ] = None,
    notify: Annotated[
        bool, typer.Option("--notify", help="Send notices (epoch completed, exited, health) to your channels.")
    ] = False,
    once: Annotated[bool, typer.Option("--once", help="Print the state once, then exit.")] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print sentences, also on a terminal; for screen readers.")
    ] = False,
    light: Annotated[bool, typer.Option("--light", help="Colours for a light background.")] = False,
    mock: Annotated[bool, typer.Option("--mock", help="Show made-up machines; needs no account.")] = False,
    seed: Annotated[int | None, typer.Option(help="Another seed makes up other machines.", show_default=False)] = None,
    as_json: JsonOption = False,
) -> None:
    """Watch rented machines: progress, health, cost and logs.

    On a terminal this is an app: press ? for its keys, q to leave it. Elsewhere, or with --plain or --json, it prints
    the state at every interval until Ctrl-C. What it shows of your account's machines is stored: see
    `stationmaster metrics vastai/INSTANCE`.

    Examples:

      stationmaster monitor --instances 30007012,30007267

      stationmaster monitor --mock --once --json

      vastai show instances --raw | stationmaster monitor --from - --once
    """
    options = options_of(context)
    with_json = as_json or options.as_json
    with_app = not (once or plain or with_json)
    if with_app and listing == "-":
        listing = keys_from_terminal(options.environ) or listing
    with_app = with_app and can_draw(options.environ)
    watched = Watched(
        ids=_ids(instances),
        group=None if with_app else group,
        only_running=everything,
        log_path=log_path,
        listing=listing,
        made_up=mock,
        seed=seed,
        notify=notify,
    )
    with local_station_of(context, wake=False) as station:
        if with_app and sys.stderr.isatty():
            log_to_file(None if mock else station.settings.home / "monitor.log", options.log_level)
        else:
            log_to_stderr(options.log_level)
        if with_app:
            quiet_logging()  # the app draws where log lines would go
            is_light = light or _has_light_background(options)
            raise typer.Exit(_show_app(station, watched, options, interval=interval, group=group, is_light=is_light))
        output = JsonOutput(repeated=not once) if with_json else PlainOutput() if plain else TableOutput()
        with closing(station.monitoring.feed(watched, every_seconds=interval)) as feed:
            raise typer.Exit(print_looks(LoggedFeed(feed), output, every_seconds=interval, once=once))


def _ids(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip().lstrip("#") for word in (text or "").split(",") if word.strip())


def _show_app(
    station: LocalStation, watched: Watched, options: Options, *, interval: float, group: str | None, is_light: bool
) -> int:
    """The app gets the machines of all groups, to switch between them."""
    from stationmaster.tui.machines_app import run_machines  # Textual, which nothing else needs

    with closing(station.monitoring.feed(watched, every_seconds=interval)) as feed:
        if group is not None and group not in feed.groups:
            known = ", ".join(feed.groups) or "none; set monitor.groups"
            hint = did_you_mean(group, feed.groups) or f"groups of the settings: {known}"
            raise UserError(f"there is no group {group!r}", hint=hint)
        return run_machines(
            LoggedFeed(feed),
            made_up=watched.made_up,
            interval=interval,
            open_metrics=(lambda: station.metrics) if not watched.made_up and watched.listing is None else None,
            is_light=is_light,
            group=group,
            open_link=partial(opened_or_reason, environ=options.environ),
        )


def _has_light_background(options: Options) -> bool:
    from stationmaster.tui.palette import has_light_background

    return has_light_background(options.environ)
