"""examples/budget: its limits count, and the check of the spending passes and fails."""

from __future__ import annotations

from tests.support.commands.example_runs import EXAMPLES, Person
from tests.support.jobs.stored_jobs import cost_of, put_trained

EXAMPLE = EXAMPLES / "budget"


def test_the_limits_are_those_of_the_file(person: Person) -> None:
    budget = person.home.run("costs", "--budget", "--json", STATIONMASTER_CONFIG=str(EXAMPLE / "config.toml")).json()
    assert (budget["daily_limit_usd"], budget["hourly_alert_usd"], budget["max_rentals"]) == (20, 3, 3)


def test_the_check_fails_once_more_was_spent(person: Person) -> None:
    nothing = person.run(EXAMPLE / "check-spend.sh", "0")
    assert nothing.code == 0, nothing.err
    store = person.home.store
    put_trained(store, "paid")
    store.costs.put_without_lease(cost_of("paid", started_at=store.now() - 3600, ended_at=store.now()))
    assert person.run(EXAMPLE / "check-spend.sh", "100000").code == 0
    too_much = person.run(EXAMPLE / "check-spend.sh", "0.01", "1")
    assert (too_much.code, "limit $0.01" in too_much.out) == (1, True)
