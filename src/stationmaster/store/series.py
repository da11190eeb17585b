"""Measured values of trainings, in compressed blocks of rows: one table, job and attempt each.

    store.series.contents(job_id)                                     # which tables there are, and how large
    store.series.read(job_id, "StepMetric", columns=("step", "loss"))   # {attempt: Table}
    store.series.tables(job_id)                                       # {attempt: [Table, …]}

Rows arrive in small blocks with the job's other writes; `merge` makes large ones of them. Like the log, a job's values
have a size limit: rows beyond it are counted and dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.event_log import get_logger
from stationmaster.series.blocks import Block, merged, replaced, runs_to_merge
from stationmaster.series.codec import NotATable
from stationmaster.series.schema import TABLES
from stationmaster.series.table import Table, joined
from stationmaster.series.thinning import thinned
from stationmaster.store.bulk import append_rows, read_rows
from stationmaster.store.codec import Row
from stationmaster.store.engine import Database
from stationmaster.store.tables import jobs, series_blocks

log = get_logger("stationmaster.store")

_MANY_BLOCKS = 16  # of one table and attempt: as many are worth a merge
_MEASURED = ("attempt", "name", "first_id", "last_id", "first_at", "last_at", "row_count")
_IN_ORDER = (series_blocks.c.attempt, series_blocks.c.name, series_blocks.c.seq)
_OF_JOB = sa.select(series_blocks).where(series_blocks.c.job_id == sa.bindparam("b_job")).order_by(*_IN_ORDER)
_OF_ATTEMPTS = _OF_JOB.where(series_blocks.c.attempt.in_(sa.bindparam("b_attempts", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesContents:
    """What is stored of one table in one attempt."""

    attempt: int
    name: str
    row_count: int
    size: int
    first_at: float | None
    last_at: float | None
    thinned: bool


class Series:
    def __init__(self, database: Database) -> None:
        self._database = database

    def contents(self, job_id: str) -> list[SeriesContents]:
        """The tables of a job that have rows, by attempt and name."""
        block = series_blocks.c
        query = (
            sa.select(
                block.attempt,
                block.name,
                sa.func.sum(block.row_count).label("row_count"),
                sa.func.sum(block.size).label("size"),
                sa.func.min(block.first_at).label("first_at"),
                sa.func.max(block.last_at).label("last_at"),
                sa.func.max(sa.cast(block.thinned, sa.Integer)).label("thinned"),
            )
            .where(block.job_id == job_id)
            .group_by(block.attempt, block.name)
            .order_by(block.attempt, block.name)
        )
        with self._database.read() as connection:
            rows = connection.execute(query).mappings().all()
        return [
            SeriesContents(
                **{
                    **row,
                    "row_count": int(row["row_count"]),
                    "size": int(row["size"]),
                    "thinned": bool(row["thinned"]),
                }
            )
            for row in rows
        ]

    def version(self, job_id: str) -> tuple[object, ...]:
        """Values that change whenever rows arrive, are imported, merged, thinned or dropped."""
        block = series_blocks.c
        query = sa.select(
            sa.func.count(),
            sa.func.max(block.seq),
            sa.func.sum(block.row_count),
            sa.func.sum(block.size),
            sa.func.max(block.last_at),
            sa.func.sum(sa.cast(block.thinned, sa.Integer)),
        ).where(block.job_id == job_id)
        dropped = sa.select(jobs.c.series_dropped).where(jobs.c.id == job_id)
        with self._database.read() as connection:
            seen = connection.execute(query).one()
            return (*(None if value is None else float(value) for value in seen), connection.execute(dropped).scalar())

    def read(
        self,
        job_id: str,
        name: str,
        *,
        columns: Collection[str] | None = None,
        attempt: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> dict[int, Table]:
        """The rows of one table by attempt, in the order they arrived; attempts without any are left out.

        `start` and `end` are times: blocks without any row between them are not read. Neighbouring rows outside come
        along, since blocks are read whole.
        """
        blocks = self.blocks(job_id, name, attempt=attempt, start=start, end=end)
        return dict(_tables(job_id, blocks, columns))

    def tables(self, job_id: str, *, attempts: Collection[int] | None = None) -> dict[int, list[Table]]:
        """All tables of a job by attempt, those of `attempts` alone if given, in one query; rows as in `read`."""
        query, values = (_OF_JOB, {}) if attempts is None else (_OF_ATTEMPTS, {"b_attempts": list(attempts)})
        with self._database.read() as connection:
            rows = read_rows(connection, query, {"b_job": job_id, **values})
            blocks = [_block(row) for row in rows if row["name"] in TABLES]
        found: dict[int, list[Table]] = {}
        for attempt, table in _tables(job_id, blocks):
            found.setdefault(attempt, []).append(table)
        return found

    def blocks(
        self,
        job_id: str,
        name: str,
        *,
        attempt: int | None = None,
        start: float | None = None,
        end: float | None = None,
    ) -> list[Block]:
        """The blocks of one table in the order their rows arrived; arguments as in `read`."""
        block = series_blocks.c
        query = sa.select(series_blocks).where(block.job_id == job_id, block.name == name).order_by(*_IN_ORDER)
        if attempt is not None:
            query = query.where(block.attempt == attempt)
        if start is not None:
            query = query.where(sa.or_(block.last_at.is_(None), block.last_at >= start))
        if end is not None:
            query = query.where(sa.or_(block.first_at.is_(None), block.first_at <= end))
        with self._database.read() as connection:
            return [_block(row) for row in connection.execute(query).mappings()]

    def dropped_rows(self, job_id: str) -> int:
        """Number of rows that were dropped because the job's values had reached their size limit."""
        query = sa.select(jobs.c.series_dropped).where(jobs.c.id == job_id)
        with self._database.read() as connection:
            return int(connection.execute(query).scalar() or 0)

    def jobs_to_merge(self, *, limit: int) -> list[str]:
        """Jobs with many blocks, those with the most first."""
        block = series_blocks.c
        of_table = sa.select(block.job_id, sa.func.count().label("blocks")).group_by(
            block.job_id, block.name, block.attempt
        )
        many = of_table.having(sa.func.count() >= _MANY_BLOCKS).subquery()
        most = sa.func.max(many.c.blocks)
        query = sa.select(many.c.job_id).group_by(many.c.job_id).order_by(most.desc()).limit(limit)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def jobs_to_thin(self, *, ended_before: float, limit: int) -> list[str]:
        """Jobs that ended before this time and have values that were not thinned."""
        whole = sa.select(sa.literal(1)).where(
            series_blocks.c.job_id == jobs.c.id, series_blocks.c.thinned.is_(sa.false())
        )
        return self._ended_jobs(whole, ended_before=ended_before, limit=limit)

    def jobs_to_clear(self, *, ended_before: float, limit: int) -> list[str]:
        """Jobs that ended before this time and have values."""
        some = sa.select(sa.literal(1)).where(series_blocks.c.job_id == jobs.c.id)
        return self._ended_jobs(some, ended_before=ended_before, limit=limit)

    def _ended_jobs(self, having: sa.Select[Any], *, ended_before: float, limit: int) -> list[str]:
        query = (
            sa.select(jobs.c.id)
            .where(jobs.c.ended_at < ended_before, having.exists())
            .order_by(jobs.c.ended_at)
            .limit(limit)
        )
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def merge(self, job_id: str) -> int:
        """Make large blocks of a job's small ones; return how many blocks there are fewer.

        May be interrupted or run twice at once: each merge is a transaction that takes place only if its blocks are as
        they were read. Rows that arrive meanwhile are in blocks of their own.
        """
        is_complete = self._has_ended(job_id)
        fewer = 0
        for heads in self._heads(job_id):
            for run in runs_to_merge([head["row_count"] for head in heads], is_complete=is_complete):
                fewer += self._merge_run(job_id, [heads[place]["seq"] for place in run])
        return fewer

    def thin(self, job_id: str) -> None:
        """Reduce the values of an ended job to what a chart shows of them. Repeating it changes nothing."""
        for heads in self._heads(job_id):
            seqs = [head["seq"] for head in heads if not head["thinned"]]
            if seqs:
                self._thin_blocks(job_id, seqs)

    def clear(self, job_id: str) -> None:
        """Delete the values of a job."""
        with self._database.write() as connection:
            connection.execute(series_blocks.delete().where(series_blocks.c.job_id == job_id))

    def import_blocks(self, job_id: str, blocks: Sequence[Block]) -> None:
        """Store values that were imported for a job, in place of those imported for it before."""
        attempts = {block.attempt for block in blocks}
        before = sa.and_(series_blocks.c.job_id == job_id, series_blocks.c.attempt.in_(attempts))
        added = sum(len(block.data) for block in blocks)
        with self._database.write() as connection:
            size = sa.select(sa.func.coalesce(sa.func.sum(series_blocks.c.size), 0)).where(before)
            removed = int(connection.execute(size).scalar_one())
            last = connection.execute(sa.select(sa.func.max(series_blocks.c.seq)).where(before)).scalar()
            append(connection, [{**_row(job_id, block), "thinned": False} for block in blocks])
            if last is not None:  # after the new ones are there, so that no number is used twice: see `version`
                connection.execute(series_blocks.delete().where(before, series_blocks.c.seq <= last))
            connection.execute(
                jobs.update().where(jobs.c.id == job_id).values(series_bytes=jobs.c.series_bytes + added - removed)
            )

    def add_of_machine(self, subject: str, blocks: Sequence[Block], *, cap_bytes: int) -> bool:
        """Store values of a machine that is watched without a job; False, and nothing stored, beyond the limit.

        `subject` is `<provider>/<id>`, which is no job's id.
        """
        size = sa.select(sa.func.coalesce(sa.func.sum(series_blocks.c.size), 0))
        with self._database.write() as connection:
            if int(connection.execute(size.where(series_blocks.c.job_id == subject)).scalar_one()) >= cap_bytes:
                return False
            append(connection, [{**_row(subject, block), "thinned": False} for block in blocks])
        return True

    def machines_to_thin(self, *, last_before: float, limit: int) -> list[str]:
        """Machines without a job whose last value is from before this time and whose values were not thinned."""
        return self._machines(last_before=last_before, limit=limit, is_whole=True)

    def machines_to_clear(self, *, last_before: float, limit: int) -> list[str]:
        """Machines without a job whose last value is from before this time."""
        return self._machines(last_before=last_before, limit=limit, is_whole=False)

    def _machines(self, *, last_before: float, limit: int, is_whole: bool) -> list[str]:
        block = series_blocks.c
        query = sa.select(block.job_id).where(block.job_id.contains("/")).group_by(block.job_id).limit(limit)
        query = query.having(sa.func.max(block.last_at) < last_before)
        if is_whole:
            query = query.having(sa.func.min(sa.cast(block.thinned, sa.Integer)) == 0)
        with self._database.read() as connection:
            return list(connection.execute(query).scalars())

    def _has_ended(self, job_id: str) -> bool:
        query = sa.select(jobs.c.ended_at).where(jobs.c.id == job_id)
        with self._database.read() as connection:
            return connection.execute(query).scalar() is not None

    def _heads(self, job_id: str) -> list[list[sa.RowMapping]]:
        """The blocks of a job without their data, a list for each attempt and table."""
        block = series_blocks.c
        query = sa.select(block.attempt, block.name, block.seq, block.row_count, block.thinned)
        with self._database.read() as connection:
            rows = connection.execute(query.where(block.job_id == job_id).order_by(*_IN_ORDER)).mappings().all()
        return [list(group) for _, group in groupby(rows, key=lambda row: (row["attempt"], row["name"]))]

    def _merge_run(self, job_id: str, seqs: Sequence[int]) -> int:
        blocks = self._several(seqs)
        try:
            whole = merged(blocks)
        except NotATable as problem:
            log.warning("series.unreadable", job=job_id, problem=str(problem))
            return 0
        return len(seqs) - 1 if self.replace_blocks(job_id, seqs, blocks, whole, is_thinned=False) else 0

    def _thin_blocks(self, job_id: str, seqs: Sequence[int]) -> None:
        blocks = self._several(seqs)
        try:
            whole = replaced(blocks, thinned(joined([block.table() for block in blocks])))
        except NotATable as problem:
            log.warning("series.unreadable", job=job_id, problem=str(problem))
            with self._database.write() as connection:
                connection.execute(series_blocks.update().where(series_blocks.c.seq.in_(seqs)).values(thinned=True))
            return
        self.replace_blocks(job_id, seqs, blocks, whole, is_thinned=True)

    def _several(self, seqs: Sequence[int]) -> list[Block]:
        query = sa.select(series_blocks).where(series_blocks.c.seq.in_(seqs)).order_by(series_blocks.c.seq)
        with self._database.read() as connection:
            return [_block(row) for row in connection.execute(query).mappings()]

    def replace_blocks(
        self, job_id: str, seqs: Sequence[int], blocks: Sequence[Block], by: Block, *, is_thinned: bool
    ) -> bool:
        """Replace blocks by one in the place of the first, so that later rows stay behind it; False if one has changed.

        The blocks are locked before the job, as when a job is removed: otherwise the two could deadlock.
        """
        saved = sum(len(block.data) for block in blocks) - len(by.data)
        block = series_blocks.c
        as_read = sa.tuple_(block.seq, block.row_count).in_(
            [(seq, each.row_count) for seq, each in zip(seqs, blocks, strict=True)]
        )
        with self._database.write() as connection:
            there = connection.execute(
                sa.select(block.seq).where(as_read, block.thinned.is_(sa.false())).with_for_update()
            )
            if len(there.all()) != len(seqs):
                return False
            values = {**_row(job_id, by), "thinned": is_thinned}
            connection.execute(series_blocks.update().where(block.seq == seqs[0]).values(values))
            connection.execute(series_blocks.delete().where(block.seq.in_(seqs[1:])))
            connection.execute(
                jobs.update().where(jobs.c.id == job_id).values(series_bytes=jobs.c.series_bytes - saved)
            )
        return True


