"""A training is asked for a checkpoint by a file, which it may take away at any moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from trackside.steps.training_requests import touch

_TAKE = """
import os, sys
while True:
    try:
        os.unlink(sys.argv[1])
    except FileNotFoundError:
        pass
"""


def test_a_file_that_is_taken_away_at_once_was_there_all_the_same(tmp_path: Path) -> None:
    path = str(tmp_path / "save-now")
    training = subprocess.Popen([sys.executable, "-S", "-c", _TAKE, path])
    try:
        for _ in range(20_000):
            touch(path)
    finally:
        training.kill()
        training.wait()


def test_a_file_that_nobody_took_is_touched_again(tmp_path: Path) -> None:
    path = tmp_path / "save-now"
    path.write_text("")
    os.utime(path, (1, 1))
    touch(str(path))
    assert path.stat().st_mtime > 1
