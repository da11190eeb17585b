"""A virtual environment for each tracker, created once below `.home/trackers`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
_FOLDER = CHECKOUT / ".home" / "trackers"


def python_of(packages: tuple[str, ...]) -> str:
    """Return the interpreter of an environment with these packages; without any, the one that runs this."""
    if not packages:
        return sys.executable
    folder = _FOLDER / packages[0].partition("==")[0]
    installed = folder / "installed"
    if not installed.exists() or installed.read_text() != " ".join(packages):
        print(f"creating an environment with {', '.join(packages)}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        command = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*command, *packages], check=True)
        installed.write_text(" ".join(packages))
    return str(folder / "bin" / "python")


def variables(home: Path) -> dict[str, str]:
    """Return the environment variables of a probe: a home folder of its own, and nothing that reaches a network."""
    unreachable = "http://127.0.0.1:9"
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT / "benchmarks"), str(CHECKOUT / "src")]),
        "WANDB_MODE": "offline",
        "WANDB_ERROR_REPORTING": "false",
        "HF_HUB_OFFLINE": "1",
        "GRADIO_ANALYTICS_ENABLED": "False",
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "DO_NOT_TRACK": "true",
        "GIT_PYTHON_REFRESH": "quiet",
        "http_proxy": unreachable,
        "https_proxy": unreachable,
        "no_proxy": "127.0.0.1,localhost",
    }
