"""What every way to reach a person has in common."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Priority(StrEnum):
    """How much a message may disturb."""

    LOW = "low"  # nice to know
    NORMAL = "normal"
    HIGH = "high"  # comes through in quiet hours too


@dataclass(frozen=True, slots=True, kw_only=True)
class Rendered:
    """A message in plain words. Each channel escapes and cuts it as its service needs."""

    key: str  # the same at every try, so that a service which knows keys delivers it once
    kind: str
    text: str
    at: float  # when it happened
    priority: Priority = Priority.NORMAL
    job_id: str | None = None
    more: str | None = None  # where the rest can be read when the text must be cut

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0]


class Channel(Protocol):
    """One way to reach people. `send` is a single conversation; retries and other ways belong to control/."""

    async def send(self, recipient: str, message: Rendered) -> None:
        """The service has taken the message. Raises NotifyRefused or NotifyBusy."""


class InboxRows(Protocol):
    """Where messages are kept for people who look for them."""

    def put(self, user: str, message: Rendered) -> None:
        """Keep a message; one with the same key that is there already stays as it is."""
