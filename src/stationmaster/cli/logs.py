"""`stationmaster logs`: what the training printed."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JobArgument, json_option, options_of, print_json, station_of
from stationmaster.cli.speaking import note
from stationmaster.errors import UserError
from stationmaster.model import LogChunk

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; this command needs few

_MATCHES = 1000


def logs(
    context: typer.Context,
    job: JobArgument,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Keep printing until the job ends; reconnects to a server that is restarted."
        ),
    ] = False,
    tail: Annotated[
        int | None,
        typer.Option(
            "--tail",
            "-n",
            metavar="N",
            min=0,
            help="Print only the last N lines; with --json the pieces that hold them.",
        ),
    ] = None,
    errors: Annotated[
        bool, typer.Option("--errors", help="Print only errors and the lines around them; tracebacks whole.")
    ] = False,
    grep: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="Print only lines that contain this text, in upper or lower case."),
    ] = None,
    as_json: Annotated[bool, json_option("Print one JSON object per piece of log, or per line found.")] = False,
) -> None:
    """Print a job's log: all attempts and steps, in order.

    A pipe or file gets the bytes that the training wrote. A terminal gets text: without escape sequences, and with a
    line for each redraw of a progress bar.

    Examples:

      stationmaster logs 7f3k2q9a --errors

      stationmaster logs cats --follow --tail 20

      stationmaster logs cats --grep "out of memory"
    """
    with_json = as_json or options_of(context).as_json
    _require_one(grep=grep is not None, errors=errors, follow=follow, tail=tail is not None)
    with station_of(context) as station:
        found = station.jobs.find(job)
        if grep is not None:
            _print_matches(station, found.id, grep, as_json=with_json)
        elif errors:
            pages = _followed(station, found.id, 0) if follow else _pages(station, found.id)
            _print_errors(found.id, pages, as_json=with_json)
        else:
            printer = _JsonPrinter() if with_json else _TextPrinter()
            for pieces in _wanted(station, found.id, follow=follow, tail=tail, whole=with_json):
                for seq, chunk in pieces:
                    printer.show(seq, chunk)
                sys.stdout.flush()


def _require_one(*, grep: bool, errors: bool, follow: bool, tail: bool) -> None:
    """Raises UserError for options that do not go together."""
    if grep and follow:
        raise UserError("--grep searches what is there and cannot follow", hint="use one of --grep and --follow")
    if grep and errors:
        raise UserError("--grep and --errors do not go together", hint="use one of them")
    if tail and (grep or errors):
        raise UserError(
            "--tail counts all lines, not those that are found", hint="leave out --tail, or --grep and --errors"
        )


def _wanted(
    station: Station, job_id: str, *, follow: bool, tail: int | None, whole: bool
) -> Iterator[Sequence[tuple[int, LogChunk]]]:
    """The pieces to print. `whole`: those of the last lines are not cut."""
    if tail is None:
        yield from _followed(station, job_id, 0) if follow else _pages(station, job_id)
        return
    from stationmaster.cli.log_tail import cut_to, last_pieces

    last = last_pieces(station, job_id, tail)
    if tail:
        yield last if whole else cut_to(last, tail)
    if follow:
        yield from _followed(station, job_id, last[-1][0] if last else 0)


def _followed(station: Station, job_id: str, after_seq: int) -> Iterator[Sequence[tuple[int, LogChunk]]]:
    """Every piece after that one until the job has ended, each once, however often the connection is lost."""
    from stationmaster.cli.reconnecting import reconnected  # only for who stays

    cursor = after_seq

    def rest() -> Iterator[Sequence[tuple[int, LogChunk]]]:
        return station.logs.follow(job_id, after_seq=cursor)

    for pieces in reconnected(rest, lambda: station.logs.latest(job_id, limit=1)):
        cursor = pieces[-1][0]
        yield pieces


class _TextPrinter:
    def show(self, seq: int, chunk: LogChunk) -> None:
        sys.stdout.buffer.write(chunk.data)


class _JsonPrinter:
    """One line per piece."""

    def __init__(self) -> None:
        from stationmaster.station.wire.history import LogReader  # pydantic, which the text does not need

        self._reader = LogReader()

    def show(self, seq: int, chunk: LogChunk) -> None:
        _print_line(self._reader.read(seq, chunk).document.model_dump(mode="json"))


def _print_line(document: Mapping[str, Any]) -> None:
    print_json(document, indent=None)


def _pages(station: Station, job_id: str) -> Iterator[Sequence[tuple[int, LogChunk]]]:
    after = 0
    while pieces := station.logs.of_job(job_id, after_seq=after):
        yield pieces
        after = pieces[-1][0]


def _print_matches(station: Station, job_id: str, text: str, *, as_json: bool) -> None:
    from stationmaster.station.wire.history import LogMatchDocument  # as above

    after = 0
    while matches := station.logs.search(job_id, text, limit=_MATCHES, after=after):
        for match in matches:
            if as_json:
                _print_line(LogMatchDocument.of(match).model_dump(mode="json"))
            else:
                typer.echo(f"{match.attempt}/{match.stream}:{match.line}: {match.text}")
        after = matches[-1].number


def _print_errors(job_id: str, pages: Iterable[Sequence[tuple[int, LogChunk]]], *, as_json: bool) -> None:
    from stationmaster.cli.error_lines import error_lines  # the parsers, which the text does not need

    last = None
    for line in error_lines(pages):
        if as_json:
            _print_line(line.json())
        else:
            if last is not None and line.place != last:
                typer.echo("--")
            typer.echo(line.text())
        last = line.place
        sys.stdout.flush()
    if last is None:
        note(f"no errors were found in the log of {job_id}; `stationmaster show {job_id}` says how it is")
