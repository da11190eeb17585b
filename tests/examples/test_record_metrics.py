"""examples/record-metrics: what the script records is what the commands show."""

from __future__ import annotations

import sys

from tests.support.commands.example_runs import EXAMPLES, Person

EXAMPLE = EXAMPLES / "record-metrics"


def test_every_step_is_recorded_and_shown(person: Person) -> None:
    ran = person.run(sys.executable, EXAMPLE / "train.py", "120")
    assert ran.code == 0, ran.err
    metrics = person.home.run("metrics", "aitk_db.db", "--json").json()
    assert metrics["summary"]["steps"] == 120
    assert {"loss", "weight", "val_loss"} <= {series["name"] for series in metrics["series"]}
    exported = person.home.run("metrics", "aitk_db.db", "--export", "run.csv", "--table", "StepMetric")
    assert exported.code == 0, exported.err
    assert len((person.folder / "run.csv").read_text().splitlines()) == 121
    assert person.home.run("analyze", "aitk_db.db").code == 0
