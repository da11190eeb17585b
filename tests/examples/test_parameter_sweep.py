"""examples/parameter-sweep: every combination becomes one job, also when the script is run twice."""

from __future__ import annotations

from pathlib import Path

from tests.support.commands.example_runs import EXAMPLES, QUICK, Person

EXAMPLE = EXAMPLES / "parameter-sweep"


def test_each_combination_is_trained_once_and_compared(person: Person, pictures: Path) -> None:
    grid = {"RANKS": "2 4", "RATES": "0.01"}
    for _ in range(2):
        ran = person.run(EXAMPLE / "sweep.sh", "cats", pictures, *QUICK, environ=grid)
        assert ran.code == 0, ran.err
    rows = [line.split("\t") for line in ran.out.splitlines() if line.count("\t") == 3]
    assert rows[0] == ["LOSS", "COST", "STATE", "JOB"]
    assert sorted((row[2], row[3]) for row in rows[1:]) == [
        ("COMPLETED", "cats-r2-lr0p01"),
        ("COMPLETED", "cats-r4-lr0p01"),
    ]
    assert float(rows[1][0]) <= float(rows[2][0])
    jobs = person.home.run("jobs", "--all", "--json").json()
    assert sorted(job["parameters"]["rank"] for job in jobs) == [2, 4]
