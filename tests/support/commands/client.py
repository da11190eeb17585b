"""Asks a server of commands to run one. As a program it is the command itself: its streams, folder and exit code.

Run as `python -I -S client.py SOCKET WORD…`, it takes no longer than the start of Python: it imports only what Python
has built in, so neither `socket`, `signal` nor `json`.
"""

from __future__ import annotations

import os
import sys
from _signal import SIGINT, SIGTERM, signal  # type: ignore[import-not-found]
from _socket import AF_UNIX, SCM_RIGHTS, SOL_SOCKET, socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CHUNK_BYTES = 64
_LONGEST_WAIT_SECONDS = 0.5


class ForkedCommand:
    """A command that the server forked. Use it as a context manager: the block ends with the command killed."""

    def __init__(
        self,
        address: str,
        words: Sequence[str],
        *,
        environ: Mapping[str, str],
        cwd: str,
        streams: Sequence[int],
        umask: int | None = None,
        leads_session: bool = False,
    ) -> None:
        self._connection = socket(AF_UNIX)
        self._connection.connect(address)
        request = {"arguments": [*words], "environ": dict(environ), "cwd": cwd, "umask": umask}
        request["leads_session"] = leads_session
        line = ascii(request).encode() + b"\n"
        numbers = b"".join(stream.to_bytes(4, sys.byteorder) for stream in streams)
        sent = self._connection.sendmsg([line], [(SOL_SOCKET, SCM_RIGHTS, numbers)])
        if sent < len(line):  # a quick command is over by now, and its server has closed the connection
            self._connection.sendall(line[sent:])
        self._read = b""
        self.pid = self._answer()

    def __enter__(self) -> ForkedCommand:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def wait(self, seconds: float | None = None) -> int:
        """Its exit code, or less the number of the signal that ended it. Raises TimeoutError."""
        self._connection.settimeout(seconds)
        return self._answer()

    def _answer(self) -> int:
        """The next number that the server tells."""
        while b"\n" not in self._read:
            chunk = self._connection.recv(_CHUNK_BYTES)
            if not chunk:
                raise ConnectionError("the server of commands has ended")
            self._read += chunk
        line, self._read = self._read.split(b"\n", 1)
        return int(line)


def main(address: str, *words: str) -> int:
    with ForkedCommand(
        address,
        words,
        environ=os.environ,
        cwd=os.getcwd(),  # noqa: PTH109 - pathlib takes longer to import than all the rest
        streams=(0, 1, 2),
        umask=os.umask(0o077),
        leads_session=os.getsid(0) == os.getpid(),
    ) as command:
        for number in (SIGINT, SIGTERM):
            signal(number, lambda number, _: os.kill(command.pid, number))
        while (code := _told(command)) is None:
            pass
    return code if code >= 0 else 128 - code


def _told(command: ForkedCommand) -> int | None:
    """The exit code, or None after a while: a signal in the moment before a wait is handled only when the wait ends."""
    try:
        return command.wait(_LONGEST_WAIT_SECONDS)
    except TimeoutError:
        return None


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
