"""A home whose `up` runs as a process, and a client on what could be another computer."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from stationmaster.config import load_settings
from stationmaster.station.local.station import LocalStation
from stationmaster.station.tokens import NewToken
from tests.support.commands.cli_runs import Home, Ran, ran_cleanly, started
from tests.support.commands.command_line import PATIENCE_SECONDS, stationmaster


class ServedHome(Home):
    """`url` answers as long as the block lasts; a worker takes the jobs further."""

    def __init__(self, folder: Path, **environ: str) -> None:
        super().__init__(folder)
        self.environ |= environ

    def __enter__(self) -> ServedHome:
        super().__enter__()
        self._serving = self.start("up", "--port", "0")
        assert self._serving.stdout is not None
        line = self._serving.stdout.readline()
        assert "answers at" in line, f"{line}{self._serving.communicate()}"
        self.url = line.split()[-1]
        return self

    def __exit__(self, *about: object) -> None:
        if self._serving.poll() is None:
            self._serving.send_signal(signal.SIGTERM)
            self.said = "".join(self._serving.communicate(timeout=PATIENCE_SECONDS))
        super().__exit__(*about)

    def token(self, user: str = "me") -> str:
        """A new token with all rights of the user."""
        settings = load_settings(self.environ, folder=self.folder)
        station = LocalStation(settings, self.environ)
        try:
            return station.tokens.create(NewToken(name="test", user=user)).secret
        finally:
            station.close()


class Client:
    """Commands with an address, a token and nothing else: their HOME is empty, and stays so."""

    def __init__(self, folder: Path, url: str, token: str) -> None:
        self.folder = folder
        self.home = folder / "nobody"
        self.home.mkdir()
        kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
        self.environ = {**kept, "HOME": str(self.home), "STATIONMASTER_SERVER": url, "STATIONMASTER_TOKEN": token}

    def run(self, *arguments: str, **environ: str) -> Ran:
        return ran_cleanly(stationmaster(*arguments, environ={**self.environ, **environ}, cwd=self.folder))

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return started(*arguments, environ=self.environ, cwd=self.folder)
