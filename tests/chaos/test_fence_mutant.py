"""The crash tests can fail: without the fence they do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).with_name("fence_mutant.py")


def test_without_the_token_check_the_crash_tests_turn_red() -> None:
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "without the fence 1 of 1 fail" in done.stdout
