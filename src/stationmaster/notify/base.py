"""What every channel has in common."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol


class Priority(StrEnum):
    """How urgent a message is."""

    LOW = "low"  # optional reading
    NORMAL = "normal"
    HIGH = "high"  # sent in quiet hours too


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """A message as plain text. Each channel escapes and shortens it as its service needs."""

    key: str  # the same in every try: a service with idempotency keys delivers it once
    kind: str
    text: str
    at: float  # when it happened
    priority: Priority = Priority.NORMAL
    job_id: str | None = None
    more: str | None = None  # where to read the rest if the text is shortened

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0]


class Channel(Protocol):
    """One way to send messages. `send` is a single attempt; retries and other channels belong to control/."""

    async def send(self, recipient: str, message: Message) -> None:
        """Return when the service has accepted the message. Raises NotifyRefused or NotifyBusy."""

    async def check(self, recipient: str | None) -> str:
        """Ask the service, without sending anything, whether it would accept messages; returns what it answered.

        Without a recipient only the sender is checked. Raises NotifyRefused or NotifyBusy.
        """
