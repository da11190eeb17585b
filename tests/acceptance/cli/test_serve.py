"""`stationmaster serve` and `stationmaster up` as processes."""

from __future__ import annotations

import signal
import socket
import ssl
import stat
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import httpx
import pytest

from stationmaster.api.server import HttpService, ServiceCrashed
from stationmaster.control.worker.settings_source import SettingsSource
from stationmaster.errors import ConfigInvalid
from stationmaster.station.local.doorkeeper import LocalDoorkeeper
from stationmaster.station.local.station import open_station
from stationmaster.station.local.token_file import ensure_token_file, read_token_file
from tests.support.commands.cli_runs import Home
from tests.support.servers.serve_process import served
from tests.support.waiting import PATIENCE_SECONDS, until

get, post = partial(httpx.get, timeout=PATIENCE_SECONDS), partial(httpx.post, timeout=PATIENCE_SECONDS)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_it_says_where_it_answers_signs_a_browser_in_and_leaves_when_told(tmp_path: Path) -> None:
    with served(tmp_path) as serve:
        assert get(f"{serve.url}/readyz").json() == {"ready": True, "uploads": False}
        assert serve.link == f"{serve.url}/sign-in#{serve.code}"
        assert get(serve.link).status_code == 200
        signed_in = post(f"{serve.url}/api/session", json={"code": serve.code})
        assert signed_in.json()["role"] == "admin"
        assert get(f"{serve.url}/api/server", headers=bearer(serve.token)).json()["caller"]["user"] == "me"
        assert stat.S_IMODE((tmp_path / "serve.token").stat().st_mode) == 0o600
        assert serve.end() == 0
    assert "Traceback" not in serve.err
    assert "no_tls" not in serve.err


def source_of(home: Path, **settings: object) -> SettingsSource:
    environ = {"STATIONMASTER_HOME": str(home), **{f"STATIONMASTER_SERVE__{k}": str(v) for k, v in settings.items()}}
    return SettingsSource(environ, folder=home)


def test_a_public_address_without_a_bucket_is_told_at_the_start(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = source_of(tmp_path, PORT=0, PUBLIC_URL="https://station.example.org")
    with HttpService(source) as service, service.beside():
        assert get(f"{service.url}/readyz").json() == {"ready": True, "uploads": False}
        assert get(service.url, headers={"Host": "station.example.org"}).status_code == 200
    said = capsys.readouterr().out
    assert "uploads.off" in said
    assert "bucket.name" in said


def test_a_port_in_use_is_one_line_and_a_hint(home: Home) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for command in ("serve", "up"):
            said = home.run(command, "--port", port)
            assert (said.code, said.out) == (3, "")
            assert [line.split(":")[0] for line in said.err.splitlines()] == ["error", "hint"]
            assert port in said.err


def test_without_sign_in_it_listens_on_loopback_only(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="loopback"):
        source_of(tmp_path, AUTH="false", HOST="0.0.0.0")
    with HttpService(source_of(tmp_path, AUTH="false", PORT=0)) as service, service.beside():
        assert (service.sign_in_link(), service.token_file) == (None, None)
        assert get(f"{service.url}/api/server").json()["caller"]["role"] == "admin"
    assert not (tmp_path / "serve.token").exists()


def test_plain_http_on_other_addresses_is_warned_about(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with HttpService(source_of(tmp_path, HOST="0.0.0.0", PORT=0)) as service, service.beside():
        assert get(f"{service.url}/api/server").status_code == 401
    assert "serve.no_tls" in capsys.readouterr().out
    with HttpService(source_of(tmp_path, HOST="0.0.0.0", PORT=0, PUBLIC_URL="https://station.example.org")):
        pass
    assert "serve.no_tls" not in capsys.readouterr().out


def test_it_serves_tls_itself_with_secure_cookies(tmp_path: Path) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    made = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*made, *named], check=True, capture_output=True)
    with HttpService(source_of(tmp_path, PORT=0, TLS_CERT=cert, TLS_KEY=key)) as service, service.beside():
        link = service.sign_in_link()
        assert link is not None
        assert link.startswith("https://127.0.0.1:")
        code = link.partition("#")[2]
        answer = post(f"{service.url}/api/session", json={"code": code}, verify=ssl.create_default_context(cafile=cert))
    assert "secure" in answer.headers["set-cookie"].lower()
    assert "strict-transport-security" in answer.headers


@pytest.mark.parametrize(("proxies", "is_believed"), [("[]", False), ('["127.0.0.1"]', True), ('["10.0.0.1"]', False)])
def test_only_a_named_proxy_says_where_a_request_comes_from(tmp_path: Path, proxies: str, is_believed: bool) -> None:
    with HttpService(source_of(tmp_path, PORT=0, PROXIES=proxies)) as service, service.beside():
        link = service.sign_in_link()
        assert link is not None
        forwarded = {"X-Forwarded-For": "203.0.113.9", "X-Forwarded-Proto": "https"}
        answer = post(f"{service.url}/api/session", json={"code": link.partition("#")[2]}, headers=forwarded)
        refused = get(f"{service.url}/api/server", headers={**forwarded, **bearer("sm_wrong")})
        entries = service.station.audit.entries(limit=1)
    assert (answer.status_code, refused.status_code) == (200, 401)
    assert ("secure" in answer.headers["set-cookie"].lower()) is is_believed
    assert entries[0].address == ("203.0.113.9" if is_believed else "127.0.0.1")