def rows(job_id: str, blocks: Sequence[Block], *, series_bytes: int, cap_bytes: int) -> list[dict[str, Any]]:
    """Rows for the blocks; none if the job had reached its limit before them.

    `series_bytes` is the size of the job's values including these blocks.
    """
    before = series_bytes - sum(len(block.data) for block in blocks)
    return [{**_row(job_id, block), "thinned": False} for block in blocks] if before < cap_bytes else []


def append(connection: Connection, made: Sequence[dict[str, Any]]) -> None:
    append_rows(connection, series_blocks, made)


def _row(job_id: str, block: Block) -> dict[str, Any]:
    measured = {name: getattr(block, name) for name in _MEASURED}
    return {"job_id": job_id, **measured, "size": len(block.data), "data": block.data}


def _tables(
    job_id: str, blocks: Sequence[Block], columns: Collection[str] | None = None
) -> Iterator[tuple[int, Table]]:
    """Each attempt's tables, joined from blocks in their order; tables without a readable block are left out."""
    for (attempt, name), group in groupby(blocks, key=lambda block: (block.attempt, block.name)):
        readable = []
        for block in group:
            try:
                readable.append(block.table(columns))
            except NotATable as problem:  # by a newer version, or damaged: the others can still be read
                log.warning("series.unreadable", job=job_id, table=name, problem=str(problem))
        if readable:
            yield attempt, joined(readable)


def _block(row: Row) -> Block:
    return Block(**{name: row[name] for name in _MEASURED}, data=bytes(row["data"]))
