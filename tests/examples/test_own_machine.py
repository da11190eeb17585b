"""examples/own-machine on a real sshd, which the SSH configuration calls gpu-box."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands.example_runs import EXAMPLES, QUICK, Person
from tests.support.servers.sshd import Sshd, running_sshd

EXAMPLE = EXAMPLES / "own-machine"


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


def test_a_machine_of_your_own_trains_and_the_model_is_copied(person: Person, pictures: Path, sshd: Sshd) -> None:
    config = person.folder / "ssh_config"
    config.write_text(
        f"Host gpu-box\n  HostName 127.0.0.1\n  Port {sshd.port}\n  User {getpass.getuser()}\n"
        f"  IdentityFile {sshd.client_key}\n  UserKnownHostsFile {person.folder / 'known_hosts'}\n"
    )
    settings = {"STATIONMASTER_CONFIG": str(EXAMPLE / "config.toml"), "STATIONMASTER_SSH__CONFIG_PATH": str(config)}
    trusted = person.run("stationmaster", "keys", "trust", "gpu-box", "--yes", environ=settings)
    assert trusted.code == 0, trusted.err
    words = (EXAMPLE / "train.sh", pictures, "model", *QUICK, "-p", f"python={sys.executable}")
    ran = person.run(*words, environ=settings)
    assert ran.code == 0, ran.err
    assert "COMPLETED" in ran.out
    assert "output/cats.safetensors" in [
        str(path.relative_to(person.folder / "model")) for path in (person.folder / "model").rglob("*")
    ]
    again = person.run(*words, environ=settings)
    assert (again.code, "nothing was changed" in again.out + again.err) == (0, True)
