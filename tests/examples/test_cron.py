"""examples/cron: the line of the crontab, as cron gives it to sh."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.support.commands.cli_runs import Ran
from tests.support.commands.example_runs import EXAMPLES, QUICK, Person
from tests.support.jobs.stored_jobs import as_failed

EXAMPLE = EXAMPLES / "cron"
NO_MIDNIGHT = f"TEST{time.gmtime().tm_hour - 12:+d}"  # a time zone in which it is noon: all these nights are one


def _command() -> str:
    (line,) = (line for line in (EXAMPLE / "crontab").read_text().splitlines() if line[:1].isdigit())
    return line.split(maxsplit=5)[5]


@pytest.fixture(scope="module")
def night(person: Person, pictures: Path) -> Ran:
    """What cron mails of the first night."""
    shutil.copytree(pictures, person.folder / "datasets" / "cats")
    return _run(person)


def _run(person: Person) -> Ran:
    return person.run("sh", "-c", f"{_command()} {' '.join(QUICK)}", environ={"TZ": NO_MIDNIGHT})


def test_a_night_without_a_failure_prints_nothing_and_is_one_job(person: Person, night: Ran) -> None:
    for ran in (night, _run(person)):
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    (job,) = person.home.run("jobs", "--all", "--json").json()
    assert (job["outcome"], job["limits"]["max_hours"]) == ("COMPLETED", 6.0)


def test_a_failure_is_printed_with_the_end_of_the_log(person: Person, night: Ran) -> None:
    """Once more in the same night, as if its training had failed: the script watches it again."""
    assert night.code == 0, night.out
    (job,) = person.home.store.jobs.listed(with_ended=True)
    with as_failed(person.home.store, job.id):
        ran = _run(person)
    assert ran.code == 41
    assert "ended with exit code 41" in ran.out
    assert "FAILED" in ran.out
