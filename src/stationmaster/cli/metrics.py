"""`stationmaster metrics TARGET`: the series of a job, of a watched machine or of a file."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from stationmaster.cli.context import (
    finite,
    given_path,
    json_option,
    named,
    options_of,
    print_document,
    print_json,
    print_lines,
    station_of,
)
from stationmaster.cli.file_modes import as_the_person
from stationmaster.cli.metric_lines import metric_lines
from stationmaster.cli.speaking import note
from stationmaster.errors import NotFound, UserError
from stationmaster.printable import one_line
from stationmaster.series.run_series import Axis, DrawnSeries, RunSeries
from stationmaster.series.summary import RunSummary, summarise_run
from stationmaster.series.table import Table
from stationmaster.station.base import Station
from stationmaster.station.metrics import DEFAULT_COLUMNS, Exported, Imported
from stationmaster.station.run_files.exporting import FORMATS, export_run, write_csv_rows
from stationmaster.station.run_files.reading import HINT, RunFile, read_run_file
from stationmaster.station.wire.metrics import (
    ImportedDocument,
    MetricsSummaryDocument,
    SeriesDocument,
    StoredTableDocument,
)

_FILE_SUFFIXES = (".db", ".wandb", ".csv", ".tsv")
_FACTS_OF_FILE: dict[str, str] = {}  # a file has its own facts; home knows no others


class By(StrEnum):
    STEP = "step"
    TIME = "time"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """The part of a run that is asked for."""

    names: tuple[str, ...]
    axis: Axis
    start: float | None
    end: float | None


def metrics(
    context: typer.Context,
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A job, PROVIDER/INSTANCE of a machine that was monitored, or a file or folder: a run's database, "
            "TensorBoard event files, an offline run of wandb, CSV.",
            callback=named("job", "jobs --all"),
        ),
    ],
    series: Annotated[
        list[str] | None, typer.Option("--series", metavar="NAME", help="Only this series. Repeatable.")
    ] = None,
    by: Annotated[By, typer.Option(metavar="|".join(By), help="Draw over steps or time.")] = By.STEP,
    start: Annotated[
        float | None,
        typer.Option("--from", help="First step, or seconds since 1970 with --by time.", callback=finite),
    ] = None,
    end: Annotated[float | None, typer.Option("--to", help="Last step, or last second.", callback=finite)] = None,
    columns: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="With --json: print at most two points for each of N columns.")
    ] = DEFAULT_COLUMNS,
    table: Annotated[
        str | None, typer.Option(help="Print the rows of one table as CSV, or export only that table.")
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(parser=given_path, metavar="FILE", help=f"Write everything to a file: {', '.join(FORMATS)}."),
    ] = None,
    import_path: Annotated[
        Path | None,
        typer.Option(
            "--import", parser=given_path, metavar="PATH", help="Store the series of a file or folder with the job."
        ),
    ] = None,
    job: Annotated[str | None, typer.Option(help="Job in a database that holds several.")] = None,
    as_json: Annotated[bool, json_option("Print the series and the summary as JSON.")] = False,
) -> None:
    """Show a training's series: loss, step time, GPU and memory.

    Examples:

      stationmaster metrics cats

      stationmaster metrics cats --series loss --from 400 --to 600 --json

      stationmaster metrics cats --export run.csv

      stationmaster metrics runs/events.out.tfevents.1700000000.host
    """
    as_json = as_json or options_of(context).as_json
    if export is not None and import_path is not None:
        raise UserError("--import and --export cannot be combined", hint="run the command twice")
    if start is not None and end is not None and start > end:
        raise UserError(f"--from {start:g} is after --to {end:g}", hint="exchange the two")
    wanted = _Wanted(names=tuple(series or ()), axis=by.value, start=start, end=end)
    with ExitStack() as opened:
        place = _file_named(target)
        if place is None:
            station = opened.enter_context(station_of(context, wake=False))
            try:
                source: _Source = _StoredRun(station, station.metrics.find(target))
            except NotFound:
                if not Path(target).exists():
                    raise
                place = Path(target)
        if place is not None:
            source = _RunInFile(place, read_run_file(place, job=job))
        if import_path is not None:
            _import(source, import_path, as_json=as_json)
        elif export is not None:
            with as_the_person():
                written = source.export(export, table)
            _tell_exported(written, as_json=as_json)
        elif table is not None:
            rows = source.rows(table)
            print_json({"table": table, "columns": rows.as_lists()}) if as_json else write_csv_rows(sys.stdout, rows)
        elif as_json:
            print_json(_json(source, wanted, columns), indent=None)  # one line: it has many numbers
        else:
            _show(source, wanted)


class _StoredRun:
    """The series of a job or machine, as the station has them."""

    def __init__(self, station: Station, subject: str) -> None:
        self._metrics = station.metrics
        self.subject = subject
        self.contents = self._metrics.contents(subject)

    @property
    def title(self) -> str:
        return self.subject

    @property
    def notes(self) -> tuple[str, ...]:
        notes = []
        if self.contents.from_log:
            notes.append("the steps are read from the log; the training recorded none")
        if any(table.thinned for table in self.contents.tables):
            notes.append("old values are thinned: lowest and highest ones are left")
        if self.contents.dropped_rows:
            notes.append(f"{self.contents.dropped_rows} rows beyond the limit of a job were dropped")
        return tuple(notes)

    @property
    def tables(self) -> list[StoredTableDocument]:
        return [StoredTableDocument.of(table) for table in self.contents.tables]

    def summary(self, wanted: _Wanted) -> RunSummary:
        return self._metrics.summary(self.subject, axis=wanted.axis, start=wanted.start, end=wanted.end)

    def drawn(self, wanted: _Wanted, columns: int) -> Sequence[DrawnSeries]:
        return self._metrics.series(
            self.subject, wanted.names, axis=wanted.axis, start=wanted.start, end=wanted.end, columns=columns
        )

    def rows(self, table: str) -> Table:
        return self._metrics.rows(self.subject, table)

    def export(self, path: Path, table: str | None) -> Exported:
        return self._metrics.export(self.subject, path, table=table)

    def store(self, path: Path) -> Imported:
        return self._metrics.import_files(self.subject, path)


class _RunInFile:
    """The series of a file; nothing of it is stored."""

    def __init__(self, path: Path, found: RunFile) -> None:
        self._found = found
        self._run = RunSeries(found.tables)
        self.subject = found.job_id or path.stem
        self.title = f"{path} ({found.kind})"
        self.notes = found.notes

    @property
    def tables(self) -> list[StoredTableDocument]:
        return [StoredTableDocument(name=name, rows=len(table)) for name, table in self._found.tables.items()]

    def summary(self, wanted: _Wanted) -> RunSummary:
        return summarise_run(self._run.within(axis=wanted.axis, start=wanted.start, end=wanted.end))

    def drawn(self, wanted: _Wanted, columns: int) -> Sequence[DrawnSeries]:
        self._run.require(wanted.names)
        return self._run.drawn(wanted.names, axis=wanted.axis, start=wanted.start, end=wanted.end, columns=columns)

    def rows(self, table: str) -> Table:
        if table not in self._found.tables:
            raise NotFound(f"there are no rows of {table}", hint=f"there are {', '.join(self._found.tables)}")
        return self._found.tables[table]

    def export(self, path: Path, table: str | None) -> Exported:
        return export_run(self._found.tables, path, job_id=self.subject, info=_FACTS_OF_FILE, table=table)

    def store(self, path: Path) -> Imported:
        raise UserError(
            f"{path} can be imported only with a job",
            hint=f"stationmaster metrics JOB --import {shlex.quote(str(path))}",
        )


_Source = _StoredRun | _RunInFile


def _file_named(target: str) -> Path | None:
    """The file that a target can only mean; None where it may be a job: jobs and folders share names such as `cats`."""
    path = Path(target)
    looks_like_file = path.suffix.lower() in _FILE_SUFFIXES or ".tfevents." in path.name
    if path.exists() and (looks_like_file or "/" in target or target in (".", "..")):
        return path
    if looks_like_file or target.startswith(("/", "./", "../", "~")):
        raise NotFound(f"there is no file {target}", hint=HINT)
    return None


def _import(source: _Source, path: Path, *, as_json: bool) -> None:
    stored = source.store(path)
    if as_json:
        print_json(ImportedDocument.of(stored).model_dump(mode="json"))
        return
    typer.echo(f"stored {stored.rows} rows of {path} ({stored.kind}): {', '.join(stored.series)}")
    for text in stored.notes:
        note(text)


def _tell_exported(written: Exported, *, as_json: bool) -> None:
    if as_json:
        from stationmaster.cli.answers import ExportedRows  # imports the documents of all nouns

        return print_document(ExportedRows(file=str(written.path), rows=written.rows))
    typer.echo(f"wrote {written.rows} rows to {written.path}")
    return None


def _show(source: _Source, wanted: _Wanted) -> None:
    drawn = source.drawn(wanted, DEFAULT_COLUMNS)
    summary = source.summary(wanted)
    typer.echo(one_line(source.title))
    print_lines(metric_lines(summary, drawn))
    for text in source.notes:
        typer.echo(f"note: {one_line(text)}")


def _json(source: _Source, wanted: _Wanted, columns: int) -> dict[str, Any]:
    drawn = source.drawn(wanted, columns)
    summary = MetricsSummaryDocument.of(source.summary(wanted))
    names = {series.name for series in drawn}
    shown = summary.model_copy(update={"series": tuple(each for each in summary.series if each.name in names)})
    return {
        "subject": source.subject,
        "summary": shown.model_dump(mode="json"),
        "tables": [table.model_dump(mode="json", exclude_unset=True) for table in source.tables],
        "series": [SeriesDocument.of(series).model_dump(mode="json") for series in drawn],
        "notes": list(source.notes),
    }
