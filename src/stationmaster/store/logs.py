"""Log chunks: compressed, by byte offset, limited per job so that a flooding trainer cannot fill the disk."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import LogChunk
from stationmaster.store.bulk import append_rows
from stationmaster.store.engine import Database
from stationmaster.store.tables import log_chunks

_PAGE_BYTES = 8 << 20  # a piece may have nearly a megabyte


class Logs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(
        self, job_id: str, *, after_seq: int = 0, limit: int = 500, most_bytes: int = _PAGE_BYTES
    ) -> list[tuple[int, LogChunk]]:
        """(sequence number, chunk) pairs in the order they were written: at least one if there are any, then no more
        than `limit` pairs and `most_bytes`.
        """
        sizes = _sizes(job_id).where(log_chunks.c.seq > after_seq).order_by(log_chunks.c.seq).limit(limit)
        with self._database.read() as connection:
            last = _last_within(connection, sizes, most_bytes)
            if last is None:
                return []
            query = (
                sa.select(log_chunks)
                .where(log_chunks.c.job_id == job_id, log_chunks.c.seq > after_seq, log_chunks.c.seq <= last)
                .order_by(log_chunks.c.seq)
            )
            return [(row["seq"], chunk_from_row(row)) for row in connection.execute(query).mappings()]

    def latest(self, job_id: str, *, limit: int = 100, most_bytes: int = _PAGE_BYTES) -> list[tuple[int, LogChunk]]:
        """The last (sequence number, chunk) pairs in the order they were written, limited as in `of_job`."""
        sizes = _sizes(job_id).order_by(log_chunks.c.seq.desc()).limit(limit)
        with self._database.read() as connection:
            first = _last_within(connection, sizes, most_bytes)
        return [] if first is None else self.of_job(job_id, after_seq=first - 1, limit=limit, most_bytes=most_bytes)

    def chunks(self, job_id: str, *, attempt: int) -> Iterator[LogChunk]:
        """The log of one attempt, piece by piece, in the order it was written."""
        after = 0
        while pieces := self.of_job(job_id, after_seq=after):
            yield from (chunk for _, chunk in pieces if chunk.attempt == attempt)
            after = pieces[-1][0]

    def text(self, job_id: str) -> Iterator[bytes]:
        """The whole log of a job, piece by piece."""
        after = 0
        while pieces := self.of_job(job_id, after_seq=after):
            for after, chunk in pieces:  # noqa: B007 (the last sequence number is where the next page begins)
                yield chunk.data


def _sizes(job_id: str) -> sa.Select[tuple[int, int]]:
    return sa.select(log_chunks.c.seq, log_chunks.c.size).where(log_chunks.c.job_id == job_id)


def _last_within(connection: Connection, sizes: sa.Select[tuple[int, int]], most_bytes: int) -> int | None:
    """The last piece, in the order of the query, up to which all fit into `most_bytes`; the first in any case."""
    last, room = None, most_bytes
    for row in connection.execute(sizes):
        room -= row.size
        if last is not None and room < 0:
            break
        last = row.seq
    return last


def rows(
    job_id: str, chunks: Sequence[LogChunk], *, log_bytes: int, cap_bytes: int, now: float
) -> list[dict[str, object]]:
    """Rows for the chunks until the job's log reaches its limit; the last one gets a line that says so.

    `log_bytes` is the length of the job's log including these chunks.
    """
    used = log_bytes - sum(len(chunk.data) for chunk in chunks)
    found = []
    for chunk in chunks:
        if used >= cap_bytes:
            break
        used += len(chunk.data)
        data = chunk.data
        if used >= cap_bytes:
            data += f"\n[stationmaster] the log exceeds {cap_bytes} bytes; the rest is not stored here\n".encode()
        found.append(_row(job_id, chunk, data, now))
    return found


def append(connection: Connection, made: Sequence[dict[str, object]]) -> None:
    append_rows(connection, log_chunks, made)


def _row(job_id: str, chunk: LogChunk, data: bytes, now: float) -> dict[str, object]:
    return {
        "job_id": job_id,
        "attempt": chunk.attempt,
        "stream": chunk.stream,
        "start": chunk.start,
        "end": chunk.end,
        "size": len(chunk.data),
        "data": zlib.compress(data, 1),
        "at": now,
    }


def chunk_from_row(row: sa.RowMapping) -> LogChunk:
    return LogChunk(
        attempt=row["attempt"],
        stream=row["stream"],
        start=row["start"],
        end=row["end"],
        data=zlib.decompress(row["data"]),
    )
