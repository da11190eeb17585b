"""Clients that open connections and hold them: a real `serve` goes on answering everybody else."""

from __future__ import annotations

import json
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.support.servers.serve_process import ServeProcess, served
from tests.support.waiting import until

HALVES = {
    "nothing": (b"", b""),
    "half a line": (b"GET /healthz HT", b"T"),
    "half a head": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Long: ", b"x"),
    "half a body": (b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50000\r\n\r\n{", b" "),
    "half a chunk": (b"POST /api/session HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n", b"1"),
}
"""How a request begins, and the byte that is sent now and then to keep it alive."""


@dataclass
class Crowd:
    """Connections of one address that are kept open by a byte now and then, and opened again when they are cut."""

    url: str
    size: int
    address: str = "127.0.0.1"
    held: list[tuple[socket.socket, bytes]] = field(default_factory=list)
    cut: int = 0

    def keep_up(self) -> Crowd:
        alive = []
        for connection, byte in self.held:
            if is_open(connection, byte):
                alive.append((connection, byte))
            else:
                connection.close()
                self.cut += 1
        self.held = alive
        while len(self.held) < self.size:
            begin, byte = list(HALVES.values())[len(self.held) % len(HALVES)]
            connection = connect(self.url, self.address)
            with suppress(OSError):
                connection.sendall(begin)
            self.held.append((connection, byte))
        return self

    def close(self) -> None:
        for connection, _ in self.held:
            connection.close()


def connect(url: str, address: str = "127.0.0.1") -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection(
        (str(where.hostname), int(where.port or 0)), timeout=60, source_address=(address, 0)
    )


def is_open(connection: socket.socket, byte: bytes) -> bool:
    """Send a byte; whether the server has neither closed the connection nor answered."""
    connection.setblocking(False)
    try:
        if byte:
            connection.send(byte)
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        connection.setblocking(True)


def answer_of(connection: socket.socket) -> bytes:
    found = b""
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            found += piece
    return found


def bearer(serve: ServeProcess) -> dict[str, str]:
    return {"Authorization": f"Bearer {serve.token}"}


@pytest.fixture
def patient(tmp_path: Path) -> Iterator[ServeProcess]:
    """A service that never loses patience: only its limit on connections helps."""
    with served(
        tmp_path,
        SERVE__CONNECTIONS="200",
        SERVE__HEAD_TIMEOUT="10m",
        SERVE__BODY_TIMEOUT="10m",
        SERVE__IDLE_TIMEOUT="10m",
    ) as serve:
        yield serve


@pytest.fixture
def hasty(tmp_path: Path) -> Iterator[ServeProcess]:
    with served(
        tmp_path,
        SERVE__CONNECTIONS_PER_ADDRESS="20",
        SERVE__PROXIES='["127.0.0.9"]',
        SERVE__HEAD_TIMEOUT="1s",
        SERVE__BODY_TIMEOUT="1s",
        SERVE__IDLE_TIMEOUT="1s",
    ) as serve:
        yield serve


def test_three_hundred_half_requests_are_held_and_an_honest_one_is_answered_all_the_while(
    patient: ServeProcess,
) -> None:
    with ExitStack() as opened:
        crowd = Crowd(patient.url, size=300)
        opened.callback(crowd.close)
        each_on_its_own_connection = httpx.Limits(max_keepalive_connections=0)
        honest = opened.enter_context(
            httpx.Client(
                base_url=patient.url,
                headers=bearer(patient),
                timeout=60,
                limits=each_on_its_own_connection,
                verify=False,
            )
        )
        for _ in range(10):
            crowd.keep_up()
            assert honest.get("/healthz").status_code == 200
            assert honest.get("/api/server").status_code == 200
    assert crowd.cut > 0


def test_a_crowd_from_one_address_makes_room_with_its_own_connections(patient: ServeProcess) -> None:
    """An honest client of another address has a connection that waits for longer than any of them."""
    with ExitStack() as opened:
        honest = opened.enter_context(connect(patient.url, "127.0.0.2"))
        honest.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n")
        crowd = Crowd(patient.url, size=300, address="127.0.0.3")
        opened.callback(crowd.close)
        until(lambda: crowd.keep_up().cut > 100, "room that the crowd made")
        honest.sendall(b"Connection: close\r\n\r\n")
        assert answer_of(honest).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("kind", HALVES)
def test_a_half_request_that_grows_byte_by_byte_is_cut_at_its_time_limit(kind: str, hasty: ServeProcess) -> None:
    begin, byte = HALVES[kind]
    with connect(hasty.url) as connection:
        connection.sendall(begin)
        until(lambda: not is_open(connection, byte) or is_answered(connection), f"the end of {kind}", seconds=60)
        assert httpx.get(f"{hasty.url}/healthz", timeout=60, verify=False).status_code == 200


def is_answered(connection: socket.socket) -> bool:
    """Whether an answer has come; to a body that is given up it is 408."""
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except OSError:
        return False
    finally:
        connection.setblocking(True)


def test_a_connection_that_was_answered_may_not_wait_for_ever(hasty: ServeProcess) -> None:
    with connect(hasty.url) as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert answer_of(connection).startswith(b"HTTP/1.1 200")


def test_an_address_with_too_many_connections_is_refused_and_others_are_answered(hasty: ServeProcess) -> None:
    with ExitStack() as opened:

        def refused() -> bytes | None:
            """Whether one connection more is answered with 503; those before it are cut after a second."""
            held = [opened.enter_context(connect(hasty.url, "127.0.0.2")) for _ in range(20)]
            extra = opened.enter_context(connect(hasty.url, "127.0.0.2"))
            answer = answer_of(extra)
            for each in held:
                each.close()
            return answer

        answer = until(refused, "a refusal")
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503")
        assert json.loads(body)["type"] == "urn:stationmaster:problem:ServerFull"
        held = [opened.enter_context(connect(hasty.url, "127.0.0.2")) for _ in range(20)]
        with connect(hasty.url, "127.0.0.3") as other:
            other.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert answer_of(other).startswith(b"HTTP/1.1 200")
        assert len(held) == 20


def test_a_trusted_proxy_may_have_as_many_connections_as_its_users_need(hasty: ServeProcess) -> None:
    request = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with ExitStack() as opened:
        through = [opened.enter_context(connect(hasty.url, "127.0.0.9")) for _ in range(60)]
        for each in through:
            each.sendall(request)
        assert {answer_of(each)[:12] for each in through} == {b"HTTP/1.1 200"}


def test_connections_that_were_closed_leave_their_places(hasty: ServeProcess) -> None:
    for _ in range(100):
        connect(hasty.url, "127.0.0.4").close()

    def answered() -> bool:
        with connect(hasty.url, "127.0.0.4") as connection:
            connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            return answer_of(connection).startswith(b"HTTP/1.1 200")

    until(answered, "a place", seconds=60)


def test_half_requests_do_not_delay_the_end_of_the_service_nor_fill_its_log(patient: ServeProcess) -> None:
    with ExitStack() as opened:
        crowd = Crowd(patient.url, size=100)
        opened.callback(crowd.close)
        crowd.keep_up()
        assert httpx.get(f"{patient.url}/healthz", timeout=60, verify=False).status_code == 200  # it has met them all
        assert patient.end() == 0
    assert "Traceback" not in patient.err
    assert "timeout" not in patient.err


def test_a_stranger_may_not_send_a_large_body(hasty: ServeProcess) -> None:
    """At the least rate, a large one would take a quarter of an hour."""
    refused = httpx.post(f"{hasty.url}/api/session", content=b" " * 100_000, timeout=60, verify=False)
    assert refused.status_code == 413
    fits = httpx.post(
        f"{hasty.url}/api/users/me/inbox/read", content=b" " * 100_000, headers=bearer(hasty), timeout=60, verify=False
    )
    assert fits.status_code != 413


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[ServeProcess, ssl.SSLContext]]:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    new = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*new, *named, "-keyout", str(key), "-out", str(cert)], check=True, capture_output=True)
    with served(
        tmp_path,
        SERVE__TLS_CERT=str(cert),
        SERVE__TLS_KEY=str(key),
        SERVE__CONNECTIONS="100",
        SERVE__HEAD_TIMEOUT="2s",
    ) as serve:
        yield serve, ssl.create_default_context(cafile=cert)


def test_half_tls_handshakes_neither_last_nor_keep_others_out(
    encrypted: tuple[ServeProcess, ssl.SSLContext],
) -> None:
    """They have not become connections of HTTP yet, but each takes one of the process's files."""
    serve, trusted = encrypted
    with ExitStack() as opened:
        half = [opened.enter_context(connect(serve.url, "127.0.0.2")) for _ in range(300)]
        for each in half:
            with suppress(OSError):
                each.sendall(b"\x16\x03\x01")
        assert httpx.get(f"{serve.url}/healthz", verify=trusted, timeout=60).status_code == 200
        until(lambda: not any(is_open(each, b"") for each in half), "the end of all handshakes", seconds=60)
