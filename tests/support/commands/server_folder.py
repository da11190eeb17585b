"""The folder of the server of commands: what is in it, and who may start and end the server."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SOCKET, COMMAND, ARCHIVE = "socket", "stationmaster", "trackside.pyz"
HOLD = b"hold\n"
"""What a process says that wants the server to stay."""


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """The folder, which exists, and nobody else starts or ends its server meanwhile."""
    while True:
        folder.mkdir(mode=0o700, exist_ok=True)
        try:
            file = (folder / "lock").open("w")
        except FileNotFoundError:
            continue  # a server that ended has removed the folder
        with file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if os.fstat(file.fileno()).st_nlink:  # else the same
                yield
                return
