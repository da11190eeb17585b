"""The app's screens, compared with the pictures in the documentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]


def test_the_pictures_of_the_documentation_show_the_app_as_it_is() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.make_terminal_pictures", "--check"],
        cwd=ROOT, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout}{done.stderr}\nlook at them, then: make screenshots"
