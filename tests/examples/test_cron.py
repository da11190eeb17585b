"""examples/cron: the line of the crontab, as cron gives it to sh."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.support.commands.example_runs import EXAMPLES, QUICK, Person

EXAMPLE = EXAMPLES / "cron"


def _command() -> str:
    (line,) = (line for line in (EXAMPLE / "crontab").read_text().splitlines() if line[:1].isdigit())
    return line.split(maxsplit=5)[5]


def test_a_night_without_a_failure_prints_nothing_and_is_one_job(person: Person, pictures: Path) -> None:
    shutil.copytree(pictures, person.folder / "datasets" / "cats")
    for _ in range(2):
        ran = person.run("sh", "-c", f"{_command()} {' '.join(QUICK)}")
        assert (ran.code, ran.out, ran.err) == (0, "", "")
    (job,) = person.home.run("jobs", "--all", "--json").json()
    assert (job["outcome"], job["limits"]["max_hours"]) == ("COMPLETED", 6.0)


def test_a_failure_is_printed_with_the_end_of_the_log(person: Person, pictures: Path) -> None:
    other = shutil.copytree(pictures, person.folder / "datasets" / "dogs")
    ran = person.run(EXAMPLE / "nightly.sh", other, *QUICK, "-p", "fault=crash", "-p", "fault_at=5")
    assert ran.code == 41
    assert "ended with exit code 41" in ran.out
    assert "FAILED" in ran.out
