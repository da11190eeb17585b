"""`stationmaster init` at a terminal and in a pipe."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from stationmaster.config import load_settings
from tests.support.commands.cli_runs import Home
from tests.support.commands.command_line import command_server
from tests.support.commands.terminal import CTRL_C, Session, at_terminal

CHOICE = "Choice [1]:"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    with Home(tmp_path) as opened:
        yield opened


def converse(home: Home, choices: str, /, *words: str, **answers: str) -> Session:
    """At a terminal; `choices` are the numbers that are typed in turn, `answers` what follows their questions."""
    numbers = iter(choices.split())
    questions = {question.replace("_", " "): answer for question, answer in answers.items()}
    return at_terminal(
        [command_server().own_command, "init", *words],
        environ={**home.environ, "TERM": "xterm"},
        cwd=home.folder,
        answers={**questions, CHOICE: lambda: next(numbers, "")},
        seconds=120,
    )


def test_a_person_answers_and_no_secret_is_shown(home: Home) -> None:
    done = converse(
        home,
        "2 1 telegram",
        **{"Vast.ai_API_key": "planted-key", "dollars_per_hour": "0.60", "Daily_spending": "20"},
        Token_of_the_bot="123:planted-token",
        Telegram_chat="4711",
    )
    assert done.code == 0, done.shown
    assert "planted" not in done.shown
    path = home.path / "config.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert f"wrote {path}" in done.shown
    assert "stationmaster keys setup" in done.shown
    found = load_settings({"STATIONMASTER_HOME": str(home.path)}, folder=home.folder)
    assert found.vastai.api_key is not None
    assert found.vastai.api_key.get_secret_value() == "planted-key"
    assert (found.provider, found.vastai.max_bid_per_hour, found.limits.daily_spend) == ("vastai", 600_000, 20_000_000)
    assert found.notify.telegram_id == "4711"


def test_enter_takes_every_default_and_the_file_is_not_replaced_without_force(home: Home) -> None:
    first = converse(home, "")
    assert first.code == 0, first.shown
    text = (home.path / "config.toml").read_text()
    assert "provider = " in text
    second = converse(home, "")
    assert (second.code, "exists" in second.shown) == (2, True)
    third = converse(home, "4 1 1", "--force")
    assert third.code == 0, third.shown
    assert (home.path / "config.toml.old").read_text() == text


def test_an_answer_that_is_not_valid_is_asked_for_again(home: Home) -> None:
    done = converse(home, "9 mars 3 1 1", Your_machine="ann@gpu-box:2222")
    assert done.code == 0, done.shown
    assert "9 is not one of them" in done.shown
    (host,) = load_settings({"STATIONMASTER_HOME": str(home.path)}, folder=home.folder).ssh.hosts
    assert (host.address, host.user, host.port) == ("gpu-box", "ann", 2222)


def test_ctrl_c_writes_nothing(home: Home) -> None:
    done = converse(home, CTRL_C)
    assert (done.code, "aborted; nothing was changed" in done.shown) == (130, True)
    assert not home.path.exists()


def test_a_pipe_is_never_asked(home: Home) -> None:
    refused = home.run("init")
    assert (refused.code, "hint: pass --yes" in refused.err, home.path.exists()) == (2, True, False)
    quiet = home.run("init", "--yes", "--quiet", "--set", "provider=simulator", "--set", "limits.daily_spend=5")
    assert (quiet.code, quiet.out) == (0, f"{home.path}/config.toml\n")
    assert "provider simulator" in home.run("doctor", "--offline").out
    wrong = home.run("init", "--yes", "--force", "--set", "limits.daily_spend=much")
    assert (wrong.code, "limits.daily_spend" in wrong.err) == (3, True)
    assert "provider simulator" in home.run("doctor", "--offline").out
