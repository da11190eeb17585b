"""`stationmaster jobs prune`: delete jobs that ended long ago."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import JsonOption, named, print_document, print_lines, station_of
from stationmaster.cli.speaking import extra, hint, is_quiet, note
from stationmaster.cli.table import Column, print_table
from stationmaster.errors import NotFound, UserError
from stationmaster.times import time_text

if TYPE_CHECKING:
    from stationmaster.station.pruning import OldJob  # imported by the command: `jobs` does not need it

_COLUMNS = (
    Column("ID"),
    Column("NAME", shrinks_to=8),
    Column("OUTCOME", leaves=1),
    Column("ENDED"),
    Column("SIZE", right=True),
)


def prune(
    context: typer.Context,
    older_than: Annotated[
        str, typer.Option(metavar="AGE", help="Delete jobs that ended longer ago, such as 30d or 12h.")
    ],
    force: Annotated[bool, typer.Option("--force", "--yes", "-y", help="Delete them (default: dry run).")] = False,
    with_models: Annotated[
        bool, typer.Option("--with-models", help="Also jobs whose model is stored nowhere else; it is lost.")
    ] = False,
    owner: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only jobs of this user.", callback=named("user", "users list")),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Delete old ended jobs, with their local files.

    Dry run unless you pass --force. Jobs that have not ended, whose machine is not confirmed gone or whose model is
    stored nowhere else are kept; so are all costs.

    Examples:

      stationmaster jobs prune --older-than 30d

      stationmaster jobs prune --older-than 90d --with-models --force
    """
    from stationmaster.station.pruning import old_jobs

    age = _age(older_than)
    with station_of(context) as station:
        found = old_jobs(station.jobs, older_than_seconds=age, with_models=with_models, owner=owner)
        old = [job for job in found if job.kept is None]
        for job in old if force else ():
            with suppress(NotFound):  # deleted meanwhile
                station.jobs.remove(job.id)
        now = station.now()
    if as_json:
        from stationmaster.cli.answers import KeptJob, PrunedJob, PrunedJobs

        return print_document(
            PrunedJobs(
                removed=force,
                bytes=sum(job.bytes for job in old),
                jobs=tuple(PrunedJob(id=job.id, name=job.name, ended_at=job.ended_at, bytes=job.bytes) for job in old),
                kept=tuple(KeptJob(id=job.id, why=job.kept) for job in found if job.kept is not None),
            )
        )
    if is_quiet():
        return print_lines(job.id for job in old)
    return _show(found, now=now, removed=force)


def _show(found: Sequence[OldJob], *, now: float, removed: bool) -> None:
    old = [job for job in found if job.kept is None]
    if old:
        print_table(_COLUMNS, [_row(job, now=now) for job in old])
    kept = [job for job in found if job.kept is not None]
    for why in sorted({job.kept for job in kept if job.kept is not None}):
        note(f"kept {sum(job.kept == why for job in kept)} job(s): {why}")
    size = _size(sum(job.bytes for job in old))
    if not old:
        print_lines(["no job to delete"])
    elif removed:
        print_lines([f"deleted {len(old)} job(s), {size} of files"])
    else:
        extra(f"{len(old)} job(s) with {size} of files would be deleted: pass --force")
    if any("model" in (job.kept or "") for job in kept):
        hint("--with-models deletes those, too; `stationmaster models publish` stores a model elsewhere first")


def _row(job: OldJob, *, now: float) -> Sequence[str]:
    return job.id, job.name, job.shown, time_text(job.ended_at, now=now), _size(job.bytes)


def _age(text: str) -> float:
    from stationmaster.durations import parse_duration

    try:
        return parse_duration(text)
    except ValueError as problem:
        raise UserError(f"--older-than: {problem}", hint="for example 30d or 12h") from None


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"
