"""Series of jobs and watched machines on a server."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from stationmaster.errors import NotFound, UserError
from stationmaster.series.table import Table, joined
from stationmaster.station.http.connection import Connection, segment, text_of
from stationmaster.station.http.jobs import path_of_job
from stationmaster.station.metrics import (
    DEFAULT_COLUMNS,
    Axis,
    Contents,
    DrawnSeries,
    Exported,
    Imported,
    RunSummary,
)
from stationmaster.station.run_files.exporting import require_format
from stationmaster.station.run_files.reading import HINT, files_of_folder
from stationmaster.station.wire.metrics import (
    ROWS_HEADER,
    ChartDocument,
    ImportedDocument,
    MetricsDocument,
    MetricsSummaryDocument,
    RowsDocument,
)

_ROWS_PER_PAGE = 10_000
_MOST_COLUMNS = 5000
_CHUNK_BYTES = 256 << 10


class HttpMetrics:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def find(self, reference: str) -> str:
        return self._connection.get(_path(reference), MetricsDocument).subject

    def version(self, subject: str) -> str:
        found = self._connection.send("GET", _path(subject), parameters=_exactly(subject))
        return str(found.headers.get("etag", "")).strip('"')

    def contents(self, subject: str) -> Contents:
        return self._connection.get(_path(subject), MetricsDocument, **_exactly(subject)).value()

    def series(
        self,
        subject: str,
        names: Sequence[str] = (),
        *,
        axis: Axis = "step",
        start: float | None = None,
        end: float | None = None,
        columns: int = DEFAULT_COLUMNS,
    ) -> Sequence[DrawnSeries]:
        given = {"axis": axis, "start": start, "end": end, "columns": min(columns, _MOST_COLUMNS), **_exactly(subject)}
        found = self._connection.send("GET", f"{_path(subject)}/series", parameters={**given, "name": list(names)})
        return [each.value() for each in self._connection.read(found, ChartDocument).series]

    def summary(
        self, subject: str, *, axis: Axis = "step", start: float | None = None, end: float | None = None
    ) -> RunSummary:
        path = f"{_path(subject)}/summary"
        given = {"axis": axis, "start": start, "end": end, **_exactly(subject)}
        return self._connection.get(path, MetricsSummaryDocument, **given).value()

    def rows(self, subject: str, table: str) -> Table:
        if table in ("", ".", ".."):
            raise NotFound(f"there are no rows of {table} of {subject}")
        path, after, pages = f"{_path(subject)}/rows/{segment(table)}", None, []
        while True:
            page = self._connection.get(path, RowsDocument, limit=_ROWS_PER_PAGE, after=after, **_exactly(subject))
            pages.append(page.value())
            after = page.next
            if after is None:
                return joined(pages)

    def import_files(self, subject: str, path: Path) -> Imported:
        if path.is_dir():
            with tempfile.TemporaryFile() as packed:
                _pack(path, packed)
                packed.seek(0)
                return self._import(subject, path.resolve().name or "folder", packed, is_folder=True)
        with _opened(path) as file:
            return self._import(subject, path.name, file, is_folder=False)

    def export(self, subject: str, path: Path, *, table: str | None = None) -> Exported:
        format = require_format(path).removeprefix(".")
        given = {"format": format, "table": table, **_exactly(subject)}
        parameters = {name: text_of(value) for name, value in given.items() if value is not None}
        address = f"{_path(subject)}/export"
        fresh = path.with_name(f".{path.name}.{os.urandom(8).hex()}.new")
        connection = self._connection
        try:
            with (
                connection.errors_of_server(),
                connection.client.stream("GET", address, params=parameters) as found,
            ):
                connection.require_success(found)
                with fresh.open("xb") as file:
                    for chunk in found.iter_bytes(_CHUNK_BYTES):
                        file.write(chunk)
            fresh.replace(path)
        except OSError as problem:
            raise UserError(f"{path} cannot be written: {problem.strerror}", hint="choose another place") from problem
        finally:
            fresh.unlink(missing_ok=True)
        return Exported(path=path, rows=int(found.headers.get(ROWS_HEADER, "0")))

    def _import(self, subject: str, name: str, file: BinaryIO, *, is_folder: bool) -> Imported:
        found = self._connection.send(
            "POST",
            f"{_path(subject)}/import",
            content=file,
            parameters={"name": name, "folder": is_folder, **_exactly(subject)},
            headers={"Content-Type": "application/octet-stream"},
            patient=True,
        )
        return self._connection.read(found, ImportedDocument).value()


def _path(subject: str) -> str:
    """The address of a job's series, or of those of a machine, whose name has a slash."""
    provider, slash, instance = subject.partition("/")
    if not slash:
        return f"{path_of_job(subject)}/metrics"
    if not {provider, instance}.isdisjoint({"", ".", ".."}):
        raise NotFound(f"there are no values of a machine {subject}")
    return f"/api/instances/{segment(provider)}/{segment(instance)}/metrics"


def _exactly(subject: str) -> dict[str, bool]:
    return {} if "/" in subject else {"exact": True}


@contextmanager
def _opened(path: Path) -> Iterator[BinaryIO]:
    try:
        with path.open("rb") as file:
            yield file
    except FileNotFoundError as problem:
        raise NotFound(f"there is no file {path}", hint=HINT) from problem
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint=HINT) from problem


def _pack(folder: Path, target: BinaryIO) -> None:
    """The files of the folder that hold series, as a tar."""
    with tarfile.open(fileobj=target, mode="w") as packed:
        for path in files_of_folder(folder):
            about = packed.gettarinfo(path, arcname=path.relative_to(folder).as_posix())
            about.type, about.uname, about.gname = tarfile.REGTYPE, "", ""
            with path.open("rb") as file:
                about.size = path.stat().st_size
                packed.addfile(about, file)
