"""What screens tell the app."""

from __future__ import annotations

from dataclasses import dataclass

from textual.message import Message

from stationmaster.tui.sources.base import Action


@dataclass
class DetailWanted(Message):
    """Show this training or machine in detail."""

    id: str


@dataclass
class ActionWanted(Message):
    id: str
    action: Action


@dataclass
class LogsCleared(Message):
    """Forget the log lines shown so far."""


@dataclass
class SearchWanted(Message):
    """Search the log of this training for a text."""

    id: str
    text: str
