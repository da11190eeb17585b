"""Events: what happened to a job."""

from __future__ import annotations

from typing import Self

from pydantic import ConfigDict, Field

from stationmaster.model import Event
from stationmaster.station.wire.document import Document, Instant
from stationmaster.station.wire.plain import plain, unplain


class EventDocument(Document):
    """Something that happened to a job; the kind decides which further fields there are."""

    model_config = ConfigDict(extra="allow")

    version: int
    """The job's version after it; versions have no gaps."""
    at: Instant
    kind: str = Field(examples=["state"])
    seq: int = 0
    """Its number among the events of all jobs."""
    job: str = ""
    """The id of the job."""

    @classmethod
    def of(cls, event: Event) -> Self:
        return cls(
            **{
                "version": event.job_version,
                "at": event.at,
                "kind": event.kind,
                "seq": event.seq,
                "job": event.job_id,
                **plain(event.payload),
            }
        )

    def value(self) -> Event:
        return Event(
            seq=self.seq,
            job_id=self.job,
            job_version=self.version,
            kind=self.kind,
            payload=unplain(self.model_extra or {}),
            at=self.at,
        )
