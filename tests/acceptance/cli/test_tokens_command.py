"""`tokens` and `audit` as an operator types them."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from stationmaster.cli.commands import app
from stationmaster.errors import NotSignedIn, StationmasterError
from stationmaster.model import Right, Role
from stationmaster.station.audit import AuditEntry
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.store.engine import Database
from stationmaster.store.store import Store


class Terminal:
    """Commands in a home of their own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environ = {"STATIONMASTER_HOME": str(home)}

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, list(words), env=self.environ)

    def said(self, *words: str) -> Result:
        result = self.run(*words)
        assert result.exit_code == 0, result.output
        return result

    def json(self, *words: str) -> Any:
        return json.loads(self.said(*words, "--json").stdout)

    def store(self) -> Store:
        return Store(Database(f"sqlite:///{self.home}/stationmaster.db"))


@pytest.fixture
def terminal(tmp_path: Path) -> Terminal:
    opened = Terminal(tmp_path / "home")
    opened.said("users", "add", "ann", "--role", "admin")
    return opened


def test_a_script_gets_the_secret_alone_and_a_person_hears_more(terminal: Terminal) -> None:
    created = terminal.said("tokens", "create", "bot", "--user", "ann", "--right", "read", "--right", "train")
    secret = created.stdout.strip()
    assert created.stdout == f"{secret}\n"
    assert secret.startswith("sm_")
    assert "of ann (read, train); it is not shown again" in created.stderr
    assert secret not in terminal.said("tokens", "list").output
    with closing(terminal.store()) as store:
        caller = LocalDoorkeeper(store).caller_of_token(secret)
    assert (caller.user, caller.role, set(caller.rights)) == ("ann", Role.ADMIN, {Right.READ, Right.TRAIN})


def test_a_token_is_listed_and_revoked(terminal: Terminal) -> None:
    created = terminal.json("tokens", "create", "bot", "--expires", "90d")
    secret = created.pop("secret")
    assert created == {**created, "name": "bot", "user": "me", "rights": ["manage", "read", "train"]}
    assert terminal.json("tokens", "list", "--user", "me") == [created]
    assert terminal.json("tokens", "list", "--user", "ann") == []
    titles, line = terminal.said("tokens", "list").stdout.splitlines()
    assert titles.split() == ["ID", "NAME", "USER", "RIGHTS", "EXPIRES", "LAST", "USED"]
    assert line.split()[:5] == [created["id"], "bot", "me", "manage,read,train", "until"]
    assert line.endswith(" never")
    assert terminal.said("tokens", "revoke", created["id"]).stdout == f"revoked {created['id']} (bot of me)\n"
    assert " revoked " in terminal.said("tokens", "list").stdout
    with closing(terminal.store()) as store, pytest.raises(NotSignedIn):
        LocalDoorkeeper(store).caller_of_token(secret)


def test_a_link_is_printed_alone_with_the_address_of_the_service(terminal: Terminal) -> None:
    printed = terminal.said("tokens", "link", "--user", "ann")
    assert printed.stdout.startswith("http://127.0.0.1:8080/sign-in#")
    assert printed.stderr == "signs a browser in as ann, once, within 10m:\n"
    terminal.environ["STATIONMASTER_SERVE__PUBLIC_URL"] = "https://station.example.org"
    link = terminal.json("tokens", "link")
    assert link["url"] == f"https://station.example.org/sign-in#{link['code']}"
    assert link["user"] == "me"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("create", "bot", "--user", "bob"), "there is no user bob"),
        (("create", "bot", "--expires", "soon"), "expires: 'soon' is not a duration"),
        (("create", "bot", "--expires", "0"), "expires: must be above zero"),
        (("create", " "), "a token's name has 1 to 100 printable characters"),
        (("revoke", "nothing"), "there is no token nothing"),
        (("link", "--user", "bob"), "there is no user bob"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line_with_a_hint(
    terminal: Terminal, words: tuple[str, ...], said: str
) -> None:
    problem = terminal.run("tokens", *words).exception
    assert isinstance(problem, StationmasterError)
    assert said in str(problem)
    assert problem.hint


def test_the_audit_log_is_printed_newest_first(terminal: Terminal) -> None:
    assert terminal.said("audit").stdout == "no entries; `stationmaster serve` writes them\n"
    with closing(terminal.store()) as store:
        for user, subject, status in (("ann", "cats", 200), (None, "two\nlines", 401)):
            entry = AuditEntry(
                at=0.0,
                user=user,
                token=None,
                action="POST /api/jobs/{job}/stop",
                subject=subject,
                status=status,
                address="127.0.0.1",
            )
            LocalDoorkeeper(store).record(entry)
    titles, refused, done = terminal.said("audit").stdout.splitlines()
    assert titles.split() == ["TIME", "STATUS", "USER", "ADDRESS", "ACTION"]
    assert re.search(r"401 +unknown +127.0.0.1 +POST /api/jobs/{job}/stop two\\nlines$", refused)
    assert re.search(r"200 +ann +127.0.0.1 +POST /api/jobs/{job}/stop cats$", done)
    assert [one["subject"] for one in terminal.json("audit", "--user", "ann")] == ["cats"]
    assert len(terminal.json("audit", "--limit", "1")) == 1
