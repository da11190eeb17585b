"""Which station a command asks, with which token, and what refuses to run with a server."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from stationmaster.cli.commands import COMMANDS
from stationmaster.errors import ConfigInvalid
from stationmaster.station.http.station import HttpStation
from stationmaster.station.local.station import LocalStation
from stationmaster.station.local.token_file import NAME as TOKEN_FILE
from stationmaster.station.opening import open_station_or_server
from tests.support.commands.command_line import stationmaster
from tests.support.commands.imports import run

NOWHERE = "http://127.0.0.1:9"
ARGUMENTS = {"ssh": ("cats",), "keys": ("check",), "store": ("show",)}
HERE = [line.name for line in COMMANDS if line.needs_here]


def _bearer(home: Path, server: str, **environ: str) -> str | None:
    """What is sent to a server."""
    station = open_station_or_server({"STATIONMASTER_HOME": str(home), **environ}, server=server)
    assert isinstance(station, HttpStation)
    with closing(station):
        found = station.connection.client.headers.get("authorization")
        return None if found is None else str(found)


def test_without_a_server_it_is_this_computer_s_station(tmp_path: Path) -> None:
    with closing(open_station_or_server({"STATIONMASTER_HOME": str(tmp_path)})) as station:
        assert isinstance(station, LocalStation)


def test_the_option_wins_over_the_setting(tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_SERVER": "https://setting.example.org"}
    for server, url in (
        ("https://option.example.org", "https://option.example.org"),
        (None, environ["STATIONMASTER_SERVER"]),
    ):
        station = open_station_or_server(environ, server=server)
        assert isinstance(station, HttpStation)
        with closing(station):
            assert station.connection.url == url


def test_the_token_of_the_settings_is_sent(tmp_path: Path) -> None:
    assert _bearer(tmp_path, "https://station.example.org", STATIONMASTER_TOKEN="abc") == "Bearer abc"


def test_a_server_on_this_computer_gets_the_token_that_it_wrote_into_the_home(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("own\n")
    assert _bearer(tmp_path, "http://127.0.0.1:8080") == "Bearer own"
    assert _bearer(tmp_path, "http://localhost:8080") == "Bearer own"


def test_no_other_server_gets_that_token(tmp_path: Path) -> None:
    (tmp_path / TOKEN_FILE).write_text("own\n")
    assert _bearer(tmp_path, "https://station.example.org") is None
    assert _bearer(tmp_path, "https://127.0.0.1.example.org") is None


@pytest.mark.parametrize("content", [b"\xff\xfe", "t\u00f6ken".encode(), b"one\ntwo", b""])
def test_a_file_that_is_no_token_is_not_sent(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TOKEN_FILE).write_bytes(content)
    assert _bearer(tmp_path, "http://127.0.0.1:8080") is None


@pytest.mark.parametrize("server", ["https://\u2603.net", "https://xn--a.org"])
def test_a_host_name_that_cannot_exist_is_one_line(tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigInvalid, match="the host name in the address is not valid"):
        _bearer(tmp_path, server)


def test_a_server_that_would_get_the_token_unencrypted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="server: plain HTTP would send keys unencrypted"):
        _bearer(tmp_path, "http://station.example.org", STATIONMASTER_TOKEN="abc")


@pytest.mark.parametrize(
    "server", ["http://ann:secret@station.example.org", "station.example.org", "ftp://x", "http://x?y"]
)
def test_an_address_that_no_client_can_use_is_refused_without_repeating_it(tmp_path: Path, server: str) -> None:
    with pytest.raises(ConfigInvalid, match="server: must be") as refused:
        open_station_or_server({"STATIONMASTER_HOME": str(tmp_path)}, server=server)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", HERE)
def test_a_command_for_this_computer_refuses_a_server_and_touches_nothing(tmp_path: Path, name: str) -> None:
    home = tmp_path / "home"
    environ = {"STATIONMASTER_HOME": str(home), "STATIONMASTER_SERVER": NOWHERE, "HOME": str(tmp_path)}
    done = stationmaster(name, *ARGUMENTS.get(name, ()), environ=environ, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(f"error: `{name}` runs on this computer, not on a server\nhint: leave out --server")
    assert not home.exists()


def test_its_help_is_shown_all_the_same(tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path), "STATIONMASTER_SERVER": NOWHERE}
    for words in (("worker", "--help"), ("keys", "check", "-h")):
        done = stationmaster(*words, environ=environ, cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, "")
        assert f"Usage: stationmaster {words[0]}" in done.stdout


def test_a_server_that_does_not_answer_is_one_line_and_no_store_is_opened(tmp_path: Path) -> None:
    home = tmp_path / "home"
    printed, modules = run("notify", "inbox", "--server", NOWHERE, environ={"STATIONMASTER_HOME": str(home)})
    assert f"error: {NOWHERE} does not answer" in printed
    assert "hint: check the address" in printed
    assert not home.exists()
    assert "sqlalchemy" not in modules
