"""A family of trainers: the shapes of lines and bars that only it prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stationmaster.parsers.bars import Bar
from stationmaster.parsers.base import Parsed
from stationmaster.parsers.lines import Line
from stationmaster.parsers.memory import Memory

LineRule = Callable[[Line, Memory], Parsed | None]
BarRule = Callable[[Bar, Memory], Parsed | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """One trainer's own shapes. What is common to all trainers is in plain.py."""

    name: str
    titles: tuple[str, ...] = ()  # other names under which a recipe may ask for it
    signs: tuple[str, ...] = ()  # lower-case texts that only this trainer prints
    epoch_begins: bool = False  # its epoch number names the epoch that begins, from 1 on, not how many are done
    read_line: LineRule | None = None
    read_bar: BarRule | None = None
