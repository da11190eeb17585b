"""`stationmaster logs`: what the training printed."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stationmaster.cli.context import JobArgument, json_option, options_of, print_json, station_of
from stationmaster.errors import UserError
from stationmaster.model import LogChunk

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; this command needs few

_MATCHES = 1000


def logs(
    context: typer.Context,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the job ends.")] = False,
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

      stationmaster logs 7f3k2q9a

      stationmaster logs cats --follow

      stationmaster logs cats --grep "out of memory"
    """
    with_json = as_json or options_of(context).as_json
    if grep is not None and follow:
        raise UserError("--grep searches what is there and cannot follow", hint="use one of --grep and --follow")
    with station_of(context) as station:
        found = station.jobs.find(job)
        if grep is not None:
            _print_matches(station, found.id, grep, as_json=with_json)
            return
        printer = _JsonPrinter() if with_json else _TextPrinter()
        for pieces in station.logs.follow(found.id) if follow else _pages(station, found.id):
            for seq, chunk in pieces:
                printer.show(seq, chunk)
            sys.stdout.flush()


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
