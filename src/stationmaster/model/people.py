"""Users, the messages in their inbox, and whether a message was delivered."""

from __future__ import annotations

from dataclasses import dataclass

from stationmaster.model.callers import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """One user. `quiet` is a span such as 22:00-07:00 in `time_zone`; `muted` names kinds of messages."""

    name: str
    telegram_id: str | None = None
    discord_id: str | None = None
    email: str | None = None
    inbox: bool = False  # whether a message in the inbox counts as delivered
    muted: tuple[str, ...] = ()
    quiet: str | None = None
    time_zone: str = "UTC"
    role: Role = Role.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A message in the inbox; a message with the same `key` is the same note."""

    key: str
    kind: str
    text: str
    priority: str
    at: float
    job_id: str | None = None
    id: int | None = None
    read_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """The result of sending a message. If `retry_in` is set, send the same message again after that time."""

    channel: str
    success: bool
    retry_in: float | None = None
    problem: str | None = None
