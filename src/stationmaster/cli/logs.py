"""`stationmaster logs`: what the training printed."""

from __future__ import annotations

import codecs
import json
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import JobArgument, options_of, station_of
from stationmaster.model import LogChunk

if TYPE_CHECKING:
    from stationmaster.station.base import Station  # imports every noun; this command needs few


def logs(
    context: typer.Context,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep printing until the job ends.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per piece of log.")] = False,
) -> None:
    """Print a job's log: all attempts and steps, in order.

    Examples:

      stationmaster logs 7f3k2q9a

      stationmaster logs cats --follow
    """
    printer = _JsonPrinter() if as_json or options_of(context).as_json else _TextPrinter()
    with station_of(context) as station:
        found = station.jobs.find(job)
        seen = _print_from(station, found.id, 0, printer)
        if follow:
            for _ in station.jobs.watch(found.id):
                seen = _print_from(station, found.id, seen, printer)


class _TextPrinter:
    def show(self, seq: int, chunk: LogChunk) -> None:
        sys.stdout.buffer.write(chunk.data)


class _JsonPrinter:
    """One line per piece. A character split over two pieces is printed with the later one, so that the texts join."""

    def __init__(self) -> None:
        self._decoders: dict[tuple[int, str], codecs.IncrementalDecoder] = {}

    def show(self, seq: int, chunk: LogChunk) -> None:
        decoder = self._decoders.setdefault(
            (chunk.attempt, chunk.stream), codecs.getincrementaldecoder("utf-8")("replace")
        )
        document = {
            "seq": seq,
            "attempt": chunk.attempt,
            "stream": chunk.stream,
            "start": chunk.start,
            "end": chunk.end,
            "text": decoder.decode(chunk.data),
        }
        sys.stdout.write(json.dumps(document, ensure_ascii=False) + "\n")


def _print_from(station: Station, job_id: str, after: int, printer: _TextPrinter | _JsonPrinter) -> int:
    while pieces := station.logs.of_job(job_id, after_seq=after):
        for after, chunk in pieces:
            printer.show(after, chunk)
    sys.stdout.flush()
    return after
