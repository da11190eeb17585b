"""examples/adopt: a process that the example itself starts, adopted over a real sshd."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.example_runs import EXAMPLES, Person
from tests.support.machines.own_hosts import is_alive
from tests.support.servers.sshd import Sshd, running_sshd

EXAMPLE = EXAMPLES / "adopt"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def test_it_is_watched_to_its_end_and_its_model_copied(person: Person, sshd: Sshd, tmp_path: Path) -> None:
    config = person.folder / "ssh_config"
    (person.folder / "known_hosts").write_text(f"[127.0.0.1]:{sshd.port} {sshd.host_key}\n")
    config.write_text(
        f"Host gpu-box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {sshd.client_key}\n  UserKnownHostsFile {person.folder / 'known_hosts'}\n"
    )
    run = tmp_path / "run"
    started = person.run(EXAMPLE / "start-by-hand.sh", run, "40", "0.2")
    assert started.code == 0, started.err
    assert is_alive(int((run / "pid").read_text()))
    settings = {"STATIONMASTER_SSH__CONFIG_PATH": str(config)}
    ran = person.run(EXAMPLE / "adopt.sh", "gpu-box", run, "model", environ=settings)
    assert ran.code == 0, ran.err
    assert "COMPLETED" in ran.out
    assert [path.name for path in (person.folder / "model").rglob("model.safetensors")] == ["model.safetensors"]
