"""Proposals: stored until they are submitted, withdrawn or expired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, RowMapping

from stationmaster.errors import NotFound
from stationmaster.model import JobSpec
from stationmaster.store.codec import spec_from_text, spec_to_text
from stationmaster.store.engine import Database
from stationmaster.store.jobs import Submitted, enqueue
from stationmaster.store.json_text import dumps, loads
from stationmaster.store.submissions import mark_submitted
from stationmaster.store.tables import proposals


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredProposal:
    """A job's whole specification before it is submitted; `terms` is what the user was shown, as plain data."""

    id: str
    spec: JobSpec
    terms: Mapping[str, Any]
    created_at: float
    expires_at: float


class Proposals:
    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, proposal_id: str, spec: JobSpec, terms: Mapping[str, Any], *, seconds: float) -> StoredProposal:
        """Store a proposal that expires after `seconds`."""
        with self._database.write() as connection:
            now = self._now(connection)
            kept = StoredProposal(id=proposal_id, spec=spec, terms=terms, created_at=now, expires_at=now + seconds)
            connection.execute(proposals.insert().values(**_row(kept)))
        return kept

    def get(self, proposal_id: str) -> StoredProposal:
        """The proposal. Raises NotFound if it does not exist or has expired."""
        with self._database.read() as connection:
            return self._get(connection, proposal_id, now=self._now(connection))

    def submit(self, proposal_id: str, *, spec: JobSpec | None = None) -> Submitted:
        """Queue the job exactly as proposed; repeating it changes nothing. Raises NotFound as `get` does.

        `spec` is the proposal's, with another of the offers that were proposed.
        """
        with self._database.write() as connection:
            now = self._now(connection)
            proposed = self._get(connection, proposal_id, now=now).spec
            submitted = enqueue(connection, spec or proposed, now=now)
            mark_submitted(connection, submitted.job.id, now=now)
            return submitted

    def remove(self, proposal_id: str) -> None:
        with self._database.write() as connection:
            connection.execute(proposals.delete().where(proposals.c.id == proposal_id))

    def remove_expired(self) -> int:
        """Delete expired proposals; return how many there were."""
        with self._database.write() as connection:
            return connection.execute(proposals.delete().where(proposals.c.expires_at < self._database.now)).rowcount

    def wants_dataset(self, sha256: str) -> bool:
        """Whether a proposal that can still be submitted uses this packed dataset."""
        open_one = sa.select(proposals.c.id).where(
            proposals.c.dataset_sha256 == sha256, proposals.c.expires_at >= self._database.now
        )
        with self._database.read() as connection:
            return connection.execute(open_one.limit(1)).first() is not None

    def _now(self, connection: Connection) -> float:
        return float(connection.execute(sa.select(self._database.now)).scalar_one())

    def _get(self, connection: Connection, proposal_id: str, *, now: float) -> StoredProposal:
        query = sa.select(proposals).where(proposals.c.id == proposal_id)
        row = connection.execute(query).mappings().one_or_none()
        if row is None:
            raise NotFound(f"there is no proposal {proposal_id}", hint="propose it again")
        if row["expires_at"] < now:
            raise NotFound(
                f"the proposal {proposal_id} has expired", hint="propose it again: prices may have changed meanwhile"
            )
        return _from_row(row)


def _row(kept: StoredProposal) -> dict[str, Any]:
    return {
        "id": kept.id,
        "owner": kept.spec.owner,
        "job_id": kept.spec.id,
        "created_at": kept.created_at,
        "expires_at": kept.expires_at,
        "dataset_sha256": kept.spec.dataset.sha256,
        "spec": spec_to_text(kept.spec),
        "terms": dumps(kept.terms),
    }


def _from_row(row: RowMapping) -> StoredProposal:
    return StoredProposal(
        id=row["id"],
        spec=spec_from_text(row["spec"]),
        terms=loads(row["terms"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
    )
