"""`stationmaster analyze TARGET`: what went wrong or was wasted in a run, and what to change."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from stationmaster.analysis.report import Severity
from stationmaster.cli.analysis_lines import analysis_lines
from stationmaster.cli.context import JsonOption, given_path, named, options_of, print_json, print_lines, station_of
from stationmaster.errors import NotFound, UserError
from stationmaster.station.analysis import Analysis, analyse_file
from stationmaster.station.run_files.recorded_run import HINT

_SUFFIXES = (".db", ".sqlite", ".sqlite3")


def _checked_target(value: str) -> str:
    return value if "/" in value else str(named("job", "jobs --all")(value))


def analyze(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="JOB|FILE",
            help="A job, or a run's database (aitk_db.db) or a folder that holds one; a file needs no installation.",
            callback=_checked_target,
        ),
    ],
    log: Annotated[
        Path | None,
        typer.Option(
            parser=given_path, metavar="LOG", help="What the trainer printed; default: a log.txt beside the file."
        ),
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(
            parser=given_path,
            metavar="FILE",
            help="The trainer's config; default: a config.yaml or .toml beside the file.",
        ),
    ] = None,
    job: Annotated[str | None, typer.Option(metavar="ID", help="Job in a database that holds several.")] = None,
    again: Annotated[bool, typer.Option("--again", help="Analyse the job anew and store the result.")] = False,
    offers: Annotated[
        bool, typer.Option("--offers", help="Compare the job's machine with what you can rent now.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Also print the stack traces of the log.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show what a training wasted or died of, and what to change.

    Every training is analysed when it has ended; this prints the result. A training that still runs is analysed as it
    is now.

    Examples:

      stationmaster analyze cats

      stationmaster analyze aitk_db.db --log output/cats/log.txt --config config.yaml --json
    """
    as_json = as_json or options_of(context).as_json
    for_file = _file_named(target, is_sure=any(given is not None for given in (log, config, job)))
    of_job: Analysis | None = None
    if for_file is None:
        try:
            of_job = _of_job(context, target, again=again, with_offers=offers)
            report = of_job.report
        except NotFound:
            if not Path(target).exists():
                raise
            for_file = Path(target)
    if for_file is not None:
        if again or offers:
            raise UserError("--again and --offers are for jobs", hint="leave them out for a file")
        report = analyse_file(for_file, job=job, log=log, config=config, now=time.time())
    if as_json:
        from stationmaster.station.wire.analysis import AnalysisDocument, ReportDocument

        found = ReportDocument.of_report(report) if of_job is None else AnalysisDocument.of(of_job)
        print_json(found.as_json())
        return
    print_lines(analysis_lines(report, verbose=verbose))
    if of_job is not None and report.recommendations:
        typer.echo("")
        only_info = all(each.severity is Severity.INFO for each in report.recommendations)
        names = " --only 1" if only_info else ""  # info is applied only by name
        typer.echo(
            f"Apply the changes to a new job: stationmaster retry {report.job_id} --apply-recommendations{names}"
        )


def _of_job(context: typer.Context, reference: str, *, again: bool, with_offers: bool) -> Analysis:
    with station_of(context, wake=False) as station:
        job_id = station.jobs.find(reference).id
        return station.analyses.of_job(job_id, again=again, with_offers=with_offers)


def _file_named(target: str, *, is_sure: bool) -> Path | None:
    """The file or folder that a target can only mean; None where it may be a job.

    `is_sure`: options that only a file has were given.
    """
    path = Path(target)
    looks_like_file = path.suffix.lower() in _SUFFIXES or target.startswith(("/", "./", "../", "~")) or is_sure
    if path.exists() and (looks_like_file or "/" in target or target in (".", "..")):
        return path
    if looks_like_file:
        raise NotFound(f"there is no file {target}", hint=HINT)
    return None
