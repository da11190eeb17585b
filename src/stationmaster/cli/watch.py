"""`stationmaster watch`: all jobs, or one, live: an app on a terminal, plain text elsewhere."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.browser import opened_or_reason
from stationmaster.cli.context import JsonOption, Options, finite, named, options_of, print_json, station_of
from stationmaster.cli.live import follow
from stationmaster.cli.logging import quiet_logging
from stationmaster.cli.pausing import pause
from stationmaster.cli.render import EXIT_CODES
from stationmaster.cli.speaking import note
from stationmaster.cli.terminal import PIPE_WIDTH, can_draw

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; most commands need few


def watch(
    context: typer.Context,
    job: Annotated[
        str | None,
        typer.Argument(
            metavar="[JOB]",
            help="Id of the job (or its beginning), or its name. Default: all jobs.",
            callback=named("job", "jobs --all"),
        ),
    ] = None,
    interval: Annotated[
        float, typer.Option(min=1, callback=finite, help="Seconds between two looks, where no app can be shown.")
    ] = 10.0,
    once: Annotated[bool, typer.Option("--once", help="Print the state once, then exit.")] = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print sentences, also on a terminal; for screen readers.")
    ] = False,
    light: Annotated[bool, typer.Option("--light", help="Colours for a light background.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Watch all jobs, or one, live.

    On a terminal this is an app: press ? for its keys, q to leave it; trainings keep running. Elsewhere it prints a
    table, and at every interval the lines that changed, or with JOB a line per change until the job ends. With JOB the
    exit code is that of the job's outcome.

    Examples:

      stationmaster watch

      stationmaster watch cats --json
    """
    options = options_of(context)
    with_json = as_json or options.as_json
    with station_of(context) as station:
        job_id = None if job is None else station.jobs.find(job).id
        if can_draw(options.environ) and not (once or plain or with_json):
            raise typer.Exit(_show_app(station, job_id, options, light=light))
        if job_id is not None and not once:
            raise typer.Exit(follow(station, job_id, as_json=with_json))
        _print_looks(station, job_id, interval=interval, once=once, plain=plain, as_json=with_json)


def _show_app(station: Station, job_id: str | None, options: Options, *, light: bool) -> int:
    from stationmaster.tui.jobs_app import run_jobs  # Textual, which nothing else needs
    from stationmaster.tui.palette import has_light_background

    quiet_logging()  # the app draws where log lines would go
    where = "this computer" if options.server is None else options.server
    code = run_jobs(
        station,
        title=f"Trainings of {where}",
        job_id=job_id,
        is_light=light or has_light_background(options.environ),
        open_link=lambda link: opened_or_reason(link, options.environ),
    )
    if code or job_id is None:
        return code
    outcome = station.jobs.view(job_id).job.outcome
    if outcome is None:
        note(f"the job goes on; watch it again: stationmaster watch {job_id}")
    return EXIT_CODES[outcome] if outcome else 0


def _print_looks(
    station: Station, job_id: str | None, *, interval: float, once: bool, plain: bool, as_json: bool
) -> None:
    from stationmaster.tui.plain import PrintedTable, SpokenRows, summary_sentence, table_lines
    from stationmaster.tui.sources.jobs import JobsSource

    source = JobsSource(station, title="")
    spoken, printed = SpokenRows(), PrintedTable()
    while True:
        if as_json:
            _print_json(station, job_id, once=once)
        else:
            view = source.look(job_id)
            if plain:
                changed = spoken.changed(view.rows)
                lines = [*changed, *([f"Summary: {summary_sentence(view.summary)}"] if changed else [])]
            else:
                lines = printed.changed(table_lines(view, width=shutil.get_terminal_size((PIPE_WIDTH, 24)).columns))
            sys.stdout.write("".join(f"{text}\n" for text in lines))
        sys.stdout.flush()
        if once:
            return
        pause(interval)


def _print_json(station: Station, job_id: str | None, *, once: bool) -> None:
    """One object: the overview, or one job."""
    from stationmaster.cli.render import job_json
    from stationmaster.station.wire.overview import OverviewDocument

    if job_id is None:
        document = OverviewDocument.of(station.overview.look()).model_dump(mode="json")
    else:
        document = job_json(station.jobs.view(job_id), station.events.of_job(job_id))
    print_json(document, indent=2 if once else None)
