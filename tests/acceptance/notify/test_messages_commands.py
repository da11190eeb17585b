"""`users` and `notify` as people type them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from stationmaster.cli.commands import app
from stationmaster.errors import StationmasterError
from tests.support.servers.messenger_server import MessengerServer


class Terminal:
    """Commands in a home of their own."""

    def __init__(self, home: Path, environ: dict[str, str]) -> None:
        self.environ = {"STATIONMASTER_HOME": str(home), **environ}

    def run(self, *words: str) -> Result:
        return CliRunner().invoke(app, list(words), env=self.environ)

    def refused(self, *words: str) -> StationmasterError:
        result = self.run(*words)
        assert isinstance(result.exception, StationmasterError), result.output
        return result.exception


@pytest.fixture
def server() -> Iterator[MessengerServer]:
    with MessengerServer() as started:
        yield started


@pytest.fixture
def terminal(tmp_path: Path, server: MessengerServer) -> Terminal:
    return Terminal(tmp_path / "home", server.environ)


def test_a_person_is_added_changed_listed_and_removed(terminal: Terminal) -> None:
    assert terminal.run("users", "add", "ann", "--telegram-id", "17").exit_code == 0
    changed = terminal.run(
        "users", "set", "ann", "--discord-id", "4", "--quiet-hours", "22:00-07:00", "--mute", "epoch"
    )
    assert changed.output == "changed ann: telegram 17, discord 4; quiet 22:00-07:00 UTC; muted: epoch\n"
    taken = terminal.run(
        "users", "set", "ann", "--telegram-id", "", "--quiet-hours", "", "--unmute", "epoch", "--inbox"
    )
    assert taken.output == "changed ann: discord 4, inbox\n"
    titles, line = terminal.run("users", "list").output.splitlines()
    assert titles.split() == ["NAME", "ROLE", "REACHED", "BY"]
    assert line.split() == ["ann", "user", "discord", "4,", "inbox"]
    assert terminal.run("users", "rm", "ann").exit_code == 0
    assert terminal.run("users", "list", "--json").output == "[]\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("users", "set", "bob"), "there is no user bob"),
        (("users", "add", "me"), "me is a reserved name"),
        (("users", "add", "bob", "--quiet-hours", "late"), "--quiet-hours: 'late' is not a span of hours"),
        (("users", "add", "bob", "--time-zone", "Mars"), "--time-zone: Mars is not a time zone"),
        (("users", "add", "bob", "--mute", "noise"), "noise is not a kind of notification"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(terminal: Terminal, words: tuple[str, ...], said: str) -> None:
    assert said in str(terminal.refused(*words))


def test_every_way_of_a_person_is_tried(terminal: Terminal, server: MessengerServer) -> None:
    terminal.run("users", "add", "ann", "--telegram-id", "17", "--discord-id", "4", "--inbox")
    done = terminal.run("notify", "test", "--user", "ann")
    assert (done.exit_code, done.output.split()) == (0, ["telegram", "sent", "discord", "sent", "inbox", "sent"])
    assert [message.service for message in server.received] == ["telegram", "discord"]
    assert server.wrong == []


def test_operators_are_reached_through_apprise(terminal: Terminal, server: MessengerServer) -> None:
    terminal.environ["STATIONMASTER_NOTIFY__OPERATORS__APPRISE_URLS"] = f'["{server.apprise_url}"]'
    done = terminal.run("notify", "test", "--operators", "--message", "first <b>*_")
    assert (done.exit_code, done.output.split()) == (0, ["apprise", "sent"])
    assert "first <b>*_" in server.texts("apprise")[0]


def test_a_way_that_does_not_work_says_why(terminal: Terminal) -> None:
    terminal.run("users", "add", "ann", "--telegram-id", "17")
    terminal.environ["STATIONMASTER_NOTIFY__TELEGRAM_BOT_TOKEN"] = "1:wrong"
    done = terminal.run("notify", "test", "--user", "ann")
    assert done.exit_code == 50
    assert "Unauthorized" in done.output
    assert "1:wrong" not in done.output


def test_a_person_without_a_way_is_an_error(terminal: Terminal) -> None:
    terminal.run("users", "add", "ann")
    assert str(terminal.refused("notify", "test", "--user", "ann")) == "No notification channel for user ann"


def test_the_inbox_shows_messages_once_and_jobs_counts_them(terminal: Terminal) -> None:
    terminal.run("notify", "test", "--message", "first <b>*_")
    assert "1 unread message(s): stationmaster notify inbox" in terminal.run("jobs").output
    assert "first <b>*_" in terminal.run("notify", "inbox", "--keep").output
    assert "first <b>*_" in terminal.run("notify", "inbox").output
    assert terminal.run("notify", "inbox").output == "no unread messages; --all shows the others\n"
    assert "first <b>*_" in terminal.run("notify", "inbox", "--all").output
    assert "unread" not in terminal.run("jobs").output
