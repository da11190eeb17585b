"""Keys, tokens and signed links go over https, except to this computer and to hosts that a person allowed."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from stationmaster.config import load_settings
from stationmaster.errors import ConfigInvalid
from stationmaster.settings import Settings
from stationmaster.settings.addresses import is_loopback
from stationmaster.settings.plain_http import KEY_ADDRESSES
from tests.support.commands.command_line import stationmaster

WITHOUT_KEYS = {"notify.page_url"}  # a link in messages; nothing is sent there
ALSO_NEEDED = {"STATIONMASTER_NOTIFY__OPERATORS__WEBHOOK_SECRET": "whsec"}
REACHED = "http://169.254.10.7:9000"


def loaded(folder: Path, name: str, address: str, **more: str) -> Settings:
    variable = "STATIONMASTER_" + name.upper().replace(".", "__")
    environ = {"STATIONMASTER_HOME": str(folder), **ALSO_NEEDED, variable: address, **more}
    return load_settings(environ, folder=folder)


@pytest.mark.parametrize("name", KEY_ADDRESSES)
@pytest.mark.parametrize("host", ["169.254.10.7:9000", "minio.lan", "[fd00::7]", "localhost.example.com"])
def test_an_address_that_gets_keys_must_be_https(tmp_path: Path, name: str, host: str) -> None:
    with pytest.raises(ConfigInvalid, match=f"{name}: plain HTTP would send keys unencrypted to ") as refused:
        loaded(tmp_path, name, f"http://{host}")
    assert "use https://" in str(refused.value)
    assert "plain_http_hosts" in str(refused.value)
    assert loaded(tmp_path, name, f"https://{host}")


@pytest.mark.parametrize("name", KEY_ADDRESSES)
@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:7", "[::1]:80", "127.9.9.9", "LOCALHOST"])
def test_this_computer_needs_no_encryption(tmp_path: Path, name: str, host: str) -> None:
    assert loaded(tmp_path, name, f"http://{host}")


@pytest.mark.parametrize("name", KEY_ADDRESSES)
def test_a_person_can_allow_a_host_of_their_own_network_and_only_that_host(tmp_path: Path, name: str) -> None:
    allowed = {"STATIONMASTER_PLAIN_HTTP_HOSTS": '["169.254.10.7"]'}
    assert loaded(tmp_path, name, REACHED, **allowed)
    with pytest.raises(ConfigInvalid, match="plain HTTP"):
        loaded(tmp_path, name, "http://169.254.10.70:9000", **allowed)


def test_no_setting_that_is_a_web_address_is_forgotten() -> None:
    assert {name for name, kind in _fields(Settings) if "_url" in kind} == {*KEY_ADDRESSES, *WITHOUT_KEYS}


def test_the_server_option_sends_no_token_over_plain_http(tmp_path: Path) -> None:
    environ = {"STATIONMASTER_HOME": str(tmp_path / "home"), "STATIONMASTER_TOKEN": "planted", "HOME": str(tmp_path)}
    done = stationmaster("jobs", "--server", REACHED, environ=environ, cwd=tmp_path)
    assert done.returncode == 3
    error, hint = done.stderr.splitlines()
    assert error.startswith("error: server: plain HTTP would send keys unencrypted to 169.254.10.7; use https://")
    assert hint.startswith("hint: ")
    assert "planted" not in done.stderr


_HOSTS = st.one_of(
    st.ip_addresses(v=4).map(str),
    st.ip_addresses(v=6).map(lambda found: f"[{found}]"),
    st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True),
)


@given(host=_HOSTS, user=st.sampled_from(["", "127.0.0.1@", "localhost:80@"]), path=st.sampled_from(["", "/127.0.0.1"]))
def test_what_counts_as_this_computer_is_where_the_request_goes(host: str, user: str, path: str) -> None:
    url = f"http://{user}{host}{path}"
    try:
        reached = httpx.URL(url).host
    except httpx.InvalidURL:
        return
    is_here = reached in ("localhost", "::1") or (reached.startswith("127.") and reached.count(".") == 3)
    assert is_here or not is_loopback(url)


def _fields(model: type[BaseModel], path: str = "") -> Iterator[tuple[str, str]]:
    """(dotted name, names of the checks of its value) of every setting."""
    for name, info in model.model_fields.items():
        section: Any = info.annotation
        if isinstance(section, type) and issubclass(section, BaseModel):
            yield from _fields(section, f"{path}{name}.")
        else:
            yield f"{path}{name}", f"{_checks(info.annotation)} {_checks_in(info.metadata)}"


def _checks(annotation: Any) -> str:
    inner = " ".join(_checks(each) for each in getattr(annotation, "__args__", ()))
    return f"{inner} {_checks_in(getattr(annotation, '__metadata__', ()))}"


def _checks_in(metadata: Any) -> str:
    """A check of addresses is named checked_…url; the one of secret addresses calls it."""
    checks = (getattr(each, "func", None) for each in metadata)
    return " ".join(f"{check.__name__} {' '.join(check.__code__.co_names)}" for check in checks if check is not None)


@contextmanager
def _redirecting() -> Iterator[tuple[str, list[str], list[str]]]:
    """A server that sends every request on to another host, and what each of the two was asked."""
    asked: tuple[list[str], list[str]] = ([], [])

    def answering(place: int, target: str | None) -> type[BaseHTTPRequestHandler]:
        class Answering(BaseHTTPRequestHandler):
            def answer(self) -> None:
                asked[place].append(f"{self.command} {self.path}")
                self.send_response(200 if target is None else 307)
                if target is not None:
                    self.send_header("Location", f"{target}{self.path}")
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_POST = do_PUT = answer

            def log_message(self, *_: object) -> None:
                pass

        return Answering

    with _served(answering(1, None)) as elsewhere, _served(answering(0, elsewhere)) as first:
        yield first, *asked


@contextmanager
def _served(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


REDIRECTED = {
    "the server": ({"STATIONMASTER_TOKEN": "planted", "STATIONMASTER_SERVER": "{url}"}, ("jobs",)),
    "Vast.ai": ({"VASTAI_API_KEY": "planted", "VASTAI_API_BASE_URL": "{url}"}, ("offers", "--provider", "vastai")),
    "Telegram": (
        {
            "STATIONMASTER_NOTIFY__TELEGRAM_BOT_TOKEN": "planted",
            "STATIONMASTER_NOTIFY__TELEGRAM_BASE_URL": "{url}",
            "STATIONMASTER_NOTIFY__TELEGRAM_ID": "123",
        },
        ("notify", "test"),
    ),
    "Discord": (
        {
            "STATIONMASTER_NOTIFY__DISCORD_BOT_TOKEN": "planted",
            "STATIONMASTER_NOTIFY__DISCORD_BASE_URL": "{url}",
            "STATIONMASTER_NOTIFY__DISCORD_ID": "123",
        },
        ("notify", "test"),
    ),
    "Slack": ({"STATIONMASTER_NOTIFY__OPERATORS__SLACK_URL": "{url}/planted"}, ("notify", "test", "--operators")),
    "the webhook": (
        {"STATIONMASTER_NOTIFY__OPERATORS__WEBHOOK_URL": "{url}/planted", **ALSO_NEEDED},
        ("notify", "test", "--operators"),
    ),
}


@pytest.mark.parametrize("service", REDIRECTED)
def test_no_key_or_message_follows_a_redirect_to_another_host(tmp_path: Path, service: str) -> None:
    variables, words = REDIRECTED[service]
    with _redirecting() as (url, first, elsewhere):
        environ = {name: value.replace("{url}", url) for name, value in variables.items()}
        home = {"STATIONMASTER_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        done = stationmaster(*words, environ={**home, **environ}, cwd=tmp_path)
    assert done.returncode != 0, done.stdout
    assert first
    assert elsewhere == []
