"""Events: what happened to a job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from pydantic import ConfigDict, Field

from stationmaster.event_sentences import sentence
from stationmaster.model import Event
from stationmaster.station.wire.document import Document, Instant
from stationmaster.station.wire.plain import plain, unplain


class EventDocument(Document):
    """Something that happened to a job; the kind decides which further fields there are."""

    model_config = ConfigDict(extra="allow")

    version: int
    """The job's version after it; versions have no gaps."""
    at: Instant
    """When it happened."""
    kind: str = Field(examples=["state"])
    """What kind of event it is."""
    seq: int = 0
    """Its number among the events of all jobs."""
    job: str = ""
    """The id of the job."""

    sentence: str = Field(default="", examples=["Submitted cats on vastai."])
    """What happened, for people."""

    @classmethod
    def of(cls, event: Event) -> Self:
        return cls(
            version=event.job_version,
            at=event.at,
            kind=event.kind,
            seq=event.seq,
            job=event.job_id,
            sentence=sentence(event.kind, event.payload),
            **_beside_ours(plain(event.payload)),
        )

    def value(self) -> Event:
        return Event(
            seq=self.seq,
            job_id=self.job,
            job_version=self.version,
            kind=self.kind,
            payload=unplain(_as_written(self.model_extra or {})),
            at=self.at,
        )


def _beside_ours(payload: Mapping[str, Any]) -> dict[str, Any]:
    """A payload's fields with names that differ from ours: a machine may have chosen them.

    >>> _beside_ours({"step": 1, "kind": "x", "kind_": "y"})
    {'step': 1, 'kind_': 'x', 'kind__': 'y'}
    """
    return {f"{name}_" if name.rstrip("_") in EventDocument.model_fields else name: payload[name] for name in payload}


def _as_written(payload: Mapping[str, Any]) -> dict[str, Any]:
    """
    >>> _as_written({"step": 1, "kind_": "x", "kind__": "y"})
    {'step': 1, 'kind': 'x', 'kind_': 'y'}
    """
    return {name[:-1] if name.rstrip("_") in EventDocument.model_fields else name: payload[name] for name in payload}
