"""The `stationmaster` command as a separate process with its own environment, forked from a ready server."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from tests.support.commands.fork_server import ForkServer
from tests.support.commands.server_folder import COMMAND

PATIENCE_SECONDS = 150.0


def stationmaster(
    *words: str,
    environ: Mapping[str, str],
    cwd: Path | None = None,
    seconds: float = PATIENCE_SECONDS,
    umask: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end; its standard input is empty, so that no question can be answered."""
    done = command_server().run(words, environ=environ, cwd=cwd or Path.cwd(), seconds=seconds, umask=umask)
    return subprocess.CompletedProcess(done.args, done.returncode, _text(done.stdout), _text(done.stderr))


def answer_of(*words: str, environ: Mapping[str, str], seconds: float = PATIENCE_SECONDS) -> Any:
    """The JSON that a command prints when all is well."""
    done = stationmaster(*words, environ=environ, seconds=seconds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def output_of(*words: str, home: Path) -> str:
    """All that a command printed, in the environment of this process and with this home."""
    done = stationmaster(*words, environ={**os.environ, "STATIONMASTER_HOME": str(home)})
    return done.stdout + done.stderr


def _text(printed: bytes) -> str:
    """With plain ends of lines, as `subprocess` reads text."""
    return io.TextIOWrapper(io.BytesIO(printed), encoding="utf-8").read()


@cache
def command_server() -> CommandServer:
    """The one server of all processes of this test run, which ends with the last of them."""
    return CommandServer("commands", "commands.server")


class CommandServer(ForkServer):
    """The server of `stationmaster` commands."""

    @property
    def own_command(self) -> str:
        return str(self.folder / COMMAND)

    def prepare(self) -> None:
        self.write_command(self.folder)

    def write_command(self, folder: Path) -> None:
        """A `stationmaster` in this folder, for a PATH; a child of this server does the work."""
        self.write_client(folder / COMMAND)
