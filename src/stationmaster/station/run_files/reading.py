"""Reads the series of a run from a file or folder, whichever of the known kinds it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stationmaster.errors import NotFound, UserError
from stationmaster.series.joining import join_attempts
from stationmaster.series.sources.csv_file import has_step_column, read_csv
from stationmaster.series.sources.recording import Recording
from stationmaster.series.sources.tables import tables_of
from stationmaster.series.sources.tensorboard import MARK as EVENTS_MARK
from stationmaster.series.sources.tensorboard import are_events, read_event_files
from stationmaster.series.sources.wandb import MARK as WANDB_MARK
from stationmaster.series.sources.wandb import read_wandb
from stationmaster.series.table import Table
from stationmaster.station.run_files.sqlite_file import SQLITE_MARK, read_database

HINT = (
    "give a job, a run's database (aitk_db.db), TensorBoard event files or their folder, "
    "an offline run of wandb, or a CSV file"
)
_MOST_BYTES = 1 << 30  # of all files of a run together: they are read into memory
_MOST_FILES = 10_000  # that are looked at in a folder
_HEAD_BYTES = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFile:
    """The series of a run as a file has them. `kind` names the file's format, `notes` say what was left out."""

    kind: str
    tables: dict[str, Table]
    notes: tuple[str, ...] = ()
    job_id: str | None = None  # as the file names it


def read_run_file(path: Path, *, job: str | None = None) -> RunFile:
    """Read a file or folder; `job` chooses among the jobs of a database that holds several.

    Raises NotFound, and UserError if it cannot be read or is none of the known kinds.
    """
    try:
        found = _read_folder(path) if path.is_dir() else _read_file(path, job=job)
    except FileNotFoundError as problem:
        raise NotFound(f"there is no file {path}", hint=HINT) from problem
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint=HINT) from problem
    if not found.tables:
        raise UserError(f"{path} has no values ({found.kind})", hint=HINT)
    return found


def _read_file(path: Path, *, job: str | None) -> RunFile:
    with path.open("rb") as stream:
        head = stream.read(_HEAD_BYTES)
    if head.startswith(SQLITE_MARK):
        return _read_run_database(path, job=job)
    if head.startswith(WANDB_MARK):
        return _recorded("an offline run of wandb", read_wandb(_bytes(path)))
    if EVENTS_MARK in path.name or are_events(head):
        return _recorded("an event file of TensorBoard", read_event_files({path.name: _bytes(path)}))
    first_line = head.decode("utf-8-sig", errors="replace").partition("\n")[0]
    if path.suffix.lower() in (".csv", ".tsv") or has_step_column(first_line):
        try:
            return _recorded("a CSV file", read_csv(_bytes(path).decode("utf-8-sig", errors="replace")))
        except UserError as problem:
            raise UserError(f"{path}, {problem}", hint=problem.hint) from problem
    raise UserError(f"{path} is none of the files that hold series", hint=HINT)


def _read_run_database(path: Path, *, job: str | None) -> RunFile:
    found = read_database(path, job=job)
    others = [one for one in found.jobs if one != found.job_id]
    also = (f"the file also holds {', '.join(others[:5])}; choose one with --job",) if others else ()
    tables = join_attempts({1: found.tables})
    return RunFile(kind="a run's database", tables=tables, notes=(*also, *found.notes), job_id=found.job_id)


def files_of_folder(folder: Path) -> list[Path]:
    """The files of a folder that are read: event files, else what may hold a run, with the `-wal` of a database.

    Raises UserError for a folder of too many files.
    """
    events, others = _files_with_series(folder)
    beside = [path.with_name(f"{path.name}-wal") for path in others]
    return list(events.values()) or [*others, *(path for path in beside if path.is_file())]


def _read_folder(folder: Path) -> RunFile:
    events, others = _files_with_series(folder)
    if events:
        return _recorded("event files of TensorBoard", read_event_files(_several(events)))
    if len(others) > 1:
        names = ", ".join(str(path.relative_to(folder)) for path in others[:5])
        raise UserError(f"{folder} holds {len(others)} runs: {names}", hint="give the file of one of them")
    if others:
        return _read_file(others[0], job=None)
    raise UserError(f"{folder} has no files that hold series", hint=HINT)


def _files_with_series(folder: Path) -> tuple[dict[str, Path], list[Path]]:
    """The event files by their path in the folder, and the files that each hold a run."""
    events: dict[str, Path] = {}
    others: list[Path] = []
    for path in _files_below(folder):
        if EVENTS_MARK in path.name:
            events[path.relative_to(folder).as_posix()] = path
        elif path.suffix == ".wandb" or path.name == "aitk_db.db":
            others.append(path)
    return events, others


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files of a folder and of those below it, in a fixed order; links to folders are not followed."""
    looked_at = 0
    for place, below, names in os.walk(folder):
        below.sort()
        for name in sorted(names):
            looked_at += 1
            if looked_at > _MOST_FILES:
                raise UserError(f"{folder} has more than {_MOST_FILES} files", hint="give the folder of one run")
            yield Path(place) / name


def _recorded(kind: str, recording: Recording) -> RunFile:
    return RunFile(kind=kind, tables=join_attempts({1: tables_of(recording)}), notes=recording.notes)


def _several(paths: dict[str, Path]) -> dict[str, bytes]:
    total = sum(path.stat().st_size for path in paths.values())
    _require_size(total, next(iter(paths.values())).parent)
    return {name: path.read_bytes() for name, path in paths.items()}


def _bytes(path: Path) -> bytes:
    _require_size(path.stat().st_size, path)
    return path.read_bytes()


def _require_size(size: int, path: Path) -> None:
    if size > _MOST_BYTES:
        raise UserError(f"{path} is too large: {size / 2**30:.1f} GiB, at most 1 GiB can be read")
