"""Messages in an inbox, and how sending one went."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from stationmaster.model import Delivery, Note
from stationmaster.station.wire.document import Document, LongText, RequestDocument


class NoteDocument(Document):
    """A message in an inbox."""

    id: int
    """Its number; later messages have higher ones."""
    key: str
    """A message with the same key is the same message."""
    kind: str = Field(examples=["completed"])
    """What it is about, such as `completed` or `stall`."""
    text: str
    """The message."""
    priority: str = Field(examples=["normal"])
    """`low`, `normal` or `high`."""
    at: float
    """Seconds since 1970."""
    job_id: str | None = None
    """The job that it is about."""
    read_at: float | None = None
    """Seconds since 1970."""

    @classmethod
    def of(cls, note: Note) -> Self:
        assert note.id is not None, "a stored message has an id"
        return cls(
            id=note.id,
            key=note.key,
            kind=note.kind,
            text=note.text,
            priority=note.priority,
            at=note.at,
            job_id=note.job_id,
            read_at=note.read_at,
        )

    def value(self) -> Note:
        return Note(
            key=self.key,
            kind=self.kind,
            text=self.text,
            priority=self.priority,
            at=self.at,
            job_id=self.job_id,
            id=self.id,
            read_at=self.read_at,
        )


class InboxDocument(Document):
    """An inbox."""

    unread: int
    """How many messages have not been read."""
    messages: tuple[NoteDocument, ...]
    """The newest messages, oldest first."""


class ReadUpTo(RequestDocument):
    """Which messages have been read."""

    up_to: int = Field(ge=0, le=2**62)
    """The id of the newest message that was read; all before it were read too."""


class TestMessage(RequestDocument):
    """A text to send through every channel of a user."""

    text: LongText = Field(min_length=1, examples=["hello from Stationmaster"])
    """The text to send."""


class DeliveryDocument(Document):
    """How sending a message through one channel went."""

    channel: str = Field(examples=["telegram"])
    """Name of the channel."""
    success: bool
    """Whether the service accepted it."""
    retry_in: float | None = None
    """Seconds."""
    problem: str | None = None
    """Why it was not sent."""

    @classmethod
    def of(cls, delivery: Delivery) -> Self:
        return cls(
            channel=delivery.channel,
            success=delivery.success,
            retry_in=delivery.retry_in,
            problem=delivery.problem,
        )

    def value(self) -> Delivery:
        return Delivery(channel=self.channel, success=self.success, retry_in=self.retry_in, problem=self.problem)
