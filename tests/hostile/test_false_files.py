"""A file has the size and the hash that the machine reported, or it does not arrive: not one byte more is written."""

from __future__ import annotations

import asyncio
import getpass
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncssh
import pytest

from stationmaster.errors import FalseFile, MachineFault
from stationmaster.files import sha256_of
from stationmaster.remote.base import Span
from stationmaster.remote.host import FileHash, Host
from stationmaster.remote.ssh import SshRemote
from stationmaster.remote.transfer import pull_verified
from tests.support.asynchronous_tests import asynchronous, names_in
from tests.support.capabilities import require
from tests.support.servers.sshd import Sshd, running_sshd

MIB = 2**20
AGREED = 8 * MIB


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    require("sshd")
    with running_sshd(tmp_path_factory.mktemp("sshd")) as sshd:
        yield sshd


class Generous(asyncssh.SFTPServer):
    """Answers every read with three times the bytes that were asked for."""

    def read(self, file_obj: object, offset: int, size: int) -> bytes:
        data = super().read(file_obj, offset, size)
        assert isinstance(data, bytes)
        return data + b"!" * (2 * size if data else 0)


@asynccontextmanager
async def generous_machine(sshd: Sshd) -> AsyncIterator[SshRemote]:
    """A machine whose SFTP server sends too much; its keys are those of the honest one."""
    server = await asyncssh.listen(
        "127.0.0.1",
        0,
        server_host_keys=[str(sshd.folder / "host_key")],
        authorized_client_keys=str(sshd.folder / "authorized_keys"),
        sftp_factory=Generous,
    )
    remote = SshRemote(sshd.settings(port=server.sockets[0].getsockname()[1], way="sftp", user=getpass.getuser()))
    try:
        yield remote
    finally:
        await remote.close()
        server.close()
        await server.wait_closed()


def far_file(folder: Path, size: int) -> Path:
    path = folder / "far.safetensors"
    path.write_bytes(os.urandom(size))
    return path


@asynchronous
async def test_a_server_that_answers_a_read_with_more_than_was_asked_for_writes_nothing(
    sshd: Sshd, tmp_path: Path
) -> None:
    far, near = far_file(tmp_path, 100_000), tmp_path / "home" / "near"
    near.parent.mkdir()
    async with generous_machine(sshd) as remote:
        with pytest.raises(FalseFile, match="more bytes came than were asked for"):
            await remote.pull(str(far), near, size=100_000)
    assert names_in(near.parent) == []


@pytest.mark.parametrize("way", ["sftp", "rsync"])
@asynchronous
async def test_a_file_ten_times_as_long_as_agreed_fills_no_disk(sshd: Sshd, tmp_path: Path, way: str) -> None:
    require("rsync")
    far, near = far_file(tmp_path, 10 * AGREED), tmp_path / "home" / "near"
    near.parent.mkdir()
    remote = SshRemote(sshd.settings(way=way))
    try:
        try:
            await remote.pull_spans(str(far), near, [Span(0, AGREED)], size=AGREED)
        except FalseFile:
            assert way == "rsync"
    finally:
        await remote.close()
    assert near.stat().st_size <= AGREED


@pytest.mark.parametrize("way", ["sftp", "rsync"])
@pytest.mark.parametrize("said", ["size", "hash"])
@asynchronous
async def test_a_false_size_or_hash_is_the_machine_s_fault_and_leaves_no_file(
    sshd: Sshd, tmp_path: Path, way: str, said: str
) -> None:
    require("rsync")
    far, near = far_file(tmp_path, 2 * AGREED), tmp_path / "home" / "near"
    near.parent.mkdir()
    true = FileHash(sha256=sha256_of(far), size=2 * AGREED)
    false = FileHash(sha256=true.sha256, size=AGREED) if said == "size" else FileHash(sha256="0" * 64, size=true.size)
    remote = SshRemote(sshd.settings(way=way))
    try:
        with pytest.raises(MachineFault):
            await pull_verified(Host(remote, root=str(tmp_path)), str(far), near, false)
        await pull_verified(Host(remote, root=str(tmp_path)), str(far), near, true)
    finally:
        await remote.close()
    assert names_in(near.parent) == ["near"]
    assert await asyncio.to_thread(sha256_of, near) == true.sha256
