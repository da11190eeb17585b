"""The suite's own runner: no result is lost, also when a test process dies."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.support.waiting import until

ROOT = Path(__file__).parents[3]

DYING = """
import os, signal

def test_before():
    pass

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)

def test_after():
    pass
"""
FAILING = """
def test_fails():
    print("seen by the reader of the report")
    assert {"a": 1} == {"a": 2}
"""
PASSING = """
import pytest

@pytest.fixture(scope="module")
def opened():
    with open("opened", "a") as log:
        log.write("x")

@pytest.mark.parametrize("number", range(5))
def test_passes(opened, tmp_path, number):
    assert "process-" in str(tmp_path)
"""
WAITING = """
import os, time
from pathlib import Path
import pytest

@pytest.fixture(scope="session")
def server():
    yield
    Path("cleared-" + os.environ["PYTEST_PROCESS"]).touch()

@pytest.mark.parametrize("number", range(2))  # who begins the last test of a file has asked for the next file before
def test_waits(server, number):
    Path("started-" + os.environ["PYTEST_PROCESS"]).touch()
    time.sleep(600)
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command(folder, *options), **surroundings(folder), capture_output=True)


def command(folder: Path, *options: str) -> list[str]:
    words = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.parallel_run", "-p", "no:cacheprovider"]
    return [*words, "--rootdir", str(folder), "--processes", "2", "--basetemp", str(folder / "temporary"), *options]


def surroundings(folder: Path) -> dict[str, Any]:
    return {"cwd": folder, "env": {**os.environ, "PYTHONPATH": str(ROOT)}, "text": True}


def test_every_test_has_one_result_although_a_process_dies_and_a_test_fails(tmp_path: Path) -> None:
    for name, text in {"dying": DYING, "failing": FAILING, "passing": PASSING}.items():
        (tmp_path / f"test_{name}.py").write_text(text)
    answer = run(tmp_path)
    assert answer.returncode == 1, answer.stdout + answer.stderr
    assert re.search(r"2 failed, 7 passed in ", answer.stdout), answer.stdout
    assert "ended with status -9 in this test" in answer.stdout
    assert "seen by the reader of the report" in answer.stdout
    assert (tmp_path / "opened").read_text() == "x"  # one process ran the whole file


def test_a_run_that_passes_exits_with_zero_and_one_that_stops_early_says_so(tmp_path: Path) -> None:
    (tmp_path / "test_passing.py").write_text(PASSING)
    (tmp_path / "test_more.py").write_text("def test_one(): pass")
    assert run(tmp_path).returncode == 0
    (tmp_path / "test_failing.py").write_text(FAILING)
    stopped = run(tmp_path, "-x")
    assert stopped.returncode == 1
    assert "stopping after 1 failures" in stopped.stdout


def test_an_interrupted_run_leaves_no_server_behind(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / f"test_{name}.py").write_text(WAITING)
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "start_new_session": True}
    running = subprocess.Popen(command(tmp_path), **surroundings(tmp_path), **pipes)
    try:
        until(lambda: {path.name for path in tmp_path.glob("started-*")} == {"started-0", "started-1"}, "both servers")
        os.killpg(running.pid, signal.SIGINT)  # as Ctrl-C does
        said, _ = running.communicate(timeout=150)
    finally:
        with suppress(ProcessLookupError):  # usually all have ended
            os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    assert running.returncode == pytest.ExitCode.INTERRUPTED, said
    assert {path.name for path in tmp_path.glob("cleared-*")} == {"cleared-0", "cleared-1"}, said
