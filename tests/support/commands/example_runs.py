"""The files of `examples/`, run as a person runs them: from a shell, with `stationmaster` on the PATH."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.support.commands.cli_runs import Home, Ran, ran_cleanly
from tests.support.commands.command_line import PATIENCE_SECONDS, command_server
from tests.support.programs import ROOT

EXAMPLES = ROOT / "examples"
QUICK = ("--steps", "20", "-p", "seconds_per_step=0", "-p", "save_every=10", "-p", "sample_every=20")


class Person:
    """Someone with a home, who has `stationmaster` in ~/.local/bin and the examples in ~/stationmaster-examples."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.folder = home.folder
        programs = self.folder / ".local" / "bin"
        programs.mkdir(parents=True, exist_ok=True)
        command_server().write_command(programs)
        (self.folder / "stationmaster-examples").symlink_to(EXAMPLES)
        path = os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        self.environ = {**home.environ, "PATH": path}

    def run(self, *words: str | Path, cwd: Path | None = None, environ: Mapping[str, str] | None = None) -> Ran:
        """Run a program or script to its end."""
        done = subprocess.run(
            [str(word) for word in words],
            env={**self.environ, **(environ or {})},
            cwd=cwd or self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        return ran_cleanly(done)
