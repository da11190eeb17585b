"""What the pages tell people to type works, and what they point at is there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.control.worker.background import running_worker
from tests.support.commands.command_line import command_server
from tests.support.docs_pages import PAGES, RUN_WITH_SERVER, dead_links, links, name_of, samples
from tests.support.jobs.dataset_pictures import good_set
from tests.support.programs import ROOT
from tests.support.waiting import until

WITH_SAMPLES = [page for page in PAGES if samples(page)]
WITH_LINKS = [page for page in PAGES if links(page)]
_LEAVE_SECONDS = 30.0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder with pictures in `cats`, and a home of its own whose worker is gone afterwards."""
    (tmp_path / "bin").mkdir()
    command_server().write_command(tmp_path / "bin")
    good_set(tmp_path / "cats")
    yield tmp_path
    home = tmp_path / "home"
    if (worker := running_worker(home)) is not None and worker.pid:
        os.kill(worker.pid, signal.SIGTERM)
        until(lambda: running_worker(home) is None, "the worker's leave", seconds=_LEAVE_SECONDS)


@pytest.mark.parametrize("page", WITH_SAMPLES, ids=name_of)
def test_the_samples_of_a_page_work_one_after_the_other(page: Path, place: Path) -> None:
    script = "\n".join(["set -e", *samples(page)])
    clean = {name: value for name, value in os.environ.items() if not name.startswith("STATIONMASTER_")}
    environment = {
        **clean,
        "PATH": os.pathsep.join([str(place / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "STATIONMASTER_HOME": str(place / "home"),
        "STATIONMASTER_WORKER__LINGER": "1s",
        "STATIONMASTER_MONITORING__POLL_INTERVAL": "0.5",
        "STATIONMASTER_MONITORING__WATCH_INTERVAL": "0.5",
    }
    done = subprocess.run(["sh", "-c", script], cwd=place, env=environment, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr


def test_the_tutorial_and_every_goal_have_samples_that_run_or_need_a_server() -> None:
    told = {name_of(page) for page in WITH_SAMPLES}
    goals = {name_of(page) for page in (ROOT / "docs" / "how-to").glob("*.md")}
    with_server = {name_of(page) for page in PAGES if samples(page, RUN_WITH_SERVER)}
    needs_a_database = {"docs/how-to/run-on-postgresql.md"}
    needs_a_machine = {"docs/how-to/adopt-a-training.md"}  # as tests/acceptance/test_adopted_over_ssh.py has
    assert {"docs/tutorial/first-training.md", *goals} - told - with_server <= needs_a_database | needs_a_machine


@pytest.mark.parametrize("page", sorted((ROOT / "docs" / "how-to").glob("*.md")), ids=name_of)
def test_every_how_to_ends_with_verify_and_troubleshooting(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert 0 < text.index("## Verify") < text.index("## Troubleshooting")


@pytest.mark.parametrize("page", WITH_LINKS, ids=name_of)
def test_every_link_of_a_page_leads_to_something(page: Path) -> None:
    assert dead_links(page) == []
