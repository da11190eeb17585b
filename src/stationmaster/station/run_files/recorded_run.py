"""A run's database, with the log and config beside it, as an analysis reads them. Needs no store and no settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from stationmaster.analysis.configs.base import TrainerConfig
from stationmaster.analysis.configs.reading import read_config
from stationmaster.analysis.recorded_run import RecordedRun
from stationmaster.errors import NotFound, UserError
from stationmaster.series.joining import join_attempts
from stationmaster.series.sources.journal import SUFFIX, read_segment
from stationmaster.series.table import Table
from stationmaster.station.run_files.sqlite_file import SQLITE_MARK, DatabaseRows, folded_up_to, read_database

DATABASE = "aitk_db.db"
HINT = f"give a job, a run's database ({DATABASE}), or a folder that holds one"

_LOG_NAMES = ("log.txt", "../log.txt", "train.log")
_CONFIG_NAMES = ("config.yaml", "config.yml", "config.toml", "../config.yaml", "../config.yml", "../config.toml")
_MOST_LOG_BYTES = 64 << 20
_LOG_HEAD_BYTES = 1 << 20  # of a longer log: the start has the settings, the end what went wrong
_MOST_CONFIG_BYTES = 4 << 20
_MOST_JOBS_NAMED = 8
_MOST_SEGMENTS = 200
_FRESH_SECONDS = 120.0  # samples are written ten at a time, every 5 s
_MOST_SEGMENT_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOnDisk:
    """A run as its files have it, where they are, and what could not be read of them."""

    run: RecordedRun
    database: Path
    log: Path | None
    config: Path | None
    notes: tuple[str, ...] = ()


def read_recorded_run(
    path: Path,
    *,
    job: str | None = None,
    log: Path | None = None,
    config: Path | None = None,
    now: float | None = None,
) -> RunOnDisk:
    """Read a run's database, or the one in a folder; log and config are by default those beside it.

    With `now`, a run whose rows reach that time may still run: that it has no end means nothing.
    A file that was cut off is read as far as it goes. Raises NotFound, and UserError if the file is no run's database,
    or if it holds several jobs and `job` is None.
    """
    database = _database_in(path) if path.is_dir() else path
    rows = _with_journals(database, _rows(database, job=job), job=job)
    if job is None and len(rows.jobs) > 1:
        named = ", ".join(rows.jobs[:_MOST_JOBS_NAMED]) + (", …" if len(rows.jobs) > _MOST_JOBS_NAMED else "")
        raise UserError(f"{database} holds {len(rows.jobs)} jobs: {named}", hint="choose one with --job")
    notes = list(rows.notes)
    log = log or _beside(database, _log_names(rows.job_id))
    text = _log_text(log, notes) if log is not None else ""
    chosen = config or _beside(database, _CONFIG_NAMES)
    tables, info = join_attempts({1: rows.tables}), facts_of(rows.tables)
    if now is not None and _may_run(tables, info, now):
        info["may_run"] = "1"
        notes.append("the training may still run: its newest row is less than 2 minutes old")
    run = RecordedRun(
        job_id=rows.job_id or job or database.stem,
        tables=tables,
        info=info,
        log=text,
        config=_config(chosen, notes, is_given=config is not None),
    )
    return RunOnDisk(run=run, database=database, log=log, config=chosen, notes=tuple(notes))


def _with_journals(database: Path, rows: DatabaseRows, *, job: str | None) -> DatabaseRows:
    """Add what a training recorded in front of its database and nothing has folded into it: it was killed, or runs."""
    folder = database.with_name(f"{database.name}.journals")
    segments = sorted(folder.glob(f"*{SUFFIX}"))[:_MOST_SEGMENTS] if folder.is_dir() else []
    if not segments:
        return rows
    folded = folded_up_to(database)
    found = [
        read_segment(path.read_bytes(), position=folded.get(path.name.removesuffix(SUFFIX), 0))
        for path in segments
        if path.stat().st_size <= _MOST_SEGMENT_BYTES
    ]
    added = [each for each in found if each is not None and each.tables]
    jobs = tuple(dict.fromkeys([*rows.jobs, *(each.job for each in added)]))
    chosen = rows.job_id or next(iter(jobs), None)
    tables = (*rows.tables, *(table for each in added if each.job == chosen for table in each.tables))
    return replace(rows, job_id=chosen, jobs=jobs, tables=tables)


def facts_of(tables: tuple[Table, ...]) -> dict[str, str]:
    """Return the rows of RunInfo by key; of a key that is there twice, the later value."""
    return {
        key: value
        for table in tables
        if table.name == "RunInfo"
        for key, value in table.tuples("key", "value")
        if value is not None
    }


def _may_run(tables: Mapping[str, Table], info: Mapping[str, str], now: float) -> bool:
    """Return whether nothing records an end and the newest row is new; a machine's clock may differ a little."""
    if any(key in info for key in ("exit_code", "exit_signal", "ended_at", "stopped_by")):
        return False
    times = [max(table.values("timestamp")) for table in tables.values() if "timestamp" in table.columns]
    return abs(now - max(times, default=0.0)) <= _FRESH_SECONDS


