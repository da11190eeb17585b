"""`stationmaster store`: the database of this home; look at it, check it, back it up."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stationmaster.cli.context import JsonOption, given_path, local_station_of, print_document, print_lines
from stationmaster.cli.help_pages import CommandGroup
from stationmaster.cli.speaking import extra, hint, is_quiet
from stationmaster.errors import StoreError
from stationmaster.times import time_text

if TYPE_CHECKING:
    from stationmaster.cli.answers import ShownStore
    from stationmaster.station.local.store_upkeep import StoreFacts  # loads SQLAlchemy

app = CommandGroup(help="Show, check and back up the store.")


@app.command("show")
def show(context: typer.Context, as_json: JsonOption = False) -> None:
    """Show where the store is, its size and what is in it.

    Changes nothing, and starts no worker.

    Examples:

      stationmaster store show

      stationmaster store show --json
    """
    with local_station_of(context, wake=False) as station:
        facts = station.store_upkeep.facts()
    if as_json:
        return print_document(_document(facts))
    if is_quiet():
        return print_lines([facts.place])
    return print_lines(_lines(facts))


@app.command("check")
def check(context: typer.Context, as_json: JsonOption = False) -> None:
    """Check that the store is whole.

    Looks for damaged pages (SQLite), missing tables and columns, broken references, and money that does not add up.
    Changes nothing. Exit code 10 if something is wrong.

    Examples:

      stationmaster store check

      stationmaster store check --json
    """
    with local_station_of(context, wake=False) as station:
        store = station.store_upkeep
        problems = store.problems()
    if as_json:
        from stationmaster.cli.answers import CheckedStore

        found = CheckedStore(kind=store.kind, place=store.place, sound=not problems, problems=tuple(problems))
        print_document(found)
    else:
        print_lines(problems)
    if problems:
        raise StoreError(
            f"the store is not sound: {len(problems)} problem(s)",
            hint="restore it from a backup; if it is only not migrated, any command that uses it does that",
        )
    if not as_json:
        extra(f"the store is sound: {store.kind}, {store.place}")


@app.command("backup")
def backup(
    context: typer.Context,
    target: Annotated[Path, typer.Argument(metavar="FILE", parser=given_path, help="File to write.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Copy the store to a file, also while it is in use.

    For SQLite. The copy has the moment at which it began, and only you may read it. Models and samples are not in the
    store: back up the folder jobs of the home, too. For PostgreSQL use pg_dump.

    Examples:

      stationmaster store backup ~/backups/stationmaster.db

      stationmaster store backup /mnt/nightly.db --force --json
    """
    with local_station_of(context, wake=False) as station:
        size = station.store_upkeep.back_up(target, overwrite=force)
    if as_json:
        from stationmaster.cli.answers import WrittenBackup

        return print_document(WrittenBackup(file=str(target), bytes=size))
    if is_quiet():
        return print_lines([str(target)])
    print_lines([f"{target}: {_size(size)}"])
    return hint("to restore it: stop all workers, copy it to stationmaster.db in the home, remove its -wal and -shm")


def _document(facts: StoreFacts) -> ShownStore:
    from stationmaster.cli.answers import ShownStore, StoreCounts

    return ShownStore(
        kind=facts.kind,
        place=facts.place,
        bytes=facts.bytes,
        schema_version=facts.schema,
        newest_schema_version=facts.newest_schema,
        installation=facts.installation,
        created_at=facts.created_at,
        counts=StoreCounts(**facts.counts),
    )


def _lines(facts: StoreFacts) -> Iterator[str]:
    is_newest = facts.schema == facts.newest_schema
    state = "the newest" if is_newest else f"the next command migrates it to {facts.newest_schema}"
    if facts.schema is not None and facts.schema > facts.newest_schema:
        state = f"written by a newer Stationmaster; this one has {facts.newest_schema}"
    yield f"kind          {facts.kind}"
    yield f"place         {facts.place}"
    yield f"size          {_size(facts.bytes)}"
    yield f"schema        {facts.schema or 'none'}, {state}"
    yield f"installation  {facts.installation or 'none yet'}"
    created = "not known" if facts.created_at is None else time_text(facts.created_at, now=time.time())
    yield f"created       {created}"
    for name, count in facts.counts.items():
        yield f"{name.replace('_', ' '):<13} {count:,}"


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB" if size_bytes >= 100_000 else f"{size_bytes / 1e3:,.1f} kB"
