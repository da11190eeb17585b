"""The official `vastai` client from PyPI, for tests: its own code, its own process for every command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Importing the client costs most of a second, so one process imports it and forks for each command.
_FORKING_CLIENT = """
import json, os, sys, tempfile, traceback
import vastai.cli.main
for line in sys.stdin:
    order = json.loads(line)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2), os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.environ.update(order["environment"])
            sys.argv = ["vastai", *order["arguments"]]
            status = 0
            try:
                status = vastai.cli.main.main() or 0
            except SystemExit as leaving:
                status = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
            except BaseException:
                traceback.print_exc()
                status = 1
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0), err.seek(0)
        answer = {"status": status, "stdout": out.read().decode(), "stderr": err.read().decode()}
    print(json.dumps(answer), flush=True)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    status: int
    stdout: str
    stderr: str


class OfficialClient:
    """Configured for a simulator, with its own home."""

    def __init__(self, url: str, key: str, home: Path) -> None:
        self.url = url
        self.key = key
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / "config"),
            "XDG_CACHE_HOME": str(home / "cache"),
            "VAST_URL": url,
            "VAST_API_KEY": key,
            "VASTAI_NO_UPDATE_CHECK": "1",
            "NO_COLOR": "1",
            "COLUMNS": "300",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-c", _FORKING_CLIENT],
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._process.communicate()

    def run(self, *arguments: str, key: str | None = None) -> Said:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"arguments": arguments, "environment": {"VAST_API_KEY": key or self.key}}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return Said(**json.loads(self._process.stdout.readline()))

    def says(self, *arguments: str) -> str:
        """What it prints; nothing may be on stderr, where it reports every failure."""
        said = self.run(*arguments)
        assert said.stderr.strip() in ("", "\x1b[K"), said.stderr
        return said.stdout

    def raw(self, *arguments: str) -> Any:
        return json.loads(self.says(*arguments, "--raw"))

    def python(self, script: str) -> Any:
        """What a script that uses the official SDK prints, as JSON; it gets the URL and the key as arguments."""
        done = subprocess.run(
            [sys.executable, "-c", script, self.url, self.key],
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)
