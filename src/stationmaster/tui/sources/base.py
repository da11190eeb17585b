"""What the app asks of a source. Every method may take as long as it needs: the app calls them in threads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from stationmaster.tui.braille import Curve
from stationmaster.tui.fleet import FleetView
from stationmaster.tui.lines import Line


class Action(StrEnum):
    """What a person can do with one training."""

    STOP = "stop"
    CANCEL = "cancel"
    SAVE = "save"
    OPEN = "open"
    SSH = "ssh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One training or machine in full. `tabs` are the lists below the charts, by their titles."""

    id: str
    title: str
    facts: tuple[Line, ...]
    curves: tuple[Curve, Curve]
    tabs: Mapping[str, Sequence[Line]]
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What a person is asked before an action; `answer` is the button that does it."""

    text: str
    answer: str
    is_grave: bool = False  # something would be lost


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What an action did or asks for: a sentence, a text for the clipboard, a link for the browser."""

    sentence: str
    clipboard: str | None = None
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The source itself, in words."""

    title: str
    interval: float
    is_made_up: bool = False


class Source(Protocol):
    @property
    def about(self) -> About: ...

    def next(self, *, seconds: float) -> FleetView | None:
        """The newest look that was not returned yet, waiting at most this long. Raises a StationmasterError."""

    def refresh(self) -> None:
        """Look again at once."""

    def set_paused(self, paused: bool) -> None: ...

    def clear_logs(self) -> None:
        """Forget the log lines shown so far."""

    def detail(self, id: str, *, width: int) -> Detail:
        """Raises a StationmasterError. `width` is that of the screen, for text that is wrapped."""

    def search_log(self, id: str, text: str) -> Sequence[Line]:
        """The lines of the log that contain the text. Raises a StationmasterError."""

    def question(self, id: str, action: Action) -> Question | None:
        """What to ask before the action; None if nothing needs to be asked. Raises a StationmasterError with the
        reason if the action is not possible.
        """

    def perform(self, id: str, action: Action) -> Effect:
        """Raises a StationmasterError."""

    def close(self) -> None: ...
