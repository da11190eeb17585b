"""Runs commands in children of a process that has imported everything already: a command costs its work, not its start.

Each line of standard input is one request, each line of standard output its exit code.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from stationmaster.cli.main import main


def serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _become(request)
        _, status = os.waitpid(pid, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _become(request: dict[str, Any]) -> None:
    """The command itself, as if it had just been started; it never returns."""
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["environ"])
    for descriptor, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, request["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
        (2, request["err"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC),
    ):
        os.dup2(os.open(path, flags, 0o600), descriptor)
    sys.argv = ["stationmaster", *request["arguments"]]
    code: Any = 0
    try:
        main()
    except SystemExit as leaving:
        code = leaving.code or 0
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else 1)


if __name__ == "__main__":
    serve()