def test_a_certificate_that_cannot_be_used_is_one_line_and_a_hint(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid, match="each other"):
        source_of(tmp_path, TLS_CERT=tmp_path / "cert.pem")
    (tmp_path / "cert.pem").write_text("no certificate")
    with pytest.raises(ConfigInvalid, match="certificate"):
        HttpService(source_of(tmp_path, PORT=0, TLS_CERT=tmp_path / "cert.pem", TLS_KEY=tmp_path / "key.pem"))


def test_processes_that_start_together_agree_on_one_token_which_is_made_again_when_it_is_gone(tmp_path: Path) -> None:
    station = open_station({"STATIONMASTER_HOME": str(tmp_path)})
    doorkeeper = LocalDoorkeeper(station.store)

    def ensure() -> None:
        ensure_token_file(tmp_path, station.tokens, doorkeeper)

    starts = [threading.Thread(target=ensure) for _ in range(8)]
    for start in starts:
        start.start()
    for start in starts:
        start.join()
    assert len(station.tokens.listed()) == 1
    first = read_token_file(tmp_path)
    ensure()
    assert read_token_file(tmp_path) == first
    station.tokens.revoke(station.tokens.listed()[0].id)
    ensure()
    second = read_token_file(tmp_path)
    assert second != first
    (tmp_path / "serve.token").write_text("sm_" + "x" * 5000)
    (tmp_path / "serve.token").chmod(0o644)
    ensure()
    assert read_token_file(tmp_path) not in (first, second, None)
    assert stat.S_IMODE((tmp_path / "serve.token").stat().st_mode) == 0o600
    station.close()


def test_changed_settings_take_effect_without_a_restart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.toml"
    config.write_text("")
    environ = {
        "STATIONMASTER_HOME": str(tmp_path),
        "STATIONMASTER_CONFIG": str(config),
        "STATIONMASTER_SERVE__PORT": "0",
    }
    with HttpService(SettingsSource(environ, folder=tmp_path)) as service, service.beside():
        assert service.token_file is not None
        headers = bearer(service.token_file.read_text().strip())

        def credits_are_on() -> bool:
            found = get(f"{service.url}/api/credits", headers=headers)
            assert found.status_code == 200
            return bool(found.json()["enabled"])

        assert not credits_are_on()
        config.write_text("[billing]\nenabled = true\nnonsense = 5\n")
        until(lambda: "settings.unusable" in capsys.readouterr().out, "the refusal of invalid settings")
        assert not credits_are_on()
        config.write_text("[billing]\nenabled = true\n[serve]\nauth = false\n")
        until(credits_are_on, "the new settings")
        until(lambda: "serve.auth" in capsys.readouterr().out, "the warning that some need a restart")
        assert get(f"{service.url}/api/credits").status_code == 401


def test_a_service_that_fails_ends_what_runs_beside_it(tmp_path: Path) -> None:
    ended = threading.Event()

    def crash(service: HttpService) -> None:
        with service.beside():
            until(lambda: get(f"{service.url}/healthz").status_code == 200)
            loop = service._server.servers[0].get_loop()
            loop.call_soon_threadsafe(loop.stop)
            assert ended.wait(60), "a TERM to this process"

    before = signal.signal(signal.SIGTERM, lambda *_: ended.set())
    try:
        with HttpService(source_of(tmp_path, PORT=0)) as service, pytest.raises(ServiceCrashed, match="stopped"):
            crash(service)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_up_works_and_answers_in_one_process_and_ctrl_c_ends_both(tmp_path: Path) -> None:
    with served(tmp_path, command="up") as up:
        assert get(f"{up.url}/api/server", headers=bearer(up.token)).status_code == 200
        up.wait_for("worker.started")
        assert up.end(signal.SIGINT) == 0
    assert "worker.left" in up.err
    assert "Traceback" not in up.err


def test_up_beside_another_worker_answers_and_takes_over_when_that_one_leaves(tmp_path: Path) -> None:
    with served(tmp_path, command="up") as first:
        first.wait_for("worker.started")
        with served(tmp_path, command="up") as second:
            assert get(f"{second.url}/api/server", headers=bearer(first.token)).status_code == 200
            assert second.process.stdout is not None
            assert "already running" in second.process.stdout.readline()
            assert first.end() == 0
            second.wait_for("worker.started")
            assert second.end() == 0
    assert "worker.left" in first.err
    assert "worker.left" in second.err


@pytest.mark.parametrize("command", ["serve", "up"])
def test_the_link_is_opened_in_the_browser_if_you_ask_for_it(tmp_path: Path, command: str) -> None:
    opened = tmp_path / "opened"
    browser = {
        "BROWSER": f"{sys.executable} -c \"import pathlib, sys; pathlib.Path('{opened}').write_text(sys.argv[1])\" %s"
    }
    with served(tmp_path, command=command, options=["--open"], variables=browser) as serve:
        until(lambda: opened.exists() and opened.read_text() == serve.link, "the link in the browser")
        assert serve.end() == 0


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({}, "no display"),
        ({"SSH_CONNECTION": "192.0.2.1 1 192.0.2.2 22", "DISPLAY": ":0"}, "ssh -L"),
        ({"BROWSER": "/nonexistent/browser %s", "DISPLAY": ""}, "none could be started"),
    ],
)
def test_where_no_browser_can_be_opened_it_says_so_and_serves(
    tmp_path: Path, variables: dict[str, str], said: str
) -> None:
    with served(tmp_path, options=["--open"], variables=variables) as serve:
        serve.wait_for(said)
        assert get(f"{serve.url}/healthz").status_code == 200
        assert serve.end() == 0
    assert "Traceback" not in serve.err
