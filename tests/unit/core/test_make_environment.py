"""The script that makes `.venv`: with the Python that was asked for, or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts" / "make_environment"


@pytest.mark.parametrize(("answer", "code"), [(0, 0), (1, 1)])
def test_the_python_that_was_asked_for_makes_it_if_it_will_do(tmp_path: Path, answer: int, code: int) -> None:
    asked = tmp_path / "asked"
    python = tmp_path / "some python"
    python.write_text(f'#!/bin/sh\n[ "$1" = -c ] && exit {answer}\necho "$@" >> "{asked}"\n')
    python.chmod(0o755)
    done = subprocess.run(
        [SCRIPT], env={"PYTHON": str(python), "PATH": "/usr/bin:/bin"}, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == code
    assert (asked.read_text() if asked.exists() else "") == ("" if code else "-m venv .venv\n")
    assert done.stderr.count("\n") == code
