"""Runs a command in a separate process that reports its imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping

_RUN = """
import json, sys
from stationmaster.cli.main import main
sys.argv = ["stationmaster", *sys.argv[1:]]
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)))
"""


def run(*words: str, environ: Mapping[str, str] | None = None) -> tuple[str, set[str]]:
    """What a command printed, and the modules that it had imported by its end."""
    command = [sys.executable, "-c", _RUN, *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, env={**os.environ, **(environ or {})})
    printed, _, modules = done.stdout.rstrip("\n").rpartition("\n")
    return printed + done.stderr, set(json.loads(modules))
