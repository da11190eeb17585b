"""Asks the server of commands to run one. As a program it is the command itself: its streams, folder and exit code.

Run as `python -I -S client.py SOCKET WORD…`, it starts in a fiftieth of the time that the command's imports take.
"""

import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path


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
        umask: "int | None" = None,
        leads_session: bool = False,
    ) -> None:
        self._connection = socket.socket(socket.AF_UNIX)
        self._connection.connect(address)
        request = {"arguments": [*words], "environ": dict(environ), "cwd": cwd, "umask": umask}
        request["leads_session"] = leads_session
        line = json.dumps(request).encode() + b"\n"
        sent = socket.send_fds(self._connection, [line], streams)
        if sent < len(line):  # a quick command is over by now, and its server has closed the connection
            self._connection.sendall(line[sent:])
        self._answers = self._connection.makefile()
        self.pid = int(self._answers.readline())

    def __enter__(self) -> "ForkedCommand":
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._connection.close()

    def wait(self, seconds: "float | None" = None) -> int:
        """Its exit code, or less the number of the signal that ended it. Raises TimeoutError."""
        self._connection.settimeout(seconds)
        return int(self._answers.readline())


def main(address: str, *words: str) -> int:
    with ForkedCommand(
        address,
        words,
        environ=os.environ,
        cwd=str(Path.cwd()),
        streams=(0, 1, 2),
        umask=os.umask(0o077),
        leads_session=os.getsid(0) == os.getpid(),
    ) as command:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda number, _: os.kill(command.pid, number))
        code = command.wait()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
