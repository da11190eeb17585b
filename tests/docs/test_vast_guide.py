"""The guide to Vast.ai, typed word for word at a terminal, against a simulator that keeps the real service's pauses."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.control.worker.background import running_worker
from stationmaster.simulator.harness import simulator_thread
from tests.support.commands.command_line import command_server
from tests.support.commands.terminal import at_terminal
from tests.support.docs_pages import shell_blocks
from tests.support.jobs.dataset_pictures import good_set
from tests.support.programs import ROOT
from tests.support.vast.simulated_vast import API_KEY, Customer, quick_settings
from tests.support.waiting import until

GUIDE = ROOT / "docs" / "how-to" / "rent-at-vast.md"
_WORK_KEY = "key-of-the-account-work"  # as the guide has it


@pytest.fixture
def vast_url(tmp_path: Path) -> Iterator[str]:
    """A Vast.ai with the pauses of the real one; only its machines are ready sooner."""
    with simulator_thread(quick_settings(tmp_path / "simulator", rate_limit_scale=1.0)) as url:
        customer = Customer(url)
        customer.http.post("/simulator/accounts", json={"name": "work", "api_key": _WORK_KEY, "credit": 50})
        customer.close()
        yield url


@pytest.fixture
def reader(vast_url: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    """Somebody with pictures, a Vast.ai account and nothing else; no worker of theirs is left afterwards."""
    (tmp_path / "bin").mkdir()
    command_server().write_command(tmp_path / "bin")
    good_set(tmp_path / "cats")
    home = tmp_path / "home"
    yield {
        "PATH": os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "HOME": str(tmp_path),
        "STATIONMASTER_HOME": str(home),
        "VASTAI_API_BASE_URL": f"{vast_url}/api/v0",
        "STATIONMASTER_HUB__URL": "http://127.0.0.1:9",  # nobody is there: whether the gated model can be had is a note
    }
    if (worker := running_worker(home)) is not None and worker.pid:
        os.kill(worker.pid, signal.SIGTERM)
        until(lambda: running_worker(home) is None, "the worker's leave", seconds=30.0)


def test_every_command_of_the_guide_works_as_it_is_written(reader: dict[str, str], tmp_path: Path) -> None:
    typed = "\n".join(["set -ex", *shell_blocks(GUIDE)])
    typed = typed.replace("VASTAI_API_KEY=...", f"VASTAI_API_KEY={API_KEY}").replace("HF_TOKEN=...", "HF_TOKEN=hf_x")
    session = at_terminal(["sh", "-c", typed], environ=reader, cwd=tmp_path, answers={"[y/n": "y"}, seconds=120.0)
    assert session.code == 0, session.shown
    assert "Traceback" not in session.shown
    assert "error:" not in session.shown
    assert session.shown.count("vastai has the key") == 2
    assert "vastai:work has the key" in session.shown
    assert len(re.findall(r"^job \w+ submitted", session.shown, re.MULTILINE)) == 2
    assert "flux-lora@2 on vastai:work" in session.shown
    assert "waiting " in session.shown, "the pauses are the real ones, and the reader sees them"
