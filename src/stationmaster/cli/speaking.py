"""How commands speak to a person: quietly or not, in colours or not.

A command's result goes to standard output. Notes, hints and next steps are extras: `--quiet` leaves them out.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TextIO

from stationmaster.cli.terminal_output import unguarded
from stationmaster.printable import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Manner:
    quiet: bool = False
    #: Whether a terminal may be written on in colours; files and pipes never are.
    coloured: bool = True
    #: Whether a terminal can draw a line again, which a dumb one cannot.
    redraws: bool = True


_manner: ContextVar[Manner] = ContextVar("manner")

_CODES = {"red": "31", "green": "32", "yellow": "33", "cyan": "36", "bold": "1", "dim": "2"}


def speak(environ: Mapping[str, str], *, quiet: bool) -> None:
    """Set the manner of this process, once the global options are known. See https://no-color.org."""
    redraws = environ.get("TERM", "dumb") != "dumb"
    _manner.set(Manner(quiet=quiet, coloured=redraws and not environ.get("NO_COLOR"), redraws=redraws))


def _current() -> Manner:
    return _manner.get(Manner())


def is_quiet() -> bool:
    return _current().quiet


def note(text: str) -> None:
    """Something that the person should know, on standard error."""
    if not is_quiet():
        _write(sys.stderr, f"{coloured('note:', 'cyan', sys.stderr)} {one_line(text)}")


def hint(text: str) -> None:
    """What the person could do about it, on standard error."""
    if not is_quiet():
        _write(sys.stderr, f"{coloured('hint:', 'cyan', sys.stderr)} {one_line(text)}")


def write_problem(line: str) -> None:
    """An error or its hint, on standard error, also with `--quiet`. The first word says which and is coloured."""
    first, space, rest = one_line(line).partition(" ")
    colour = {"error:": "red", "hint:": "cyan"}.get(first, "")
    _write(sys.stderr, f"{coloured(first, colour, sys.stderr)}{space}{rest}")


def extra(text: str = "") -> None:
    """A line beside the result, on standard output: an explanation or a next step."""
    if not is_quiet():
        _write(sys.stdout, one_line(text))


def can_redraw(stream: TextIO) -> bool:
    """Whether a line on the stream can be drawn again in its place."""
    return _current().redraws and stream.isatty()


def is_coloured(stream: TextIO) -> bool:
    return _current().coloured and stream.isatty()


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """The text in a colour, where the stream (by default standard output) shows colours; otherwise itself.

    The colour is never the only sign: without it, the text must say the same. The caller makes the text printable and
    writes it with `write_drawn`.
    """
    if not colour or not is_coloured(sys.stdout if stream is None else stream):
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def write_drawn(line: str) -> None:
    """Write a line with colours of ours on standard output; everything else in it is printable already."""
    _write(sys.stdout, line)


def redraw(lines: Sequence[str], *, over: int) -> None:
    """As `write_drawn`, on a terminal, in the place of that many lines that were written last."""
    back = f"\x1b[{over}A\r\x1b[J" if over else ""
    _write(sys.stdout, back + "\n".join(lines))


def _write(stream: TextIO, line: str) -> None:
    unguarded(stream).write(f"{line}\n")
