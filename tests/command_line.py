"""The `stationmaster` command as a person runs it: a process of its own, with an environment of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def stationmaster(*words: str, environ: Mapping[str, str], seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
    """Run it to its end; nobody can be asked anything."""
    return subprocess.run(
        [sys.executable, "-m", "stationmaster", *words],
        env=dict(environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )


def answer_of(*words: str, environ: Mapping[str, str], seconds: float = 120.0) -> Any:
    """The JSON that a command prints when all is well."""
    done = stationmaster(*words, environ=environ, seconds=seconds)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
