"""Which Python runs ai-toolkit on this machine."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

ENVIRONMENT = "venv"


def python_of(trainer: Path, named: str) -> str:
    """The Python that was named, else the one that was installed with ai-toolkit, else the machine's own."""
    if named:
        return named
    installed = trainer / ENVIRONMENT / "bin" / "python"
    return str(installed) if installed.exists() else shutil.which("python3") or sys.executable
