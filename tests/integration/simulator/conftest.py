from __future__ import annotations

import asyncio
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import asyncssh
import pytest

from stationmaster.simulator.harness import simulator_thread
from tests.support.vast.simulated_vast import Customer, quick_settings

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Login:
    """Logs in to rented machines with one key pair."""

    key_path: Path
    public: str

    def do(
        self, instance: dict[str, Any], work: Callable[[asyncssh.SSHClientConnection], Awaitable[T]], **options: Any
    ) -> T:
        async def session() -> T:
            async with self.connection(instance, **options) as connection:
                return await work(connection)

        return asyncio.run(session())

    def run(self, instance: dict[str, Any], command: str, **options: Any) -> asyncssh.SSHCompletedProcess:
        async def work(connection: asyncssh.SSHClientConnection) -> asyncssh.SSHCompletedProcess:
            return await connection.run(command, **options)

        return self.do(instance, work)

    def output(self, instance: dict[str, Any], command: str) -> str:
        done = self.run(instance, command)
        assert done.exit_status == 0, done.stderr
        return str(done.stdout).strip()

    def leave_running(self, instance: dict[str, Any], script: str) -> None:
        """Start a script that goes on after the session, as a training does."""
        self.output(instance, f"setsid nohup sh -c {shlex.quote(script)} > /dev/null 2>&1 < /dev/null &")

    @asynccontextmanager
    async def connection(
        self, instance: dict[str, Any], *, door: str = "direct", **options: Any
    ) -> AsyncIterator[asyncssh.SSHClientConnection]:
        host, port = where(instance, door)
        settings: dict[str, Any] = {"known_hosts": None, "connect_timeout": 20, "config": None, "agent_path": None}
        settings |= {"username": "root", "client_keys": [str(self.key_path)], **options}
        async with asyncssh.connect(host, port, **settings) as connection:
            yield connection


def where(instance: dict[str, Any], door: str = "direct") -> tuple[str, int]:
    if door == "proxy":
        return str(instance["ssh_host"]), int(instance["ssh_port"])
    return str(instance["public_ipaddr"]).strip(), int(instance["ports"]["22/tcp"][0]["HostPort"])


@pytest.fixture(scope="session")
def login(tmp_path_factory: pytest.TempPathFactory) -> Login:
    path = tmp_path_factory.mktemp("keys") / "id_ed25519"
    key = asyncssh.generate_private_key("ssh-ed25519")
    key.write_private_key(str(path))
    path.chmod(0o600)
    return Login(key_path=path, public=key.export_public_key().decode().strip())


@pytest.fixture(scope="module")
def simulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    home = tmp_path_factory.mktemp("simulator")
    with simulator_thread(quick_settings(home, credit_usd=1000.0)) as url:
        yield url, home
    assert not list((home / "machines").glob("*"))


@pytest.fixture
def customer(simulator: tuple[str, Path], login: Login) -> Iterator[Customer]:
    """A customer whose key is on the account, and whose machines are destroyed after the test."""
    customer = Customer(simulator[0])
    customer.http.post("/api/v0/ssh/", json={"ssh_key": login.public})
    yield customer
    customer.http.delete("/simulator/faults")
    for instance_id in customer.listed():
        customer.destroy(instance_id)
    assert customer.listed() == set()
    customer.close()
