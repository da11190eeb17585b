"""The demo, again right after the first: the worker of the first still lives and must find the new simulator."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from stationmaster.control.worker.background import running_worker
from tests.support.waiting import until

_LEAVE_SECONDS = 30.0


@pytest.mark.slow
def test_a_second_demo_right_after_the_first_completes_with_the_same_worker(tmp_path: Path) -> None:
    first = _demo(tmp_path)
    worker = running_worker(tmp_path)
    assert worker is not None
    second = _demo(tmp_path)
    assert [first["outcome"], second["outcome"]] == ["COMPLETED", "COMPLETED"]
    assert running_worker(tmp_path) == worker
    os.kill(worker.pid, signal.SIGTERM)
    until(lambda: running_worker(tmp_path) is None, "the worker's leave", seconds=_LEAVE_SECONDS)


def _demo(home: Path) -> dict[str, Any]:
    demo = ["demo", "--steps", "10", "--pace", "0", "--json"]
    command = [sys.executable, "-m", "stationmaster", "--home", str(home), *demo]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATIONMASTER_")}
    environment = {**clean, "STATIONMASTER_WORKER__LINGER": "5m"}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    result: dict[str, Any] = json.loads(done.stdout)
    return result
