"""Keys, tokens and signed links go over https, except to this computer and to hosts that a person allowed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
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
@settings(derandomize=True, deadline=None, max_examples=150)
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
