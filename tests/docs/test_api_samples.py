"""What the pages about the HTTP API tell people to type works against a real server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.command_line import command_server
from tests.support.commands.served_home import Client, ServedHome
from tests.support.docs_pages import PAGES, RUN_WITH_SERVER, name_of, samples
from tests.support.jobs.dataset_pictures import good_set

WITH_SAMPLES = [page for page in PAGES if samples(page, RUN_WITH_SERVER)]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedHome]:
    with ServedHome(tmp_path_factory.mktemp("served")) as opened:
        yield opened


@pytest.mark.parametrize("page", WITH_SAMPLES, ids=name_of)
def test_the_samples_of_a_page_work_one_after_the_other(page: Path, served: ServedHome, tmp_path: Path) -> None:
    command_server().write_command(tmp_path)
    good_set(tmp_path / "cats")
    client = Client(tmp_path, served.url, served.token())
    path = os.pathsep.join([str(tmp_path), str(Path(sys.executable).parent), os.environ["PATH"]])
    script = "\n".join(["set -e", *samples(page, RUN_WITH_SERVER)])
    done = subprocess.run(
        ["sh", "-c", script],
        cwd=tmp_path,
        env={**client.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr


def test_both_pages_about_the_api_have_samples() -> None:
    pages = {"docs/how-to/from-your-own-program.md", "docs/how-to/serve-to-others.md"}
    assert {name_of(page) for page in WITH_SAMPLES} == pages