def _database_in(folder: Path) -> Path:
    for place in (folder / DATABASE, folder / "logs" / DATABASE):
        if place.is_file():
            return place
    raise NotFound(f"{folder} holds no {DATABASE}", hint=HINT)


def _rows(path: Path, *, job: str | None) -> DatabaseRows:
    try:
        with path.open("rb") as stream:
            head = stream.read(len(SQLITE_MARK))
        if not SQLITE_MARK.startswith(head):
            raise UserError(f"{path} is not a run's database", hint=HINT)
        if head == SQLITE_MARK or path.with_name(path.name + "-wal").exists():
            return read_database(path, job=job)
    except FileNotFoundError as problem:
        raise NotFound(f"there is no file {path}", hint=HINT) from problem
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint=HINT) from problem
    note = "the file is empty" if not head else "the file was cut off in its first bytes"
    return DatabaseRows(job_id=job, jobs=(), tables=(), notes=(note,), is_damaged=True)


def _log_names(job: str | None) -> tuple[str, ...]:
    """Return where a log may be, as seen from the database; ai-toolkit keeps it in its output folder."""
    of_job = () if job is None or "/" in job else (f"output/{job}/log.txt", f"../output/{job}/log.txt")
    return (*_LOG_NAMES, *of_job)


def _beside(database: Path, names: tuple[str, ...]) -> Path | None:
    return next((place for name in names if (place := database.parent / name).is_file()), None)


def _log_text(path: Path, notes: list[str]) -> str:
    try:
        with path.open("rb") as stream:
            size = stream.seek(0, 2)
            stream.seek(0)
            if size <= _MOST_LOG_BYTES:
                return stream.read().decode(errors="replace")
            head = stream.read(_LOG_HEAD_BYTES)
            stream.seek(size - (_MOST_LOG_BYTES - _LOG_HEAD_BYTES))
            notes.append(f"only the first and last {_MOST_LOG_BYTES >> 20} MiB of the log were read")
            return (head + b"\n" + stream.read()).decode(errors="replace")
    except FileNotFoundError as problem:
        raise NotFound(f"there is no log {path}", hint="give the file that the trainer printed to") from problem
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint="give another log") from problem


def _config(path: Path | None, notes: list[str], *, is_given: bool) -> TrainerConfig | None:
    """Read the trainer's config. One that was only found beside the database is not required to be one."""
    if path is None:
        return None
    try:
        with path.open("rb") as stream:
            text = stream.read(_MOST_CONFIG_BYTES).decode(errors="replace")
        found = read_config(text, name=path.name)
    except FileNotFoundError as problem:
        raise NotFound(f"there is no config {path}", hint="give the trainer's config, YAML or TOML") from problem
    except OSError as problem:
        raise UserError(f"{path} cannot be read: {problem.strerror}", hint="give the trainer's config") from problem
    except UserError as problem:
        if is_given:
            raise UserError(f"{path}: {problem}", hint=problem.hint or "give the trainer's config") from problem
        notes.append(f"the config {path.name} could not be read: {problem}")
        return None
    if found is None:
        notes.append(f"{path.name} is not a config of ai-toolkit or kohya, so advice names no current values")
    return found
