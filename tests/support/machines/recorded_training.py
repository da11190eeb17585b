"""A training in a process of its own that records with `Run`, and the rows that are in its database."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import trackside
from tests.support.waiting import until

_OPENING = """
import os, signal, sys
from trackside import Run
run = Run("job", {database!r}, sample_seconds=0)
"""


class RecordedTraining:
    """Runs scripts that find an open `run`; without a time limit none of them ends a test that hangs."""

    def __init__(self, folder: Path, *, database: Path | None = None) -> None:
        self.folder = folder
        self.database = database or folder / "aitk_db.db"

    def run(
        self, script: str, *, exit_code: int = 0, wrapper: Sequence[str] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a script to its end, which has to have this exit code."""
        argv, env = self._command(script, variables)
        ended = subprocess.run([*wrapper, *argv], env=env, cwd=self.folder, capture_output=True, text=True, timeout=120)
        assert ended.returncode == exit_code, ended.stderr
        return ended

    def start(self, script: str, **variables: str) -> subprocess.Popen[str]:
        """Start a script; its output can be read from a pipe."""
        argv, env = self._command(script, variables)
        return subprocess.Popen(argv, env=env, cwd=self.folder, stdout=subprocess.PIPE, text=True)

    def fold_leftovers(self) -> None:
        """Open and close a further run, as the next training on this machine does, until no journal is left.

        A run does not wait long for a slow disk when it closes: then the rest is for the one after it.
        """
        until(self._fold, "no journal is left")

    def _fold(self) -> bool:
        print(self.run("run.close()").stderr)  # a test that fails shows it
        return not self.journals()

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(self.database)) as connection:
            return connection.execute(query).fetchall()

    def recorded_steps(self) -> list[int]:
        """Return the numbers of all rows, so that one that is there twice shows."""
        return [step for (step,) in self.rows("SELECT step FROM StepMetric WHERE job_id = 'job' ORDER BY step")]

    def is_sound(self) -> bool:
        return self.rows("PRAGMA integrity_check") == [("ok",)]

    def journals(self) -> list[Path]:
        return sorted(Path(f"{self.database}.journals").glob("*"))

    def _command(self, script: str, variables: dict[str, str]) -> tuple[list[str], dict[str, str]]:
        code = _OPENING.format(database=str(self.database)) + textwrap.dedent(script)
        path = str(Path(trackside.__file__).parent.parent)
        return [sys.executable, "-c", code], {"PATH": os.environ["PATH"], "PYTHONPATH": path, **variables}
