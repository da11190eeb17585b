"""Log chunks: compressed, by byte offset, limited per job so that a flooding trainer cannot fill the disk."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from stationmaster.model import LogChunk
from stationmaster.store.bulk import append_rows, read_rows
from stationmaster.store.engine import Database
from stationmaster.store.tables import log_chunks

_PAGE_BYTES = 8 << 20  # a piece may have nearly a megabyte
_PAGE_PIECES = 500


class Logs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def of_job(
        self, job_id: str, *, after_seq: int = 0, limit: int = _PAGE_PIECES, most_bytes: int = _PAGE_BYTES
    ) -> list[tuple[int, LogChunk]]:
        """(sequence number, chunk) pairs in the order they were written: at least one if there are any, then no more
        than `limit` pairs and `most_bytes`.
        """
        return self._page(job_id, after_seq=after_seq, limit=limit, most_bytes=most_bytes)[0]

    def latest(self, job_id: str, *, limit: int = 100, most_bytes: int = _PAGE_BYTES) -> list[tuple[int, LogChunk]]:
        """The last (sequence number, chunk) pairs in the order they were written, limited as in `of_job`."""
        with self._database.read() as connection:
            newest = read_rows(connection, _SIZES_BACKWARDS, {"b_job": job_id, "b_limit": limit})
        first = _last_within(newest, most_bytes)
        return [] if first is None else self.of_job(job_id, after_seq=first - 1, limit=limit, most_bytes=most_bytes)

    def chunks(self, job_id: str, *, attempt: int) -> Iterator[LogChunk]:
        """The log of one attempt, piece by piece, in the order it was written."""
        for pieces in self._pages(job_id):
            yield from (chunk for _, chunk in pieces if chunk.attempt == attempt)

    def text(self, job_id: str) -> Iterator[bytes]:
        """The whole log of a job, piece by piece."""
        for pieces in self._pages(job_id):
            yield from (chunk.data for _, chunk in pieces)

    def _pages(self, job_id: str) -> Iterator[list[tuple[int, LogChunk]]]:
        after, is_last = 0, False
        while not is_last:
            pieces, is_last = self._page(job_id, after_seq=after, limit=_PAGE_PIECES, most_bytes=_PAGE_BYTES)
            after = pieces[-1][0] if pieces else after
            yield pieces

    def _page(
        self, job_id: str, *, after_seq: int, limit: int, most_bytes: int
    ) -> tuple[list[tuple[int, LogChunk]], bool]:
        """One page as in `of_job`, and whether it reaches to the end of what was stored when it was read."""
        asked = {"b_job": job_id, "b_after": after_seq}
        with self._database.read() as connection:
            sizes = read_rows(connection, _SIZES, {**asked, "b_limit": limit})
            last = _last_within(sizes, most_bytes)
            if last is None:
                return [], True
            rows = read_rows(connection, _PIECES, {**asked, "b_last": last})
        pieces = [(row["seq"], chunk_from_row(row)) for row in rows]
        return pieces, len(sizes) < limit and last == sizes[-1]["seq"]


_OF_JOB = log_chunks.c.job_id == sa.bindparam("b_job")
_LATER = log_chunks.c.seq > sa.bindparam("b_after", type_=sa.BigInteger)
_MOST = sa.bindparam("b_limit", type_=sa.Integer)
_SEQ_AND_SIZE = sa.select(log_chunks.c.seq, log_chunks.c.size).where(_OF_JOB).limit(_MOST)
_SIZES = _SEQ_AND_SIZE.where(_LATER).order_by(log_chunks.c.seq)
_SIZES_BACKWARDS = _SEQ_AND_SIZE.order_by(log_chunks.c.seq.desc())
_PIECES = (
    sa.select(log_chunks)
    .where(_OF_JOB, _LATER, log_chunks.c.seq <= sa.bindparam("b_last", type_=sa.BigInteger))
    .order_by(log_chunks.c.seq)
)


def _last_within(sizes: Sequence[Mapping[str, Any]], most_bytes: int) -> int | None:
    """The last piece, in the order of `sizes`, up to which all fit into `most_bytes`; the first in any case."""
    last, room = None, most_bytes
    for row in sizes:
        room -= row["size"]
        if last is not None and room < 0:
            break
        last = row["seq"]
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


def chunk_from_row(row: Mapping[str, Any]) -> LogChunk:
    return LogChunk(
        attempt=row["attempt"],
        stream=row["stream"],
        start=row["start"],
        end=row["end"],
        data=zlib.decompress(row["data"]),
    )
