"""Checks of what Stationmaster brings along: the program for machines, and the page."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import stationmaster
from stationmaster.remote.pyz import pyz_bytes
from stationmaster.station.checks import CheckResult, failed, passed, warned

_SECONDS = 30.0
#: Beside the API, which a station does not import.
_PAGE = Path(str(stationmaster.__file__)).parent / "api" / "page"


def trackside_result() -> CheckResult:
    """Whether the archive for machines can be built, and runs with this Python."""
    hint = "reinstall Stationmaster: parts of its package are missing or damaged"
    try:
        archive = pyz_bytes()
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "trackside.pyz"
            file.write_bytes(archive)
            command = [sys.executable, "-I", str(file), "--help"]
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
    except (OSError, SyntaxError, subprocess.TimeoutExpired) as problem:
        return failed("trackside", f"cannot be built or run: {problem}", hint)
    if done.returncode != 0:
        last = (done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no output"])[-1]
        return failed("trackside", f"does not run: {last}", hint)
    return passed("trackside", f"runs; {len(archive) / 1024:.0f} KiB are sent to each machine")


def page_result(folder: Path = _PAGE) -> CheckResult:
    if (folder / "index.html").is_file():
        return passed("page", "built in")
    hint = "reinstall it where the npm registry can be reached; in a clone run `make page`"
    return warned("page", "this installation was built without the page; commands and the API work", hint)
