"""`credits` as an operator types it, and silence about it where nobody has any."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stationmaster.cli.commands import app, loaded_tree
from stationmaster.errors import ConfigInvalid, LedgerBroken, NotFound, OutOfCredit, StationmasterError, UserError
from stationmaster.model import CostLine, Outcome, Reason, State
from stationmaster.money import MicroDollars
from stationmaster.store.engine import Database
from stationmaster.store.store import Store
from stationmaster.store.tables import credit_lots
from stationmaster.store.writes import Write
from tests.support.jobs.spine_values import spec


class Terminal:
    """Commands in a home of their own."""

    def __init__(self, home: Path, **environ: str) -> None:
        self.home = home
        self.environ = {"STATIONMASTER_HOME": str(home), **environ}

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, list(words), env=self.environ)

    def said(self, *words: str) -> str:
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        return result.output

    def json(self, *words: str) -> Any:
        return json.loads(self.said(*words, "--json"))

    def refused(self, *words: str) -> StationmasterError:
        result = self.run(*words)
        assert isinstance(result.exception, StationmasterError), result.output
        return result.exception


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    opened = Terminal(tmp_path / "home", STATIONMASTER_BILLING__ENABLED="1")
    opened.said("users", "add", "ann", "--inbox")
    return opened


def test_credits_are_given_shown_and_put_right(terminal: Terminal) -> None:
    given = terminal.said("credits", "grant", "ann", "25", "--reason", "welcome", "--expires", "30d")
    assert given == "ann has $25.00 to spend, $0.00 held\n"
    terminal.said("credits", "grant", "ann", "5", "--as", "top-up", "--reason", "invoice 7", "--id", "invoice-7")
    again = terminal.said("credits", "grant", "ann", "5", "--as", "top-up", "--reason", "x", "--id", "invoice-7")
    assert again == "already done; nothing was changed: ann has $30.00 to spend, $0.00 held\n"
    assert terminal.said("credits", "adjust", "ann", "-0.5", "--reason", "slip").startswith("ann has $29.50 ")
    assert "$24.50 of $25.00 from" in terminal.said("credits", "show", "ann"), "what expires is spent first"
    assert terminal.said("users", "list").splitlines()[1].split() == ["ann", "user", "inbox", "$29.50"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--expires", "99999999999d"), "a duration is at most a hundred years"),
        (("--expires", "0"), "expires: must be above zero"),
    ],
)
def test_credits_that_could_never_be_spent_are_refused(terminal: Terminal, words: tuple[str, ...], said: str) -> None:
    problem = terminal.refused("credits", "grant", "ann", "5", "--reason", "x", *words)
    assert said in str(problem)
    assert problem.hint
    assert terminal.json("credits", "show") == []


def test_credits_need_a_reason(terminal: Terminal) -> None:
    assert terminal.run("credits", "grant", "ann", "5", "--reason", " ").exit_code == 2
    assert terminal.json("credits", "show") == []


def test_an_id_that_stands_for_something_else_is_refused(terminal: Terminal) -> None:
    terminal.said("users", "add", "bob", "--inbox")
    terminal.said("credits", "grant", "ann", "5", "--reason", "x", "--id", "invoice-7")
    others = (
        ("grant", "ann", "6"),
        ("grant", "bob", "5"),
        ("grant", "ann", "5", "--as", "reward"),
        ("adjust", "ann", "5"),
    )
    for words in others:
        problem = terminal.refused("credits", *words, "--reason", "x", "--id", "invoice-7")
        assert "is already used: GRANT of 5000000 micro-dollars for ann" in str(problem)
    terminal.said("credits", "grant", "ann", "2", "--reason", "x", "--expires", "1d")
    terminal.said("credits", "adjust", "ann", "-3", "--reason", "from two lots", "--id", "slip")
    assert "already done" in terminal.said("credits", "adjust", "ann", "-3", "--reason", "again", "--id", "slip")
    assert terminal.json("credits", "show", "ann")[0]["balance_micros"] == 4_000_000


def test_a_statement_and_an_export_tell_every_movement(terminal: Terminal) -> None:
    terminal.said("credits", "grant", "ann", "2", "--reason", "welcome, ann")
    terminal.said("credits", "adjust", "ann", "-0.25", "--reason", "slip")
    lines = terminal.said("credits", "statement", "ann").splitlines()
    assert [line.split(" ago")[1].split()[0] for line in lines[1:]] == ["GRANT", "ADJUSTMENT"]
    assert "$1.75" in lines[2]
    rows = list(csv.DictReader(io.StringIO(terminal.said("credits", "export"))))
    assert [(row["balance_micros"], row["note"]) for row in rows] == [("2000000", "welcome, ann"), ("-250000", "slip")]
    assert [str(entry["balance_micros"]) for entry in terminal.json("credits", "export", "ann")] == [
        row["balance_micros"] for row in rows
    ]


def test_verify_says_in_its_last_line_whether_the_ledger_is_sound(terminal: Terminal) -> None:
    terminal.said("credits", "grant", "ann", "2", "--reason", "welcome")
    last = terminal.said("credits", "verify").splitlines()[-1]
    assert last == "the ledger is sound: 1 entries, 1 users, $2.00 and $0.00 held"
    url = f"sqlite:///{terminal.home / 'stationmaster.db'}"
    with closing(Database(url)) as database, database.write() as connection:
        connection.execute(credit_lots.update().values(remaining=1_000_000))
    broken = terminal.refused("credits", "verify")
    assert isinstance(broken, LedgerBroken)
    assert str(broken).startswith("the ledger is not sound: ")


def test_points_are_shown_and_read_where_they_are_used(terminal: Terminal) -> None:
    terminal.environ["STATIONMASTER_BILLING__UNIT"] = "points"
    assert terminal.said("credits", "grant", "ann", "15120", "--reason", "x").startswith("ann has 15,120 points to")
    assert terminal.json("credits", "show", "ann")[0]["balance_micros"] == 1_512_000
    assert "whole number of points" in str(terminal.refused("credits", "grant", "ann", "1.5", "--reason", "x"))


@pytest.mark.parametrize(
    ("words", "kind", "said"),
    [
        (("grant", "bob", "1", "--reason", "x"), NotFound, "there is no user bob"),
        (("grant", "ann", "much", "--reason", "x"), UserError, "not an amount of money"),
        (("grant", "ann", "0", "--reason", "x"), UserError, "above zero"),
        (("grant", "ann", "1", "--as", "bribe", "--reason", "x"), UserError, "not a kind of credits"),
        (("grant", "ann", "1", "--expires", "soon", "--reason", "x"), UserError, "expires"),
        (("adjust", "ann", "-1", "--reason", "x"), OutOfCredit, "ann has less than that"),
        (("refund", "nothing", "--reason", "x"), NotFound, "there is no job nothing"),
        (("show", "bob"), NotFound, "there is no user bob"),
    ],
)
def test_what_cannot_be_done_is_said(
    terminal: Terminal, words: tuple[str, ...], kind: type[StationmasterError], said: str
) -> None:
    refused = terminal.refused("credits", *words)
    assert type(refused) is kind
    assert said in str(refused)
    assert terminal.said("credits", "verify").splitlines()[-1].startswith("the ledger is sound")


def test_without_billing_credits_are_off_and_nobody_hears_of_them(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "home")
    assert isinstance(terminal.refused("credits", "show"), ConfigInvalid)
    terminal.said("users", "add", "ann", "--inbox")
    assert "credits" not in terminal.said("users", "list", "--json")


def test_the_help_of_the_other_verbs_does_not_speak_of_credits() -> None:
    for name, text in helps(loaded_tree()):
        if not name.startswith("credits "):
            assert "credits" not in text, name
    assert "credits" not in CliRunner().invoke(app, ["--help"]).output


def helps(group: Any, path: str = "") -> Iterator[tuple[str, str]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from helps(command, f"{path}{name} ")
        options = " ".join(str(getattr(each, "help", "")) for each in command.params)
        yield f"{path}{name} ", f"{command.help} {options}"


def test_costs_are_exported_line_by_line_and_those_of_removed_jobs_stay(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "home")
    assert terminal.said("costs") == "no costs yet\n"
    paid = CostLine(
        rental_label="sm-1", job_id="job", kind="gpu", rate_per_hour=MicroDollars(360_000), started_at=1_000.0,
        ended_at=1_100.0, amount=MicroDollars(10_000), source="provider",
    )  # fmt: skip
    with closing(Store(Database(f"sqlite:///{terminal.home / 'stationmaster.db'}"))) as store:
        store.jobs.submit(spec("job"))
        (lease,) = store.leases.claim("worker", limit=1, seconds=60)
        over = replace(lease.job, state=State.ENDED, outcome=Outcome.CANCELLED, reason=Reason.CANCELLED_BY_USER)
        store.leases.settle(lease, Write(job=over, due_in=None, costs=(paid,)))
    assert terminal.json("costs", "--job", "job")[0]["idle_micros"] == 10_000
    assert "$0.01 in total" in terminal.said("costs")
    assert terminal.said("costs", "--over-time", "hour") == "no costs in this time\n"
    terminal.said("jobs", "rm", "job", "--yes")
    (row,) = csv.DictReader(io.StringIO(terminal.said("costs", "--csv")))
    assert (row["amount_micros"], row["source"], row["ended_at"]) == (
        "10000",
        "provider",
        "1970-01-01T00:18:20.000+00:00",
    )
    assert row["job"].startswith("job~")


def test_costs_are_shown_over_time(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path / "home")
    terminal.said("costs")
    with closing(Store(Database(f"sqlite:///{terminal.home / 'stationmaster.db'}"))) as store:
        now = store.now()
        for place, hours in enumerate((50, 3)):
            began = now - hours * 3600
            store.costs.put_without_lease(
                CostLine(
                    rental_label=f"sm-{place}",
                    job_id="job",
                    kind="gpu",
                    rate_per_hour=MicroDollars(360_000),
                    started_at=began,
                    ended_at=began + 1800,
                    amount=MicroDollars(180_000),
                    source="provider",
                )
            )
    assert terminal.said("costs", "--over-time", "day").splitlines()[-1].split() == ["total", "$0.3600"]
    by_hour = terminal.json("costs", "--over-time", "hour")
    assert (by_hour["part_seconds"], len(by_hour["parts"])) == (3600.0, 48)
    assert sum(part["amount_usd"] for part in by_hour["parts"]) == pytest.approx(0.18)
    assert "--over-time" in str(terminal.refused("costs", "--since", "2026-11-01"))
    assert "no limit" in terminal.said("costs", "--budget")
    assert terminal.json("costs", "--budget")["daily_limit_usd"] is None
    assert "--budget" in str(terminal.refused("costs", "--budget", "--csv"))
    assert "at most 1000" in str(terminal.refused("costs", "--over-time", "hour", "--since", "2020-01-01"))
