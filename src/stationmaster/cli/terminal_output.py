"""What a terminal gets of standard output and standard error: text only, whoever wrote it.

`main` calls `guard_terminal` before anything is printed, so that no command can forget it. Where there is no terminal,
output is left as it is. What this program itself draws, such as colours, goes through `console.py` or `overwrite_line`.
"""

from __future__ import annotations

import codecs
import io
import sys
from typing import TYPE_CHECKING, Any, TextIO

from stationmaster.printable import PrintableStream, one_line

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


def guard_terminal() -> None:
    """From here on, standard output and standard error pass on printable text only, each where it is a terminal."""
    sys.stdout = guarded(sys.stdout)
    sys.stderr = guarded(sys.stderr)


def guarded(stream: Any) -> Any:
    """The stream as it may be printed on; itself where it is no terminal."""
    if stream is None or not stream.isatty() or isinstance(getattr(stream, "buffer", None), _Guard):
        return stream
    stream.flush()
    return io.TextIOWrapper(_Guard(stream), encoding=stream.encoding, errors="backslashreplace", line_buffering=True)


def end_output() -> None:
    """Print what was held back because it could have become an escape sequence."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(guard := getattr(stream, "buffer", None), _Guard):
            stream.flush()
            guard.end()


def unguarded(stream: TextIO) -> TextIO:
    """The terminal itself, for escape sequences of our own. The caller makes the text of others printable."""
    guard = getattr(stream, "buffer", None)
    if not isinstance(guard, _Guard):
        return stream
    stream.flush()
    return guard.terminal


def overwrite_line(line: str) -> None:
    """Replace the last line on the terminal of standard error; an empty one erases it."""
    terminal = unguarded(sys.stderr)
    terminal.write(f"\r{one_line(line)}\x1b[K")
    terminal.flush()


class _Guard(io.BufferedIOBase):
    """The bytes of a terminal, of which only printable text is passed on."""

    def __init__(self, terminal: TextIO) -> None:
        self.terminal = terminal
        self._decoder = codecs.getincrementaldecoder(terminal.encoding)(errors="replace")
        self._text = PrintableStream()

    def write(self, data: ReadableBuffer, /) -> int:
        self._pass_on(self._text.feed(self._decoder.decode(bytes(data))))
        return memoryview(data).nbytes

    def end(self) -> None:
        self._pass_on(self._text.feed(self._decoder.decode(b"", final=True)) + self._text.end())
        self.flush()

    def flush(self) -> None:
        self.terminal.flush()

    def writable(self) -> bool:
        return True

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.terminal.fileno()

    def _pass_on(self, text: str) -> None:
        encoding = self.terminal.encoding
        self.terminal.write(text.encode(encoding, "backslashreplace").decode(encoding))
