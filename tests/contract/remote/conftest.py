from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.machines.machine_bench import Bench, fake_bench, local_bench, ssh_bench
from tests.support.servers.sshd import Sshd, running_sshd


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running_sshd(tmp_path_factory.mktemp("sshd")) as server:
        yield server


@pytest.fixture(params=["local", "fake", "ssh"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    folder = tmp_path / "machine"
    folder.mkdir()
    match request.param:
        case "local":
            return local_bench(folder)
        case "fake":
            return fake_bench()
        case _:
            return ssh_bench(folder, request.getfixturevalue("sshd").settings())
